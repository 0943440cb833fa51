"""Settings for the tests of chapters: kernels on Unix sockets, and an immediate report if a kernel dies.

A chapter that passed in this build is not run again until one of its dependencies changes, unless it is named.
"""

import os
import re
import time
from queue import Empty

import nbval.kernel
import nbval.plugin
import pytest
from jupyter_client.manager import KernelManager

from book import build_cache
from book.import_tracking import ROOT, START
from book.site.tools.refresh import sockets

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
    """Record in the build that all cells of a chapter passed, with the files that its kernel read."""
    cells = [cell for cell in self.nb.cells if cell.cell_type == "code"]
    if getattr(self, "passed", 0) == len(cells) and self.kernel.is_alive():
        module, note = build_cache.__name__, build_cache.record_pass.__name__
        noted = f"from {module} import {note}; {note}({self.path.relative_to(ROOT).as_posix()!r}, {START})"
        self.kernel.await_reply(self.kernel.execute_cell_input(noted), timeout=60)
    end(self)


def await_reply(self, message, timeout=None, wait=nbval.kernel.RunningKernel.await_reply):
    """Report a dead kernel at once; nbval alone would wait for the cell's timeout, and then forever."""
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


def compare_outputs(self, test, ref, skip_compare=None, compare=nbval.plugin.IPyNbCell.compare_outputs):
    """Compare drawings by :func:`same_drawing`; nbval alone compares them letter by letter."""
    for made, stored in zip(test, ref, strict=False):
        drawings = [one.get("data", {}).get(SVG) for one in (made, stored)]
        if all(drawings) and same_drawing(*drawings):
            made["data"][SVG] = stored["data"][SVG]
    return compare(self, test, ref, skip_compare)


def around(*outputs, reach=400):
    """Cut long outputs, such as the scorecard's table, to the text around their first difference."""
    if not all(isinstance(one, str) and len(one) > 10 * reach for one in outputs):
        return outputs
    at = len(os.path.commonprefix(outputs))
    return [f"... {one[max(0, at - reach) : at + reach]} ..." for one in outputs]


def format_output_compare(self, key, left, right, show=nbval.plugin.IPyNbCell.format_output_compare):
    """Show the difference of two outputs; nbval alone shows both outputs in full."""
    show(self, key, *around(left, right))


nbval.kernel.KernelManager = lambda **options: KernelManager(**options, **sockets())
nbval.kernel.RunningKernel.await_reply = await_reply
nbval.plugin.IPyNbFile.teardown = teardown
nbval.plugin.IPyNbCell.compare_outputs = compare_outputs
nbval.plugin.IPyNbCell.format_output_compare = format_output_compare
