"""Time the library against its promises; ends with an error when one is broken."""

import subprocess
import sys
import timeit

import numpy as np

from inferlib.papers import erdil2025

MODEL, CHIP = erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"]
DRAFT = erdil2025.models["Llama 3 8B"]


def latency(n_gpu, batch):
    """Time per token by the toy model, all-reduce included."""
    return erdil2025.toy_latency(MODEL, CHIP, n_gpu, batch, erdil2025.grid_all_reduce_time(n_gpu, 1e-6))


def frontier(**options):
    """A frontier of the complete model over the paper's grid of 400 x 400 points."""
    return erdil2025.frontier(MODEL, CHIP, **options)


def best(function, number):
    """Seconds of one call: the best of five rounds, since only noise makes a round slower."""
    return min(timeit.repeat(function, number=number, repeat=5)) / number


def start(code):
    """Seconds a fresh interpreter takes to run a line."""
    return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 1)


def main():
    n_gpu, batch = np.geomspace(1, 512, 1000)[:, None], np.geomspace(1, 4096, 1000)
    results = [
        ("one toy latency, in us", 1e6 * best(lambda: latency(8.0, 32.0), 10_000), 10),
        ("a million of them, in us each", best(lambda: latency(n_gpu, batch), 3), 0.1),
        ("a frontier, in s", best(lambda: frontier(pipeline=False), 1), 0.15),
        ("a frontier with pipelines, in s", best(frontier, 1), 0.4),
        ("a frontier with pipelines and drafts, in s", best(lambda: frontier(draft=DRAFT), 1), 1.5),
        ("import inferlib, in s above a bare interpreter", start("import inferlib") - start("pass"), 0.3),
    ]
    broken = False
    for what, value, limit in results:
        broken |= value > limit
        print(f"{what}: {value:.3g} (at most {limit}){'  <-- BROKEN' if value > limit else ''}")
    sys.exit(broken)


if __name__ == "__main__":
    main()
