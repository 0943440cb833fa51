"""Run chapters in place and store their outputs, byte for byte the same from run to run.

The outputs are what readers see and what the tests compare, so nothing may be stored that
changes without a change in the book: no times, no addresses of objects, no widget states.
"""

from __future__ import annotations

import argparse
import configparser
import re
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[3]
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# The model id of a widget is random; the page shows an explorer of its own instead.
UNSTABLE = ("application/vnd.jupyter.widget-view+json",)


def replacements():
    """Pairs of pattern and replacement that the tests apply too, before they compare."""
    rules = configparser.RawConfigParser()
    rules.read(ROOT / "tests" / "nbval_sanitize.cfg")
    return [(re.compile(rules[s]["regex"]), rules[s]["replace"]) for s in rules.sections()]


def stable(text, rules):
    """The text (or list of lines) with each rule applied."""
    if isinstance(text, list):
        return [stable(line, rules) for line in text]
    for pattern, new in rules:
        text = pattern.sub(new, text)
    return text


def fold(nb):
    """Fold the code of solutions and what stands above the case, as JupyterLab reads it, so that the first cell of code
    that a reader sees is the case; keep of all metadata what the pages and Lab need."""
    inside, code = 0, [cell for cell in nb.cells if cell.cell_type == "code"]
    case = next((at for at, cell in enumerate(code) if re.search(r"(?m)^case = ", cell.source)), 0)
    above = [cell.id for cell in code[:case]]
    for cell in nb.cells:
        kept = {key: cell.metadata[key] for key in ("mystnb", "tags") if cell.metadata.get(key)}
        if cell.cell_type == "markdown":
            inside += cell.source.count("{solution-start}") - cell.source.count("{solution-end}")
        elif inside:
            kept["jupyter"] = {"outputs_hidden": True, "source_hidden": True}
        elif cell.id in above:
            kept["jupyter"] = {"source_hidden": True}
        cell.metadata = nbformat.from_dict(kept)


def clean(nb, rules):
    """Remove from an executed notebook all that depends on the run or on the editor."""
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    fold(nb)
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output.text = stable(output.text, rules)
            for mime in UNSTABLE:
                output.get("data", {}).pop(mime, None)
            for mime in ("text/plain", "text/html"):
                if mime in output.get("data", {}):
                    output.data[mime] = stable(output.data[mime], rules)


def sockets():
    """Options of a kernel manager for sockets that are files, which no other kernel can have.

    Free ports are looked up before the kernel opens them. Of two kernels that start together one may open the other's
    port, and messages then go to the wrong kernel.
    """
    file = Path(tempfile.gettempdir(), f"kernel-{uuid.uuid4().hex}.json")
    return {"transport": "ipc", "connection_file": str(file)}


def look_again(client, every=1):
    """Make a client look for a reply every so many seconds, not only when it is woken.

    While it waits on its socket it also answers output widgets over it, and such an answer can use up the
    wake-up that was for the reply. The client then slept until its time was over, five minutes, and found it.
    """
    channel = client.kc.shell_channel
    wait = channel.get_msg

    async def get_msg(timeout=None):
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while True:
            left = end - time.monotonic()
            try:
                return await wait(timeout=max(0, min(every, left)))
            except Empty:
                if left <= every:
                    raise

    channel.get_msg = get_msg


def run(text, folder):
    """The chapter of a text, executed."""
    nb = nbformat.reads(text, as_version=4)
    client = NotebookClient(
        nb,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # a kernel sends one text in several pieces, cut at random
        resources={"metadata": {"path": str(folder)}},
        config=Config({"KernelManager": sockets()}),
    )
    client.on_notebook_start = lambda notebook: look_again(client)
    client.execute()
    return nb


def refresh(path):
    """Run one chapter; returns what to tell the reader of the terminal."""
    start = time.perf_counter()
    old = path.read_text("utf-8")
    try:
        nb = run(old, path.parent)
    except CellExecutionError as error:
        raise SystemExit(f"{path.name}: a cell failed\n{error}") from error
    clean(nb, replacements())
    nbformat.validate(nb)
    new = nbformat.writes(nb, indent=1).rstrip("\n") + "\n"
    if new != old:
        whole = path.with_suffix(".new")  # chapters that run beside it read it, and must not see half of it
        whole.write_text(new, "utf-8", newline="\n")
        whole.replace(path)
    state = "changed" if new != old else "same"
    return f"{path.name}: {state}, {time.perf_counter() - start:.0f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    chapters = args.chapters or sorted((ROOT / "book").glob("*.ipynb"))
    print(f"Running {len(chapters)} chapters, {args.jobs} at a time: some seconds each", flush=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(refresh, chapters):
            print(line, flush=True)


if __name__ == "__main__":
    main()
