"""Compare the chapters under arithmetic of other CPUs than this one, as far as this one can stand in for them.

NumPy, OpenBLAS and the C library choose their routines by what the CPU can do, and those add in different
orders. An older CPU is had by telling them to leave out the newer instructions.

Usage: python .ci/arithmetic.py [--jobs N] [CHAPTER ...]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def cpus():
    """Name of a CPU to stand in for, to the environment that makes this one work like it."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    present = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    newer = [name for name in present if name.startswith(("AVX512", "X86_V4"))]
    found = {"no vector instructions beyond the baseline": (present, "Prescott", "-AVX512F,-AVX2,-FMA")}
    if newer:
        found = {"no AVX-512": (newer, "Haswell", "-AVX512F")} | found
    return {
        name: {
            "NPY_DISABLE_CPU_FEATURES": " ".join(disabled),
            "OPENBLAS_CORETYPE": core,
            "OPENBLAS_NUM_THREADS": "1",
            "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={libc}",
        }
        for name, (disabled, core, libc) in found.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", default=["book"])
    parser.add_argument("--jobs", default="2")
    args = parser.parse_args()
    failed = []
    for name, environment in cpus().items():
        print(f"The chapters on a CPU with {name}: two to four minutes", flush=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            args.jobs,
            "--dist",
            "loadfile",
            *args.chapters,
        ]
        # What another arithmetic has computed and kept is not to be compared, but for the frontiers: they take most of
        # the time, and what chapters show of them is far from the last digits.
        with tempfile.TemporaryDirectory() as kept:
            frontiers = Path(kept, "kept")
            frontiers.mkdir()
            for frontier in (ROOT / "_build" / "kept").glob("frontier-*"):
                shutil.copy(frontier, frontiers)
            settings = os.environ | environment | {"TOKENPRICE_BUILD": kept}
            if subprocess.run(command, cwd=ROOT, env=settings).returncode:
                failed.append(name)
    sys.exit("".join(f"Chapters differ on a CPU with {name}\n" for name in failed) or 0)


if __name__ == "__main__":
    main()
