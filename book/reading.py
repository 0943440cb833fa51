"""What this process has read of the repository since it imported the book: files, and folders that it listed."""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
READ: list = []  # paths from the root, in the order of reading
START = (
    time.time() - 5
)  # code that changed later may not be what this process runs: some was imported before this


def _note(event, given):
    """An audit hook: each file that is opened to be read, each folder whose names are asked for."""
    if event not in ("open", "os.listdir", "os.scandir") or not isinstance(
        given[0], str | bytes | os.PathLike
    ):
        return
    if event == "open" and given[2] & os.O_ACCMODE != os.O_RDONLY:
        return
    path = os.path.abspath(os.fsdecode(given[0]))
    if path.startswith(_INSIDE):
        parts = path.removeprefix(_INSIDE).split(os.sep)
        if parts[-2:-1] == ["__pycache__"]:  # compiled code stands for its text
            parts = [*parts[:-2], parts[-1].split(".")[0] + ".py"]
        if not any(part.startswith((".", "__pycache__")) or part in _MADE for part in parts):
            READ.append("/".join(parts))


_INSIDE = f"{ROOT}{os.sep}"
_MADE = ("_build", "site-packages")
sys.addaudithook(_note)


def modules():
    """The files of all modules of the repository that this process has imported."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    found = {os.path.abspath(file) for file in files if file}
    found = {file.removeprefix(_INSIDE) for file in found if file.startswith(_INSIDE)}
    return {
        file
        for file in found
        if not any(part.startswith(".") or part in _MADE for part in file.split(os.sep))
    }
