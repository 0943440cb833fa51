"""Run chapters in place and store their outputs, identical byte for byte from run to run.

Readers see the outputs and tests compare them, so nothing may be stored that changes without a change in the book: no
times, no addresses of objects, no widget states.
"""

from __future__ import annotations

import argparse
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
# A widget's model id is random; the page shows an explorer of its own instead.
UNSTABLE = ("application/vnd.jupyter.widget-view+json",)


def stable(text):
    """Replace the addresses of objects in a text, or a list of lines."""
    if isinstance(text, list):
        return [stable(line) for line in text]
    return re.sub("0x[0-9a-f]{6,}", "0xADDRESS", text)


def fold(nb):
    """Fold the code of solutions and the code above the case in JupyterLab, so that the first visible code is the
    case; drop metadata that neither pages nor JupyterLab need."""
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


def clean(nb):
    """Remove from an executed notebook everything that depends on the run or on the editor."""
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    fold(nb)
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output.text = stable(output.text)
            for mime in UNSTABLE:
                output.get("data", {}).pop(mime, None)
            for mime in ("text/plain", "text/html"):
                if mime in output.get("data", {}):
                    output.data[mime] = stable(output.data[mime])


def sockets():
    """Return options of a kernel manager for Unix sockets, which no other kernel can share.

    Free ports are chosen before the kernel opens them. If two kernels start together, one may open the other's port,
    and messages then go to the wrong kernel.
    """
    file = Path(tempfile.gettempdir(), f"kernel-{uuid.uuid4().hex}.json")
    return {"transport": "ipc", "connection_file": str(file)}


def look_again(client, every=1):
    """Make a client poll for a reply every few seconds instead of waiting for a wake-up.

    While it waits on its socket it also answers output widgets, and that can consume the wake-up meant for the reply.
    The client then slept until its timeout of five minutes before it found the reply.
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


def run(path, last=None):
    """Execute a chapter; return the notebook as it is stored.

    ``last``: function of the notebook that returns code to run last in its kernel.
    """
    nb = nbformat.read(path, as_version=4)
    client = NotebookClient(
        nb,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # a kernel sends one text in pieces of random size
        resources={"metadata": {"path": str(path.parent)}},
        config=Config({"KernelManager": sockets()}),
        # Before the first cell, so that what its imports read is noted too.
        extra_arguments=["--IPKernelApp.exec_lines=import book.import_tracking"],
    )
    client.on_notebook_start = lambda notebook: look_again(client)
    with client.setup_kernel():
        for index, cell in enumerate(nb.cells):
            client.execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
        clean(nb)
        if last:
            nb.cells.append(nbformat.v4.new_code_cell(last(nb)))
            client.execute_cell(nb.cells[-1], len(nb.cells) - 1)
            nb.cells.pop()
    nbformat.validate(nb)
    return nb


def refresh(path):
    """Run one chapter; return a line for the terminal."""
    start = time.perf_counter()
    old = path.read_text("utf-8")
    try:
        nb = run(path)
    except CellExecutionError as error:
        raise SystemExit(f"{path.name}: a cell failed\n{error}") from error
    new = nbformat.writes(nb, indent=1).rstrip("\n") + "\n"
    if new != old:
        whole = path.with_suffix(
            ".new"
        )  # other chapters that run now read this file, and must not see half of it
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
