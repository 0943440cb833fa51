"""Rows that survive: appended one at a time, found again by a rerun; a budget of time; the machine."""

import csv
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

KEY = ("gpu", "model", "layers", "precision", "mode", "batch", "context")
STEPS = (
    "stage",
    *KEY,
    "layers_total",
    "status",  # ok, does not fit, unsupported, failed, left out
    "seconds",  # median
    "lower",  # quartiles
    "upper",
    "repeats",
    "host_seconds",  # wall clock per step over all repeats
    "weight_bytes",
    "cache_bytes",
    "flop",
    "operations",  # operations launched per step; a library may launch more than one kernel for one
    "attention",  # kernel used
    "experts",  # kernel used
    "experts_touched",  # distinct experts of a layer, measured, mean of layers
    "experts_expected",  # under uniform routing
    "sm_mhz",
    "memory_mhz",
    "watts",
    "celsius",
    "run",
    "note",
)
CEILINGS = (
    "gpu",
    "quantity",
    "method",
    "precision",
    "m",
    "n",
    "k",
    "bytes",
    "flop",
    "launches",
    "status",
    "seconds",
    "lower",
    "upper",
    "repeats",
    "rate",
    "unit",
    "sm_mhz",
    "memory_mhz",
    "watts",
    "celsius",
    "run",
    "note",
)
BREAKDOWN = (
    "gpu",
    "model",
    "layers",
    "precision",
    "mode",
    "batch",
    "context",
    "status",
    "kind",
    "kernel",
    "calls",
    "seconds",
    "step_seconds",
    "run",
    "note",
)
CHECKS = (
    "gpu",
    "model",
    "precision",
    "kernels",
    "error",
    "limit",
    "same_experts",
    "status",
    "run",
    "note",
)
CEILING_KEY = ("gpu", "quantity", "method", "precision", "m", "n", "k", "bytes", "launches")
FINISHED = ("ok", "does not fit", "unsupported", "failed")


class Table:
    """A CSV file that grows row by row.

    A row is on disk before the next point starts. ``done(row)`` says whether an earlier run finished the
    same point; what was left out is tried again, and what failed only if ``retry``.
    """

    def __init__(self, file, columns, key, retry=False):
        self.file, self.columns, self.key = Path(file), tuple(columns), tuple(key)
        self.finished = {status for status in FINISHED if not (retry and status == "failed")}
        self._done = set()
        if self.file.exists():
            self._mend()
            for row in self.rows():
                self._note(row)
        else:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._write(self.columns)

    def rows(self):
        """All rows, as dictionaries of text."""
        with self.file.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def done(self, row):
        """Whether this point has a finished row."""
        return self._key(row) in self._done

    def append(self, **row):
        """Write one row; a column that the row does not name stays empty."""
        unknown = set(row) - set(self.columns)
        if unknown:
            raise LookupError(f"{self.file.name} has no column {', '.join(sorted(unknown))}")
        self._write([_text(row.get(name)) for name in self.columns])
        self._note(row)

    def _key(self, row):
        return tuple(_text(row.get(name)) for name in self.key)

    def _note(self, row):
        if row["status"] in self.finished:
            self._done.add(self._key(row))

    def _mend(self):
        """Drop half a row that a killed run left at the end, and refuse a file with other columns."""
        content = self.file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            self.file.write_bytes(whole)
        first = whole.decode("utf-8").splitlines()[:1]
        if not first:
            self._write(self.columns)
        elif first[0].split(",") != list(self.columns):
            raise ValueError(
                f"{self.file} was written by another version: move it away or name another --out"
            )

    def _write(self, values):
        with self.file.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(values)
            file.flush()
            os.fsync(file.fileno())


def _text(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.7g}"
    return str(value).replace("\r", " ").replace("\n", " ")


class Budget:
    """Seconds a stage may take. A point starts only if the longest one so far would still end in time."""

    def __init__(self, seconds, reserve=5.0, clock=time.monotonic):
        self.seconds, self.reserve, self.clock = seconds, reserve, clock
        self.start = clock()
        self.longest = 0.0

    def left(self):
        return self.seconds - (self.clock() - self.start)

    def allows(self):
        return self.left() >= self.longest + self.reserve

    def spent_on_point(self, seconds):
        self.longest = max(self.longest, seconds)


def now():
    """The time in UTC; it names a run."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def machine(device, arguments):
    """What a reader must know about the machine and the run. No host name and no path."""
    import torch

    facts = {
        "run": now(),
        "command": " ".join(["python", "measurements/decode.py", *arguments]),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpu": "cpu",
    }
    try:
        import triton

        facts["triton"] = triton.__version__
    except ImportError:
        facts["triton"] = None
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        facts |= {
            "gpu": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "memory_bytes": properties.total_memory,
            "multiprocessors": properties.multi_processor_count,
            "l2_bytes": getattr(properties, "L2_cache_size", None),
            "driver": smi("driver_version"),
            "sm_mhz_max": smi("clocks.max.sm"),
            "memory_mhz_max": smi("clocks.max.memory"),
            "power_limit_watts": smi("power.limit"),
            "ecc": smi("ecc.mode.current"),
        }
    return facts


def add_machine(file, facts):
    """Add a run to machine.json, a list of runs."""
    file = Path(file)
    runs = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps([*runs, facts], indent=1) + "\n", encoding="utf-8")
    part.replace(file)


def smi(query):
    """One answer of nvidia-smi, or None where there is none."""
    if not shutil.which("nvidia-smi"):
        return None
    try:
        call = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
        answer = subprocess.run(call, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.strip().splitlines()[0].strip() if answer.strip() else None


def sample():
    """Clocks, power and temperature at this moment, as columns; empty where they cannot be read."""
    names = ("sm_mhz", "memory_mhz", "watts", "celsius")
    answer = smi("clocks.sm,clocks.mem,power.draw,temperature.gpu")
    values = [value.strip() for value in answer.split(",")] if answer else []
    return dict(zip(names, values, strict=True)) if len(values) == len(names) else {}


def say(text):
    """A line for who watches."""
    print(text, file=sys.stderr, flush=True)
