"""What is measured: tensors of a step, the grid of points that fit, the rows. No PyTorch; counts are inferlib's."""

import argparse
import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path

from inferlib import load_model

STAGES = ("check", "ceilings", "sparse", "breakdown", "dense", "prefill")
DENSE = ("Llama 3 8B", "Qwen3 4B", "Qwen3 32B", "Llama 3 70B")
SPARSE = ("Qwen3 30B-A3B", "Mixtral 8x7B")

COARSE, FINE = (1, 4, 16, 64, 256), (2, 8, 32, 128)  # batches of the first pass, and of the second
CONTEXTS = (1024, 4096, 16384, 32768)
THIN = [(batch, context) for batch in (1, 16) for context in (1024, 16384)]  # also eager and compiled
HALVED = [(batch, 4096) for batch in (1, 64)]  # also with half of the layers: is time linear in them?
PROMPTS = [(batch, tokens) for batch in (1, 8) for tokens in (128, 512, 2048, 8192)]
PROFILED = [(1, 1024), (16, 4096), (64, 4096), (256, 1024)]

RESERVE = 3 * 2**30  # bytes for libraries' workspaces and for fragments

MACHINE = ("gpu", "driver", "watts_limit", "torch", "cuda", "python", "date", "command")
POINT = ("stage", "what", "model", "layers", "mode", "batch", "tokens", "context", "m", "n", "k")
COLUMNS = (
    *POINT,
    *("status", "seconds", "lower", "upper", "repeats", "calls"),
    *("bytes", "cache_bytes", "flop", "experts", "sm_mhz", "watts", "note"),
    *MACHINE,
)


def tensors(model):
    """Shapes of the tensors outside of the layers, and of those of one layer, as the step multiplies them."""
    (group,) = model.layers
    attention, block, d = group.attention, group.feed_forward, model.d_model
    heads, cached = attention.n_heads * attention.head_dim, attention.n_kv_heads * attention.head_dim
    layer = {"norm": (d,), "qkv": (heads + 2 * cached, d), "out": (d, heads), "block_norm": (d,)}
    if attention.qk_norm:
        layer |= {"q_norm": (attention.head_dim,), "k_norm": (attention.head_dim,)}
    if model.sparse:
        n, width = block.n_experts, block.d_expert
        layer |= {"router": (n, d), "up": (n, 2 * width, d), "down": (n, d, width)}
    else:
        layer |= {"up": (2 * block.d_ff, d), "down": (d, block.d_ff)}
    ends = {"embedding": (model.vocab_size, d), "last_norm": (d,)}
    return ends if model.tied else ends | {"head": (model.vocab_size, d)}, layer


def cut(model, layers):
    """The same model with fewer layers."""
    return model.replace(layers=(model.layers[0].replace(count=layers),))


def tiny(model):
    """The same structure with two narrow layers: for checks, and to try the script."""
    (group,) = model.layers
    attention = group.attention.replace(n_heads=8, n_kv_heads=2, head_dim=16)
    widths = dict(n_experts=8, n_active=2, d_expert=48) if model.sparse else dict(d_ff=96)
    group = group.replace(count=2, attention=attention, feed_forward=group.feed_forward.replace(**widths))
    return model.replace(d_model=64, vocab_size=160, layers=(group,))


@dataclass(frozen=True)
class Point:
    """One step: ``tokens`` new positions of each sequence, the last of ``context``; no layers if none fit."""

    stage: str
    model: str
    layers: int
    batch: int
    tokens: int
    context: int
    mode: str = "graph"


def memory(model, point):
    """Bytes that a point needs on the device; activations are bounded generously, not counted."""
    _, layer = tensors(model)
    rows = point.batch * point.tokens
    pairs = rows * (model.layers[0].feed_forward.n_active if model.sparse else 1)
    activations = 4 * rows * (layer["qkv"][0] + 4 * model.d_model) + 8 * pairs * layer["up"][-2]
    return (
        model.bytes_held(point.batch, point.context)
        + activations
        + 8 * point.batch * model.vocab_size
        + RESERVE
    )


def fitted(model, point, available):
    """The point with all, half, a quarter or an eighth of the layers, whatever fits first; else with none."""
    for layers in (model.n_layers // part for part in (1, 2, 4, 8)):
        if memory(cut(model, layers), point) <= available:
            return replace(point, layers=layers)
    return replace(point, layers=0)


def counts(model, point):
    """What a step must read and compute; of experts, those expected under uniform routing."""
    prompt = point.tokens > 1
    read = model.bytes_read(point.batch * point.tokens, point.context)
    cache = point.batch * model.cache_bytes(point.context)
    flop = model.prefill_flops(point.tokens) if prompt else model.flops(point.context)
    weights = sum(n for part, n in read.items() if part != "cache")
    found = {"bytes": weights + cache, "cache_bytes": cache, "flop": point.batch * sum(flop.values())}
    return {name: round(value) for name, value in found.items()}


def points(stage, models, available, load=load_model):
    """The points of a stage in the order of measuring: a coarse grid of every model before the rest."""
    found = []
    for batches in (COARSE, FINE):
        for name in models:
            if stage in ("dense", "sparse"):
                grid = [(batch, 1, context) for batch in batches for context in CONTEXTS]
            elif batches is FINE:
                continue
            elif stage == "prefill":
                grid = [(batch, tokens, tokens) for batch, tokens in PROMPTS]
            else:
                grid = [(batch, 1, context) for batch, context in PROFILED]
            model = load(name)
            mine = [fitted(model, Point(stage, name, 0, *sizes), available) for sizes in grid]
            if stage == "prefill":
                mine = [replace(p, mode="eager") for p in mine]
            if stage in ("dense", "sparse"):
                thin = [p for p in mine if p.layers and (p.batch, p.context) in THIN]
                mine += [replace(p, mode=mode) for p in thin for mode in ("eager", "compiled")]
                mine += [
                    replace(p, layers=p.layers // 2)
                    for p in mine
                    if p.layers > 1 and (p.batch, p.context) in HALVED
                ]
            found += sorted(mine, key=lambda p: -p.layers)  # neighbours share their weights
    return found


class Rows:
    """A CSV file that grows row by row, each with the columns of its machine; measured points are not repeated."""

    def __init__(self, file, machine):
        self.file, self.machine, self.done = Path(file), machine, set()
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._write(dict(zip(COLUMNS, COLUMNS, strict=True)))
        with self.file.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != COLUMNS:
                raise ValueError(
                    f"{self.file.name} has other columns than this script writes; choose another --out"
                )
            self.done = {self._key(row) for row in rows}

    def has(self, **point):
        """Whether the point was measured on this GPU, or found impossible."""
        return self._key(self.machine | point) in self.done

    def add(self, **row):
        """Write a row; it is on disk before the next point starts."""
        row = self.machine | row
        self._write(row)
        self.done.add(self._key(row))

    def _key(self, row):
        return tuple(str(row.get(name, "")) for name in ("gpu", *POINT))

    def _write(self, row):
        with self.file.open("a", newline="", encoding="utf-8") as file:
            short = {n: f"{value:.7g}" if isinstance(value, float) else value for n, value in row.items()}
            csv.DictWriter(file, COLUMNS).writerow(short)


def arguments(given=None):
    """The command line, read."""
    parser = argparse.ArgumentParser(prog="python -m measurements.measure", description="Measure one GPU.")
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument(
        "--out", type=Path, required=True, help="CSV file of the rows; the same again to go on"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no new point starts")
    parser.add_argument("--try", dest="tiny", action="store_true", help="narrow models, on a CPU too")
    return parser.parse_args(given)
