"""Property tests draw the same examples in every run, and a file of tests that passed is a product of the build.

As with a chapter, it is run again when something changes that it was made from, or where it is named.
"""

import os
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

from book import build_cache
from book.build_cache import from_root
from book.import_tracking import READ, ROOT

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

HERE = Path(__file__).parent
# What registers know, and what they open.
REGISTERED = """inferlib/**/*.* tokenprice/**/*.* book/papers/**/*.* book/audit/*.* book/explorer/*.*
book/*/explorers.py inferlib.egg-info/entry_points.txt""".split()
LEFT = Counter()  # by file of tests, how many have not passed
OPENED = defaultdict(set)  # by file of tests, what was opened while it was collected and run


def made_from(path):
    """The files that a file of tests takes, besides those that it opens; None where it starts a process.

    It may ask any register, which opens rooms by their names, and where it speaks of chapters go through all of these.
    """
    own, todo = set(), [path]
    while todo:
        own.add(one := todo.pop())
        words = set(re.findall(r"\w+", one.read_text("utf-8")))
        todo += [file for file in HERE.glob("*.py") if file.stem in words and file not in own]
    text = "\n".join(file.read_text("utf-8") for file in sorted(own))
    if "subprocess" in text:
        return None
    chapters = ("book/*.ipynb", "book/*.md") if "ipynb" in text else ()
    opened = (file for pattern in (*REGISTERED, *chapters) for file in ROOT.glob(pattern))
    found = {HERE / "conftest.py", *own, *opened}
    return {from_root(file) for file in found if file.suffix != ".pyc"} | build_cache.dependencies_of(text)


def pytest_ignore_collect(collection_path):
    if collection_path.parent == HERE and build_cache.is_fresh(from_root(collection_path)):
        return True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    READ.clear()
    report = yield
    OPENED[collector.path].update(READ)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Of a file that is not run whole nobody says that it passed."""
    if not any("::" in argument for argument in config.args):
        LEFT.update(item.path for item in items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    LEFT[item.path] -= report.when == "call" and report.passed
    LEFT[item.path] += report.when == "teardown" and report.failed
    if report.when == "teardown":
        OPENED[item.path].update(READ)
        files = LEFT[item.path] == 0 and "TOKENPRICE_BUILD" in os.environ and made_from(item.path)
        if files:
            build_cache.passed_with(from_root(item.path), files | OPENED[item.path])
        READ.clear()
    return report
