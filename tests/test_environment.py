"""pyproject.toml, constraints.txt, environment.yml and what is installed say the same."""

import importlib.metadata
import re
import runpy
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from inferlib import papers

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text("utf-8")
PINS = [Requirement(line) for line in CONSTRAINTS.splitlines() if line.strip()]
WANTED = [
    Requirement(text)
    for texts in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in texts
    if not text.startswith(PROJECT["name"])
]


def version(pin):
    """The one version that a line of constraints.txt allows."""
    (specifier,) = pin.specifier
    assert specifier.operator == "==", f"not an exact pin: {pin}"
    return specifier.version


@pytest.mark.parametrize("wanted", WANTED, ids=lambda requirement: requirement.name)
def test_dependencies_are_pinned_within_their_range(wanted):
    pins = [pin for pin in PINS if canonicalize_name(pin.name) == canonicalize_name(wanted.name)]
    assert pins, "run make lock"
    for pin in pins:
        assert wanted.specifier.contains(version(pin)), "run make lock"


def test_constraints_hold_pins_and_nothing_else():
    line = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+( ; [^#/]+)?")
    assert [text for text in CONSTRAINTS.splitlines() if not line.fullmatch(text)] == []


def test_what_is_installed_is_what_is_pinned():
    wrong = []
    for pin in PINS:
        if pin.marker and not pin.marker.evaluate():
            continue
        # What is missing belongs to an extra that is not installed here.
        with suppress(importlib.metadata.PackageNotFoundError):
            installed = importlib.metadata.version(pin.name)
            wrong += [f"{pin.name} {installed}, pinned {version(pin)}"] * (installed != version(pin))
    assert not wrong, "remove .venv and make it again: " + "; ".join(wrong)


def test_environment_yml_installs_the_same():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    extras = ",".join(PROJECT["optional-dependencies"])
    # The names are listed for readers; constraints.txt has their versions.
    assert pip[:2] == ["-c constraints.txt", f"-e .[{extras}]"]
    assert {canonicalize_name(requirement.name) for requirement in WANTED} >= set(pip[2:])


def test_the_workflow_runs_every_python_from_the_least_one_on_and_that_of_conda():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf-8"))
    pythons = workflow["jobs"]["check"]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    environment = (ROOT / "environment.yml").read_text("utf-8")
    assert re.search(r"python=(\S+)", environment)[1] in pythons


SLIPS = runpy.run_path(str(ROOT / "benchmarks" / "mutate.py"))


@pytest.mark.parametrize("place", SLIPS["NEAREST"]["tests"])
def test_the_tests_that_are_to_notice_slips_exist(place):
    """A source need not have every module that others have."""
    names = {place.format(source=source) for source in papers.sources()}
    present = [name for name in names if (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file()]
    wanted = len(SLIPS["NEAREST"]["tests"][place].split())
    assert present and [name for name in present if len(SLIPS["nearest"](name)) < wanted] == []
