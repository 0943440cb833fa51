"""The catalogue as tables, for reading."""

from importlib.resources import files

from inferlib import catalog
from inferlib.units import factor


def models():
    """The models of the catalogue.

    Returns
    -------
    pandas.DataFrame
        One row a model: attention, layers, total and active parameters (billions), width of the residual
        stream and of a head, KiB of cache for a token at 16 bits.
    """
    import pandas as pd

    rows = []
    for name in catalog.models():
        model = catalog.load_model(name)
        first = model.layers[0].attention
        kinds = " and ".join(sorted({group.attention.kind for group in model.layers}))
        windows = sorted({int(g.attention.window) for g in model.layers if g.attention.window is not None})
        rows.append(
            {
                "model": name,
                "attention": kinds + "".join(f", window {w:,}" for w in windows),
                "layers": int(model.n_layers),
                "parameters": model.n_params / 1e9,
                "active": model.n_active / 1e9,
                "width": int(model.d_model),
                "head": int(getattr(first, "head_dim", 0)) or "latent",
                "cache": model.cache_bytes() / factor("KiB"),
            }
        )
    return pd.DataFrame(rows)


COUNTED = {
    "parameters": lambda model: model.n_params,
    "active parameters": lambda model: model.n_active,
    "cache bytes of a token": lambda model: model.cache_bytes(),
    "cache values of a token": lambda model: model.cache_values(),
}


def published():
    """Counts of this library beside published ones.

    Returns
    -------
    pandas.DataFrame
        One row a published number: model, quantity, published (less what is not part of the language model,
        see the note) and counted, their difference, note and source.
    """
    import csv

    import pandas as pd

    text = (files("inferlib.catalog") / "published_counts.csv").read_text("utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        if row["quantity"] not in COUNTED:
            continue
        ours = COUNTED[row["quantity"]](catalog.load_model(row["model"]))
        theirs = float(row["published"]) - float(row["left_out"] or 0)
        difference = f"{ours / theirs - 1:+.2%}" if ours != theirs else "none"
        what, scale = (
            (f"{row['quantity']} (billions)", 1e9)
            if "parameters" in row["quantity"]
            else (row["quantity"], 1)
        )
        rows.append(
            (row["model"], what, theirs / scale, ours / scale, difference, row["note"], row["source"])
        )
    columns = ["model", "quantity", "published", "counted", "difference", "note", "source"]
    return pd.DataFrame(rows, columns=columns)


def chips():
    """The chips of the catalogue; an empty cell is a number that no vendor states.

    Returns
    -------
    pandas.DataFrame
        One row a chip: dense TFLOP/s at 16 and 8 bits, memory (GB) and its bandwidth (TB/s), FLOP for every
        byte at 16 bits, chips in a scale-up domain and one-way GB/s of each, one-way GB/s of its network.
    """
    import pandas as pd

    rows = []
    for name in catalog.chips():
        chip = catalog.load_chip(name)
        eight = chip.peaks.get("fp8", chip.peaks.get("int8"))
        rows.append(
            {
                "chip": name,
                "16 bit": _in(chip.peaks.get("bf16", chip.peaks.get("fp16")), "TFLOP/s"),
                "8 bit": _in(eight, "TFLOP/s"),
                "memory": _in(chip.memory_capacity, "GB"),
                "bandwidth": _in(chip.memory_bandwidth, "TB/s"),
                "FLOP/B": chip.flops / chip.memory_bandwidth if chip.format in ("bf16", "fp16") else "",
                "domain": "" if chip.scale_up_size is None else int(chip.scale_up_size),
                "linked by": chip.topology,
                "links": _in(chip.scale_up_bandwidth, "GB/s"),
                "network": _in(chip.scale_out_bandwidth, "GB/s"),
                "watts": _in(chip.power, "W"),
                "usd/h": _in(chip.price, "1"),
            }
        )
    return pd.DataFrame(rows)


def _in(value, unit):
    return "" if value is None else value / factor(unit)
