"""Constants of chips from tables of timed operators: ``python -m book.serving.operators`` writes them.

``operators/`` has fits to 24.5 million public operator timings: one line per chip, operator and format, with median,
least and greatest over engines. This module adds the catalogue's names and SI units, and writes ``operators.toml`` of
the library. Nothing is fitted here.
"""

from functools import cache
from importlib.resources import files

import pandas as pd

from book import stored

CHIPS = {
    "a100_sxm": "A100 80GB", "h100_sxm": "H100 SXM", "h200_sxm": "H200", "b200_sxm": "B200", "b300_sxm": "B300",
    "gb200": "GB200 NVL72", "gb300": "GB300 NVL72", "l40s": "L40S", "rtx_pro_6000_server": "RTX PRO 6000",
}  # fmt: skip
FORMATS = {
    "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8 block", "nvfp4": "fp4", "w4a16_mxfp4": "mxfp4",
    "int4_wo": "int4", "int8_wo": "int8",
}  # fmt: skip
# MXFP4 experts with 8-bit activations, where a chip multiplies those.
EIGHT_BIT = "w4a8_mxfp4_mxfp8"
USABLE, FEW = 0.25, 90  # largest mean error of a usable fit, and fewest timings


@cache
def _read(name):
    return stored.rows(f"serving/operators/{name}.csv")


def constants():
    """All constants of all chips."""
    return {name: _chip(key) for key, name in CHIPS.items()}


def _chip(key):
    lines = _read("consensus")
    lines = lines[lines.chip == key]
    found = {"gemm": {}, "experts": {}, "attention": {}, "reduce": {}, "library": {}}
    for line in lines.itertuples():
        kind, _, rest = line.op.partition(" ")
        start = _three(line, "t0_us", 1e-6)
        share = [line.share, line.share_low, line.share_high]
        if kind == "all-reduce":
            way, _, chips = rest.partition(" ")
            into = {"graph": "reduce", "nccl": "library"}.get(way)
            if into:
                found[into][chips] = {"latency": start, "bandwidth": [1e9 * value for value in share]}
            continue
        name = FORMATS.get(line.dtype.removeprefix("kv "))
        if name is None or kind == "moe":
            continue
        entry = found[kind].setdefault(name, {})
        if (
            kind == "gemm"
            and line.mean_log_error > USABLE
            and not (rest == "decode" and _gemm(key, line.dtype))
        ):
            entry["unusable"] = (
                True  # the other constants are unusable too, so another chip's timings stand in
            )
        if rest == "prefill":
            entry["prefill"] = share
        elif kind == "gemm":
            entry |= _gemm(key, line.dtype) or {"start": start, "depth": [0.0] * 3, "share": share}
        else:
            entry |= {"start": start, "share": share}
    found["experts"] = _experts(key)
    found["gemm"] = {
        name: entry for name, entry in found["gemm"].items() if "start" in entry and "unusable" not in entry
    }
    return found


def _gemm(key, dtype):
    """Start, depth and share of a matrix product from the three-constant fits that are usable, over engines."""
    table = _read("gemm")
    own = table[(table.chip == key) & (table.dtype == dtype) & table.usable]
    return None if own.empty else _constants(own, own.median(numeric_only=True), "ns_per_k", 1e-9)


def _experts(key):
    """The block of experts for each format: the fastest kernel at a usual size, as engines choose it."""
    table = _read("experts")
    odd = table.kernel.str.contains("nongated|situ")  # two matrices an expert, or another activation
    own = table[(table.chip == key) & (table.n > FEW) & ~odd]
    best = own.groupby("dtype").error_three.transform("min")
    own = own[(own.error_three < USABLE) | (own.error_three == best)]
    # 32 experts of 4 MB, on a chip of 4 TB/s
    seconds = own.t0_us + 32 * own.us_per_expert + 32 / own.share
    depth, prompts = ("us_per_expert", 1e-6), _prompts(key)
    return {
        name: _constants(own.loc[same], own.loc[seconds[same].idxmin()], *depth) | prompts[name]
        for name, same in _by_format(own).items()
    }


def _prompts(key):
    """Share of the peak that blocks of experts reach in prefill, by format: the fastest kernel at a usual size.

    ``prompts.csv`` has fits to timings of aiconfigurator 0.12 with 512 to 16,384 tokens and realistic loads: a start,
    and the longer of reading and of arithmetic at a share of the peak, which falls as experts get narrower.
    """
    table = _read("prompts")
    table = table[table.chip == key]
    found = {}
    for name, same in _by_format(table).items():
        own = table.loc[same]
        taken = own.loc[own.usual_us.idxmin()]
        columns = {"prefill": "prefill", "half": "half_width"}
        found[name] = {to: [float(taken[at]), own[at].min(), own[at].max()] for to, at in columns.items()}
    return found


def _by_format(table):
    """The rows of each format of the library, whatever their kernels multiply in."""
    names = table.dtype.replace({EIGHT_BIT: "w4a16_mxfp4"}).map(FORMATS)
    return table.groupby(names, sort=False).groups


def _constants(own, taken, depth, scale):
    """Constants of a kernel, with the range over all engines."""
    columns = {"start": ("t0_us", 1e-6), "depth": (depth, scale), "share": ("share", 1)}
    return {
        name: [float(by * value) for value in (taken[column], own[column].min(), own[column].max())]
        for name, (column, by) in columns.items()
    }


def _three(line, name, scale):
    short = name.removesuffix("_us")
    return [scale * getattr(line, column) for column in (name, f"{short}_low", f"{short}_high")]


def exchange():
    """Share of a network's data-sheet bandwidth that dispatch and combine of experts reach: median and range."""
    table = _read("exchange")
    line = 50.0  # GB/s, one way: the 400 Gbit/s adapter that the table names
    shares = pd.concat([table.dispatch_gbs, table.combine_gbs]) / line
    return [float(shares.median()), float(shares.min()), float(shares.max())]


def pcie():
    """Bytes per second of the bus in all-reduces of cards on PCIe: the first box of ``pcie.csv``, and the range."""
    bus = 1e9 * _read("pcie").bus_gbs
    return [bus[0], bus.min(), bus.max()]


def memory():
    """Share of the data-sheet bandwidth that a kernel that only reads reaches, by kind of memory: median and range."""
    table = _read("memory")
    shares = (table.read_gbs / table.line_gbs).groupby(table.memory)
    return {kind: [own.median(), own.min(), own.max()] for kind, own in shares}


def as_toml():
    """The text of ``operators.toml``."""
    shared = {"exchange": exchange(), "pcie": pcie(), "memory": memory()}
    return stored.filled("serving/operators.toml.jinja", **shared, chips=constants())


if __name__ == "__main__":
    (files("tokenprice") / "operators.toml").write_text(as_toml(), "utf-8", newline="\n")
