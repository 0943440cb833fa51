"""Progress of loops longer than two seconds: a line in a terminal, a bar in a notebook, else nothing."""

import sys
from importlib.util import find_spec
from time import monotonic

AFTER, EVERY = 2.0, 0.2  # seconds until the line appears, and between updates
state = {"quiet": False, "due": 0.0, "written": False}
_loops: list = []  # running loops, outermost first: name, items done, items in all


def progress(items, what):
    """Yield the items of a sequence and report progress; nested loops share a line.

    The line goes to stderr if that is a terminal, unless ``state["quiet"]``. In a notebook the outermost loop has a bar
    if tqdm is installed.
    """
    loop = [what, 0, len(items)]
    shown = items
    if not _loops:
        state["due"] = monotonic() + AFTER
        if "ipykernel" in sys.modules and find_spec("tqdm"):
            from tqdm.auto import tqdm

            shown = tqdm(items, what, delay=AFTER, leave=False)
    _loops.append(loop)
    try:
        for item in shown:
            yield item
            loop[1] += 1
            if monotonic() > state["due"]:
                _write(", ".join(f"{what} {done:,} of {total:,}" for what, done, total in _loops))
                state["due"] = monotonic() + EVERY
    finally:
        _loops[:] = [one for one in _loops if one is not loop]
        if not _loops and state["written"]:
            _write("")


def _write(line):
    if not state["quiet"] and sys.stderr and sys.stderr.isatty():
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        state["written"] = bool(line)
