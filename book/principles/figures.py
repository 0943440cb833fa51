"""Figures of the chapter on first principles: data first, pictures second; each draws the chapter's case."""

import numpy as np
import pandas as pd
import xarray as xr

from book import style
from inferlib.principles import roofline
from inferlib.principles.profile import profile_of
from inferlib.system import Breakdown, System, Workload, format_bytes
from inferlib.transformer import visible_context
from tokenprice import Question, ask
from tokenprice.deployment import layouts


def profile(case):
    """The profile of the case's model in its formats."""
    return profile_of(case.model, case.workload.weights, case.workload.cache)


def full(case, context=None):
    """The case with as many users as fit, or with one if none fits (so that the answer says why)."""
    work = case.workload
    context = work.context if context is None else context
    one = Workload(1, context, work.weights, work.cache)
    return case.replace(batch=max(roofline.largest_batch(case.model, case.machine, one), 1), context=context)


def _step(case):
    return roofline.decode_step(case.model, case.machine, case.workload)


def layer_operators(model, batch, context, weights="bf16", cache="bf16", group=-1):
    """The operators of one layer in a decode step: what each calculates and reads.

    Examples
    --------
    >>> from inferlib import load_model
    >>> table = layer_operators(load_model("Llama 3 70B"), batch=2, context=1000)
    >>> products = 8192 * (8192 + 2 * 1024) + 8192**2 + 3 * 8192 * 28672
    >>> bool(table.weight_bytes.sum() == 2 * products), int(table.cache_bytes.sum()) == 2 * 2 * 8 * 128 * 1000 * 2
    (True, True)
    >>> int(table.flop.sum()) == 2 * (2 * products + 2 * 2 * 64 * 128 * 1000)
    True
    >>> table = layer_operators(load_model("DeepSeek V3"), batch=1, context=1000)
    >>> table.cache_bytes[["scores", "values"]].tolist() == [(512 + 64) * 1000 * 2, 0]
    True
    >>> table.flop[["scores", "values"]].tolist() == [2 * 128 * (512 + 64) * 1000, 2 * 128 * 512 * 1000]
    True
    """
    layers = model.layers[group]
    attention, block, d = layers.attention, layers.feed_forward, model.d_model
    p, a = format_bytes(weights), format_bytes(cache)
    rows = {name: (2 * n * batch, n * p, 0.0) for name, n in attention.matrices(d).items()}
    seen = visible_context(attention, context)
    pairs = {name: f * seen * batch for name, f in attention.pair_flops(True).items()}
    kept = attention.cache_values() * seen * batch * a
    output = rows.pop("output")
    # Keys are read for the scores, values for the sum; the latent of MLA serves both and is read once.
    share = {"scores": 1.0, "values": 0.0} if attention.kind == "MLA" else {"scores": 0.5, "values": 0.5}
    rows |= {name: (f, 0.0, kept * share[name]) for name, f in pairs.items()}
    rows["output"] = output
    touched = block.weights(d, batch=batch)
    rows |= {
        name: (2 * n * batch, touched[name] * p, 0.0) for name, n in block.weights(d, active=True).items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["flop", "weight_bytes", "cache_bytes"])
    return table.rename(index=lambda name: f"{name} projection" if name in attention.matrices(d) else name)


def draw_layer(case):
    """One layer as a column of operators: how long the case's chips together read and calculate each."""
    work, chip, count = case.workload, case.machine.chip, case.machine.count
    table = layer_operators(case.model, work.batch, work.context, work.weights, work.cache)
    ax = style.panels(7, 0.62 * len(table) + 1.1, layout=None)
    reading = 1e6 * roofline.memory_time(chip, table.weight_bytes, count)
    cached = 1e6 * roofline.memory_time(chip, table.cache_bytes, count)
    calculating = 1e6 * roofline.arithmetic_time(chip, table.flop, count)
    if reason := _step(case).reason:
        ax.set_title(f"no whole step: {reason}", fontsize=9, pad=24)
    y = range(len(table))
    ax.barh(y, reading, height=0.34, color=style.BLUE, label="reading weights")
    ax.barh(y, cached, height=0.34, color=style.GREEN, label="reading the cache")
    ax.barh([i + 0.32 for i in y], calculating, height=0.2, color=style.ORANGE, label="multiplying")
    end = max(reading.max(), cached.max(), calculating.max())
    for i, row in enumerate(table.itertuples()):
        size = _si(row.weight_bytes + row.cache_bytes, "B")
        longest = max(reading[i], cached[i])
        style.words(ax, longest + 0.01 * end, i, f"{size}, {_si(row.flop, 'FLOP')}", fontsize=8)
    style.name_rows(ax, table.index)
    ax.set(ylim=(len(table) - 0.3, -0.5), xlim=(0, 1.3 * end), xlabel=f"microseconds on {case.machine}")
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncol=3)
    return ax


def _si(value, unit):
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def draw_chip(chip, seconds=1e-3):
    """Draw a chip's memory, and what it can read and compute in some time, as squares on one scale: bytes, and FLOP."""
    ax = style.panels(7.0, 3.4)
    read = chip.memory_bandwidth * seconds
    parts = {
        "multipliers\ncould use": (roofline.ridge_point(chip) * read, style.ORANGE),
        "memory\nholds": (chip.memory_capacity, "none"),
        "memory\ndelivers": (read, style.BLUE),
        "links to\nits box carry": ((chip.scale_up_bandwidth or 0) * seconds, style.RED),
        "network\ncarries": ((chip.scale_out_bandwidth or 0) * seconds, style.RED),
    }
    parts = {name: part for name, part in parts.items() if part[0]}
    x, wide = 0.0, 0.3 * parts["multipliers\ncould use"][0] ** 0.5
    for name, (size, colour) in parts.items():
        side = size**0.5
        x += max(wide - side, 0) / 2
        edge = style.BLUE if colour == "none" else colour
        style.box(ax, x, 0, side, side, facecolor=colour, edgecolor=edge)
        ax.text(x + side / 2, -0.02 * wide, f"{name}\n{_si(size, 'B')}", ha="center", va="top", fontsize=9)
        x += side + max(wide - side, 0) / 2 + 0.05 * wide
    style.canvas(ax, (-0.05 * wide, x), (-0.75 * wide, wide / 0.3))
    return ax


def draw_roofline(case, prompt=2048):
    """The roofline of the case's chip with decode steps of its model on it, and one prompt."""
    ax, chip = style.panels(6.4, 3.8, layout=None), case.machine.chip
    intensity = np.geomspace(0.5, 5000, 200)
    ax.plot(intensity, roofline.attainable_flops(chip, intensity) / 1e12, color=style.INK)
    points = intensity_over_batch(profile(case), (1, 8, 64, 512), (1, 4096, 32768))
    for own, colour, mark, label in zip(
        points.T, (style.BLUE, *style.shades(2)), "o^v", ("short", "4K", "32K"), strict=True
    ):
        at = own.to_numpy()
        reached = roofline.attainable_flops(chip, at) / 1e12
        line = {"color": colour, "markersize": 6, "linewidth": 0.8, "alpha": 0.85}
        ax.plot(at, reached, f"{mark}:", label=f"decode, {label} context", **line)
        # a longer context moves every batch; its largest is named too, so that the paths can be compared
        for x, y, b in zip(at, reached, points.batch.values, strict=True):
            if label == "short" or b == points.batch.values[-1]:
                text = {"color": style.BLUE if label == "short" else style.GREEN, "fontsize": 8}
                ax.annotate(f"batch {b:.0f}", (x, y), (8, -10), textcoords="offset points", **text)
    at = roofline.prefill_intensity(profile(case), prompt)
    reached = roofline.attainable_flops(chip, at) / 1e12
    ax.plot(at, reached, "s", color=style.ORANGE, markersize=7, label=f"a prompt of {prompt:,} tokens")
    ridge = roofline.ridge_point(chip)
    ax.axvline(ridge, color=style.FAINT, linewidth=1, linestyle=":")
    ax.text(ridge * 1.06, 1, f"{ridge:.0f} FLOP/B", fontsize=8, color=style.FAINT)
    ax.text(ridge / 1.3, 1, "memory-bound", ha="right", fontsize=9, style="italic")
    ax.text(ridge * 1.06, 0.55, "compute-bound", fontsize=9, style="italic")
    ax.set(ylim=(0.4, 2 * chip.flops / 1e12), xscale="log", yscale="log")
    ax.set(xlabel="FLOP for every byte read", ylabel=f"TFLOP/s of one {chip.name}")
    ax.legend(loc="upper left")
    return ax


def bounds(case):
    """Return the two bounds of a step by name: everything overlaps, or operators run in turn."""
    step, work, machine = _step(case), case.workload, case.machine
    at = machine.chip, profile(case), machine.count, work.batch, work.context
    in_turn = Breakdown(roofline.in_turn_stages(*at)) if step.feasible else step
    return {"all overlaps": step, "operators in turn": in_turn}


def kinds(case, prompt=2048):
    """Return what the case's explorer reads and multiplies in decode steps of several batches and in one prefill."""
    own, machine, batch = profile(case), case.machine, case.workload.batch
    steps = {
        f"a token for {n:g} user{'s' if n > 1 else ''}": _step(case.replace(batch=n))
        for n in sorted({1, batch, 4 * batch})
    }
    alone = _step(case.replace(batch=1, context=prompt))
    if alone.feasible:
        reading = roofline.memory_time(machine.chip, roofline.weight_data(own, prompt), machine.count)
        work = roofline.prefill_work(own, prompt)
        multiplying = roofline.arithmetic_time(machine.chip, work, machine.count)
        alone = Breakdown(({"weights": reading, "arithmetic": multiplying},))
    return steps | {f"a prompt of {prompt:,} tokens": alone}


def one_cache_data(prompt=2048, steps=(1, 256, 512, 1024)):
    """The passes of one request: positions of its cache that each reads and writes."""
    passes = {"the prompt": (0, prompt)} | {f"step {n:,}": (prompt + n - 1, 1) for n in steps}
    return pd.DataFrame.from_dict(passes, orient="index", columns=["read", "written"])


def draw_one_cache(case):
    """One request's cache as its prompt writes it and each step reads and extends it."""
    table, each = one_cache_data(), case.model.cache_bytes(format=case.workload.cache)
    ax = style.panels(6.6, 2.9)
    for y, row in enumerate(table.itertuples()):
        reads = f"reads {_si(each * row.read, 'B')}, " if row.read else ""
        ax.barh(y, row.read, 0.46, color=style.GREEN)
        line = {"color": "none", "edgecolor": style.GREEN, "linewidth": 1.5}
        ax.barh(y, row.written, 0.46, left=row.read, **line)
        ax.text(0, y - 0.3, f"{reads}writes {_si(each * row.written, 'B')}", fontsize=8)
        style.words(ax, row.read + row.written, y, f" +{row.written:,}", fontsize=8)
    ends = table.read + table.written
    style.name_rows(ax, table.index)
    ax.set(ylim=(len(table) - 0.6, -0.8), xlim=(0, 1.12 * ends.max()), xlabel="positions in one user's cache")
    return ax


def fits_data(case, *chips):
    """The largest batch by context: a column for the case's machine, and for the same number of each other chip."""
    work, machine = case.workload, case.machine
    works = {n: Workload(1, n, work.weights, work.cache) for n in (1024 * 2**i for i in range(8))}
    systems = {chip.name: System(chip, machine.count) for chip in (machine.chip, *chips)}
    batches = {
        name: {n: roofline.largest_batch(case.model, system, one) for n, one in works.items()}
        for name, system in systems.items()
    }
    return pd.DataFrame(batches).rename_axis("context")


def intensity_over_batch(own, batches, contexts):
    """Arithmetic intensity of decode over the batch, at several contexts."""
    at = xr.Dataset(coords={"batch": np.array(batches, float), "context": np.array(contexts, float)})
    return roofline.decode_intensity(own, at.batch, at.context)


def draw_intensity(case):
    """Intensity grows with the batch until the cache caps it; the dotted line is where the chip is balanced."""
    ax, chip = style.panels(6.4, 3.8, layout=None), case.machine.chip
    data = intensity_over_batch(profile(case), np.geomspace(1, 4096, 121), (0, 1024, 4096, 32768))
    for context, colour in zip(
        data.context.values, (style.BLUE, *style.shades(len(data.context) - 1)), strict=True
    ):
        curve = data.sel(context=context)
        ax.plot(data.batch, curve, color=colour)
        label = "no context" if context == 0 else f"{context / 1024:.0f}K"
        tone = style.GREEN if context else style.BLUE
        ax.annotate(label, (4096, float(curve[-1])), xytext=(5, -3), textcoords="offset points", color=tone)
    ax.axhline(roofline.ridge_point(chip), color=style.FAINT, linestyle=":")
    ax.text(1.1, roofline.ridge_point(chip) * 1.1, f"ridge point of one {chip.name}", fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="batch", ylabel="FLOP for every byte read", xlim=(1, 14000))
    return ax


def fewest_in_boxes(model, chip, weights):
    """Return the fewest chips, in boxes of eight, on which some layout of a model fits; None above eight boxes."""
    for n in range(8, 65, 8):
        asked = Question(model, System(chip, n), weights=weights)
        if any(ask(asked.replace(layout=layout)).feasible for layout in layouts(model, chip, n)):
            return n
    return None
