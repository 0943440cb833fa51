"""Ten million configurations of Erdil's model on a cluster of this machine's cores: time and memory.

Needs the packages of ``pip install -e '.[lab,test]'``. With the address of a scheduler as its argument it
runs on that cluster instead.
"""

import sys
import threading
import time
from contextlib import suppress

import psutil
from dask.distributed import Client, progress

from book.papers.erdil2025 import beyond


def resident():
    """Bytes of memory of this process and all that it started."""
    total, one = 0, psutil.Process()
    for process in [one, *one.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def watched(peak, finished):
    """Keep the largest memory seen until all is finished."""
    while not finished.wait(0.1):
        peak[0] = max(peak[0], resident())


def main():
    scheduler = sys.argv[1:] or [None]
    with Client(scheduler[0], dashboard_address=None) as client:
        before, peak, finished = resident(), [0], threading.Event()
        watcher = threading.Thread(target=watched, args=(peak, finished))
        watcher.start()
        start = time.perf_counter()
        costs = beyond.cheapest_by_context(steps=1000, contexts=10, chunk=100).persist()
        progress(costs, notebook=False)
        costs = costs.compute()
        seconds = time.perf_counter() - start
        busy = sum(client.run(time.process_time).values())
        finished.set()
        watcher.join()
        cores = sum(client.nthreads().values())
    print()
    print(costs.to_series().round(2).to_string())
    print(
        f"10,000,000 configurations on {cores} cores: {seconds:.0f} s, {busy:.0f} CPU seconds of the workers"
    )
    print(f"All processes: {peak[0] / 1e6:.0f} MB at most, {before / 1e6:.0f} MB of them before the sweep")


if __name__ == "__main__":
    main()
