"""What this process has read of the repository since it imported the book: files, and folders that it listed."""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
READ: list = []  # paths from the root, in the order of reading
START = (
    time.time() - 5
)  # some code was imported before this: what changed since may not be what this process runs


def _note(event, given):
    """An audit hook: each file that is opened to be read, each folder whose names are asked for."""
    if event not in ("open", "os.listdir", "os.scandir") or not isinstance(
        given[0], str | bytes | os.PathLike
    ):
        return
    if event != "open" or given[2] & os.O_ACCMODE == os.O_RDONLY:
        READ.extend(_of_ours([given[0]]))


def _of_ours(paths):
    """Those of some paths that lie in the repository and were not made by tools, from its root."""
    for path in paths:
        folder, _, inside = os.path.abspath(os.fsdecode(path)).partition(f"{ROOT}{os.sep}")
        parts = inside.split(os.sep)
        if parts[-2:-1] == ["__pycache__"]:  # compiled code stands for its text
            parts = [*parts[:-2], parts[-1].split(".")[0] + ".py"]
        if (
            inside
            and not folder
            and not any(part.startswith((".", "__pycache__")) or part in _MADE for part in parts)
        ):
            yield "/".join(parts)


_MADE = ("_build", "site-packages")
sys.addaudithook(_note)


def loaded_modules():
    """The files of all modules of the repository that this process has imported."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {*_of_ours(filter(None, files))}
