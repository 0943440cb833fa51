"""Chapters as tests: each is run again, as `make refresh` does, and must have the outputs that are stored.

A chapter that passed in this build is not run again until one of its dependencies changes, unless it is named.
"""

import json
import os
import re

import nbformat
import pytest

from book import build_cache
from book.import_tracking import ROOT, START
from book.site.tools import refresh

_UNCHANGED: list = []


def pytest_ignore_collect(collection_path):
    if collection_path.suffix == ".ipynb" and build_cache.is_fresh(collection_path):
        _UNCHANGED.append(collection_path.stem)
        return True


def pytest_terminal_summary(terminalreporter):
    if _UNCHANGED:
        terminalreporter.write_line(
            f"{len(_UNCHANGED)} chapters passed before and are unchanged: not run again"
        )


def pytest_collect_file(file_path, parent):
    return Chapter.from_parent(parent, path=file_path) if file_path.suffix == ".ipynb" else None


class Chapter(pytest.File):
    """A chapter, with a single test."""

    def collect(self):
        yield Outputs.from_parent(self, name="outputs")


class Outputs(pytest.Item):
    """The test that a chapter run again has its stored outputs; if it passes, the kernel notes what it read."""

    def reportinfo(self):
        return self.path, None, self.path.name

    def runtest(self):
        stored = nbformat.read(self.path, as_version=4)

        def compared(made):
            found = {
                cell.id: (cell.outputs, again.outputs)
                for cell, again in zip(stored.cells, made.cells, strict=True)
                if cell.cell_type == "code" and not same(cell.outputs, again.outputs)
            }
            if found:
                first = difference(*next(iter(found.values())))
                pytest.fail(f"cells differ: {', '.join(found)}; the first:\n{first}", pytrace=False)
            module, note = build_cache.__name__, build_cache.record_pass.__name__
            chapter = self.path.relative_to(ROOT).as_posix()
            return f"from {module} import {note}; {note}({chapter!r}, {START})"

        refresh.run(self.path, compared)


SVG = "image/svg+xml"
# The hash suffix of an SVG id, and a length in a drawing.
_MARK = re.compile(r"-[0-9a-f]{6}(?=[)\"])")
_LENGTH = re.compile(r"(-?\d+(?:\.\d+)?)")


def same_drawing(one, other):
    """Whether two drawings have the same text and shapes, with lengths equal to a fiftieth of a point.

    Sums on another CPU may be in another order, which moves the last digit of a length.
    """
    parts = [_LENGTH.split(_MARK.sub("", " ".join(svg.split()))) for svg in (one, other)]
    if parts[0][::2] != parts[1][::2]:
        return False
    lengths = zip(*(map(float, part[1::2]) for part in parts), strict=True)
    return all(abs(a - b) < 0.021 for a, b in lengths)


def same(stored, made):
    """Whether the outputs of a cell are the stored ones, drawings by :func:`same_drawing`."""
    for one, other in zip(stored, made, strict=False):
        drawings = [output.get("data", {}).get(SVG) for output in (one, other)]
        if all(drawings) and same_drawing(*drawings):
            other.data[SVG] = one.data[SVG]
    return stored == made


def difference(*outputs, reach=80):
    """Return the text around the first difference of two cells' outputs, as stored and as made."""
    texts = [json.dumps(one, sort_keys=True, ensure_ascii=False) for one in outputs]
    at = len(os.path.commonprefix(texts))
    around = (text[max(0, at - reach) : at + reach] for text in texts)
    return "\n".join(map("{}: ... {} ...".format, ("stored", "made"), around))
