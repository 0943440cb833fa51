"""Time the library against its promised limits; exit with an error if one is exceeded.

Frontiers are measured in CPU seconds. Each line also has the time of the program of Erdil's paper for the same
400 x 400 points (CPU seconds, measured on another machine).
"""

import subprocess
import sys
import time
import timeit

import numpy as np

from book.papers.erdil2025 import frontiers
from inferlib.papers import erdil2025

MODEL, CHIP = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")
FRONTIERS = {  # options, limit in CPU seconds, and the CPU seconds of the author's program
    "plain": ({"pipeline": False}, 0.06, 2.8),
    "pipelines": ({}, 0.45, 11.0),
    "pipelines and drafts": ({"draft": erdil2025.load_model("Llama 3 8B")}, 1.7, 59.6),
}


def latency(n_gpu, batch):
    """Time per token in the toy model, all-reduce included."""
    return erdil2025.toy_latency(MODEL, CHIP, n_gpu, batch, erdil2025.grid_all_reduce_time(n_gpu, 1e-6))


def frontier(name):
    """A frontier of the complete model over the paper's grid."""
    return frontiers.frontier(MODEL, CHIP, **FRONTIERS[name][0])


def points(count=10**6):
    """Scattered points of the complete model, each with its best layout and number of pipeline stages."""
    random = np.random.default_rng(0)
    return erdil2025.token_latency(
        MODEL, CHIP, 2 ** random.uniform(3, 16, count), 2 ** random.uniform(0, 14, count)
    )


def best(function, number=1, repeat=5, clock=time.perf_counter):
    """Seconds of one call: the minimum of some rounds, because noise only makes a round slower."""
    return min(timeit.repeat(function, number=number, repeat=repeat, timer=clock)) / number


def start(code):
    """Seconds that a fresh interpreter takes to run a line."""
    return best(lambda: subprocess.run([sys.executable, "-c", code], check=True))


def results():
    """Yield every measurement: description, value and promised limit."""
    n_gpu, batch = np.geomspace(1, 512, 1000)[:, None], np.geomspace(1, 4096, 1000)
    yield "one toy latency, in us", 1e6 * best(lambda: latency(8.0, 32.0), 10_000), 10
    yield "a million of them, in us each", best(lambda: latency(n_gpu, batch), 3), 0.1
    for name, (_, limit, author) in FRONTIERS.items():
        about = f"a frontier, {name}, in CPU s (the author's program: {author})"
        yield about, best(lambda name=name: frontier(name), clock=time.process_time), limit
    yield "a million scattered points with pipelines, in s", best(points, repeat=2), 3
    yield "import inferlib, in s above a bare interpreter", start("import inferlib") - start("pass"), 0.3


def main():
    broken = False
    for what, value, limit in results():
        broken |= value > limit
        print(f"{what}: {value:.3g} (at most {limit:.3g}){' <- BROKEN' if value > limit else ''}", flush=True)
    sys.exit(broken)


if __name__ == "__main__":
    main()
