"""Tables of the catalogue."""

import csv
from importlib.resources import files

import pandas as pd

from book.frames import frame
from inferlib.units import factor
from tokenprice import catalog


@frame()
def models():
    """Return a table of the catalogue's models.

    One row per model: attention, layers, total and active parameters (billions), width of the residual stream and of a
    head, KiB of cache per token at 16 bits, positions its configuration allows.
    """
    for name in catalog.models():
        model = catalog.load_model(name)
        heads = (int(getattr(group.attention, "head_dim", 0)) for group in model.layers)
        kinds = " and ".join(sorted({group.attention.kind for group in model.layers}))
        windows = sorted({int(g.attention.window) for g in model.layers if g.attention.window is not None})
        yield {
            "model": name, "attention": kinds + "".join(f", window {w:,}" for w in windows),
            "layers": int(model.n_layers), "parameters": model.n_params / 1e9, "active": model.n_active / 1e9,
            "width": int(model.d_model), "head": max(heads) or "latent",
            "cache": model.cache_bytes() / factor("KiB"), "context": model.max_context or "",
        }  # fmt: skip


@frame()
def chips():
    """Return a table of the catalogue's chips; an empty cell is a number that no vendor states.

    One row per chip: dense TFLOP/s at 16 and 8 bits, memory (GB) and its bandwidth (TB/s), FLOP per byte at 16 bits,
    chips in a scale-up domain and one-way GB/s of each, one-way GB/s of its network.
    """
    for name in catalog.chips():
        chip = catalog.load_chip(name)
        eight = chip.peaks.get("fp8", chip.peaks.get("int8"))
        yield {
            "chip": name, "16 bit": _in(chip.peaks.get("bf16", chip.peaks.get("fp16")), "TFLOP/s"),
            "8 bit": _in(eight, "TFLOP/s"), "memory": _in(chip.memory_capacity, "GB"),
            "bandwidth": _in(chip.memory_bandwidth, "TB/s"),
            "FLOP/B": chip.flops / chip.memory_bandwidth if chip.format in ("bf16", "fp16") else "",
            "domain": "" if chip.scale_up_size is None else int(chip.scale_up_size), "linked by": chip.topology,
            "links": _in(chip.scale_up_bandwidth, "GB/s"), "network": _in(chip.scale_out_bandwidth, "GB/s"),
            "watts": _in(chip.power, "W"), "usd/h": _in(chip.price, "1"),
        }  # fmt: skip


def _in(value, unit):
    return "" if value is None else value / factor(unit)


def served():
    """Return a table of the stored configurations of models served today.

    One row per configuration: parameters and active parameters (billions), KiB of cache per token at 16 bits (growth
    near 131,072 tokens, where windows are full), MB of state per sequence, GB of its checkpoint as stored, positions
    its configuration allows, features beyond plain attention, and why its formats are unknown.
    """
    rows = []
    for name in catalog.served():
        model = catalog.load_model(name)
        stored = sum(model.weight_bytes("published").values()) / 1e9 if model.formats else None
        grown = (model.cache_bytes(2**17) - model.cache_bytes(2**17 - 2**10)) / 2**10
        rows.append({
            "model": name, "parameters": model.n_params / 1e9, "active": model.n_active / 1e9,
            "cache": grown / factor("KiB"), "state": model.state_bytes() / 1e6, "stored": stored,
            "context": model.max_context,
            "remark": "; ".join(filter(None, [model.unusual, *map(model.notes.get, ("formats", "assumed"))])),
        })  # fmt: skip
    return pd.DataFrame(rows).astype(object).where(lambda t: t.notna(), "")


def _v32():
    return catalog.load_model("deepseek-ai/DeepSeek-V3.2")


LOOSE = ("between", "about")  # model cards may count both embedding tables, one, or none
COUNTED = {
    "parameters": lambda model: model.n_params,
    "active parameters": lambda model: model.n_active,
    "cache bytes of a token": lambda model: model.cache_bytes(),
    "cache values of a token": lambda model: model.cache_values(),
    "GiB of cache at 1,048,576": lambda model: model.cache_bytes(2**20) / 2**30,
    "share of the cache of DeepSeek-V3.2 at 1,000,000": lambda model: (
        model.cache_values(10**6) / _v32().cache_values(10**6)
    ),
    "share of the FLOP of DeepSeek-V3.2 at 1,000,000": lambda model: (
        sum(model.flops(10**6).values()) / sum(_v32().flops(10**6).values())
    ),
}


@frame()
def counts(whose):
    """Compare this library's counts with those of transformers' code and of model cards.

    ``whose``: ``"published"`` (models of the catalogue) or ``"served"`` (configurations). Returns one row per number:
    model, quantity, published (without parts outside the language model, see the note) and counted (parameters in
    billions), the least count (without embedding tables, where cards differ in that), the difference, the required
    agreement (``exact``, ``rounded``, ``1%``, ``between`` the least and the full count, or ``about``), the resolution
    of the published number, note and source.
    """
    text = (files("tokenprice.catalog") / f"{whose}_counts.csv").read_text("utf-8")
    for row in csv.DictReader(text.splitlines()):
        if row["quantity"] not in COUNTED:
            continue
        model, theirs = catalog.load_model(row["model"]), float(row["published"])
        theirs -= float(row.get("left_out") or 0)
        ours, parts = COUNTED[row["quantity"]](model), model.parameters()
        least = ours - parts["embeddings"] - parts.get("head", 0) if row["agreement"] in LOOSE else ours
        scale = 1e9 if "parameters" in row["quantity"] else 1
        yield {
            "model": row["model"], "quantity": row["quantity"], "published": theirs / scale, "counted": ours / scale,
            "least": least / scale, "difference": "none" if ours == theirs else f"{ours / theirs - 1:+.2%}",
            "agreement": row["agreement"], "resolution": float(row["resolution"]) / scale, "note": row["note"],
            "source": row["source"],
        }  # fmt: skip
