"""Time ten million configurations of Erdil's model on a cluster of this machine's cores.

Needs the packages of ``pip install -e '.[lab,test]'``. With the address of a scheduler as argument it runs on that
cluster instead.
"""

import sys
import time

from dask.distributed import Client, progress

from book.papers.erdil2025 import beyond


def main():
    with Client(*sys.argv[1:2], dashboard_address=None):
        start = time.perf_counter()
        costs = beyond.cheapest_by_context(steps=1000, contexts=10, chunk=100).persist()
        progress(costs, notebook=False)
        costs = costs.compute()
        seconds = time.perf_counter() - start
    print(costs.to_series().round(2))
    print(f"10,000,000 configurations: {seconds:.0f} s")


if __name__ == "__main__":
    main()
