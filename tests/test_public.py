"""Author and address are stated in one place and all other files follow; workflows have no passwords."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
IDENTITY = runpy.run_path(str(ROOT / "book" / "site" / "tools" / "metadata.py"))
WHO, WHERE = ["Ada Lovelace", "Charles Babbage"], "https://github.com/ada/engine"


@pytest.mark.parametrize("name", IDENTITY["FOLLOW"])
def test_authors_and_address_follow_the_one_place(name):
    text = (ROOT / name).read_text("utf-8")
    written = IDENTITY["FOLLOW"][name]
    assert text == written(text, *IDENTITY["load_config"]()), "run python book/site/tools/metadata.py"
    filled = written(text, WHO, WHERE)
    assert all(who in filled for who in WHO if not name.endswith("ipynb"))
    assert filled == written(filled, WHO, WHERE)
    assert written(filled, *IDENTITY["load_config"]()) == text


def test_what_is_filled_in_is_well_formed():
    project = tomllib.loads(IDENTITY["project"]((ROOT / "pyproject.toml").read_text("utf-8"), WHO, WHERE))[
        "project"
    ]
    assert project["authors"] == [{"name": who} for who in WHO] and project["urls"] == {"Repository": WHERE}
    cited = yaml.safe_load(IDENTITY["citation"]((ROOT / "CITATION.cff").read_text("utf-8"), WHO, WHERE))
    assert cited["authors"] == [{"name": who} for who in WHO] and cited["repository-code"] == WHERE
    assert cited["version"] == project["version"] and cited["license"] == project["license"]
    assert yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["title"] == cited["title"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem
)
def test_workflows_need_no_password_and_few_rights(path):
    text = path.read_text("utf-8")
    made = yaml.safe_load(text)
    assert made["permissions"] == {"contents": "read"} and "secrets." not in text
    for name, job in made["jobs"].items():
        assert "timeout-minutes" in job, name
        rights = job.get("permissions", {})
        assert set(rights) <= {"pages", "id-token"}, name
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", action) for action in uses), name
        # the job that may publish runs no code of the repository
        assert not rights or not any("run" in step for step in job["steps"]), name
