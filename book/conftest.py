"""The kernels of the tests of chapters, on sockets that cannot be mixed up; one that dies is reported at once.

A chapter that passed in this build is not run again until something changes that it was made from, unless it is named.
"""

import os
import re
import runpy
import time
from pathlib import Path
from queue import Empty

import nbval.kernel
import nbval.plugin
import pytest
from jupyter_client.manager import KernelManager

from book import build_cache
from book.import_tracking import ROOT, START

SOCKETS = runpy.run_path(str(Path(__file__).parent / "site" / "tools" / "refresh.py"))["sockets"]
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.passed and hasattr(item.parent, "kernel"):
        item.parent.passed = getattr(item.parent, "passed", 0) + 1
    return report


def teardown(self, end=nbval.plugin.IPyNbFile.teardown):
    """A chapter all of whose cells passed says so to the build, together with what its kernel read."""
    cells = [cell for cell in self.nb.cells if cell.cell_type == "code"]
    if getattr(self, "passed", 0) == len(cells) and self.kernel.is_alive():
        module, note = build_cache.__name__, build_cache.record_pass.__name__
        noted = f"from {module} import {note}; {note}({self.path.relative_to(ROOT).as_posix()!r}, {START})"
        self.kernel.await_reply(self.kernel.execute_cell_input(noted), timeout=60)
    end(self)


def await_reply(self, message, timeout=None, wait=nbval.kernel.RunningKernel.await_reply):
    """nbval would wait for a dead kernel until the time of the cell is over, and then forever."""
    end = time.monotonic() + timeout
    while True:
        try:
            return wait(self, message, timeout=2)
        except Empty:
            if not self.is_alive():
                raise RuntimeError("the kernel died while it ran this cell") from None
            if time.monotonic() > end:
                raise


SVG = "image/svg+xml"
# The mark of what an id names, and a length, in a drawing.
_MARK = re.compile(r"-[0-9a-f]{6}(?=[)\"])")
_LENGTH = re.compile(r"(-?\d+(?:\.\d+)?)")


def same_drawing(one, other):
    """Whether two drawings show the same: text and shapes, and lengths but for a fiftieth of a point.

    Another CPU may add in another order, which moves the last digit of a length.
    """
    parts = [_LENGTH.split(_MARK.sub("", " ".join(svg.split()))) for svg in (one, other)]
    if parts[0][::2] != parts[1][::2]:
        return False
    lengths = zip(*(map(float, part[1::2]) for part in parts), strict=True)
    return all(abs(a - b) < 0.021 for a, b in lengths)


def compare_outputs(self, test, ref, skip_compare=None, compare=nbval.plugin.IPyNbCell.compare_outputs):
    """nbval would compare drawings letter by letter."""
    for made, stored in zip(test, ref, strict=False):
        drawings = [one.get("data", {}).get(SVG) for one in (made, stored)]
        if all(drawings) and same_drawing(*drawings):
            made["data"][SVG] = stored["data"][SVG]
    return compare(self, test, ref, skip_compare)


def around(*outputs, reach=400):
    """Long outputs, such as the scorecard's table, cut down to what stands around their first difference."""
    if not all(isinstance(one, str) and len(one) > 10 * reach for one in outputs):
        return outputs
    at = len(os.path.commonprefix(outputs))
    return [f"... {one[max(0, at - reach) : at + reach]} ..." for one in outputs]


def format_output_compare(self, key, left, right, show=nbval.plugin.IPyNbCell.format_output_compare):
    """nbval would show both outputs from beginning to end."""
    show(self, key, *around(left, right))


nbval.kernel.KernelManager = lambda **options: KernelManager(**options, **SOCKETS())
nbval.kernel.RunningKernel.await_reply = await_reply
nbval.plugin.IPyNbFile.teardown = teardown
nbval.plugin.IPyNbCell.compare_outputs = compare_outputs
nbval.plugin.IPyNbCell.format_output_compare = format_output_compare
