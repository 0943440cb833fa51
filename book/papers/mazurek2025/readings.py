"""Two readings of section 3.1.2: evidence in print for each, their errors on measurements, and what would decide."""

from functools import partial

import pandas as pd

from book.audit.grading import Reader
from book.frames import frame
from book.papers.mazurek2025 import repair, validation
from book.papers.mazurek2025.systems import (
    CONTEXT,
    MODEL,
    READINGS,
    TRUE,
    largest_batch,
    network_binds,
    speed,
)
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import setup

OWN_MACHINE = "4x8 H100"  # the authors' own machine, whose measurements we do not have


def last_context(true):
    """Return, for each reading, the longest of many contexts up to which a statement is true."""
    steps = range(50, 9000, 50)
    found = {name: [s for s in steps if not true(s, assumed)] for name, assumed in READINGS.items()}
    return {name: min(wrong, default=steps.stop) - steps.step for name, wrong in found.items()}


def faster(own, context, assumed):
    """Whether a GPU of 4x8 H100 is faster than one of 9x8 at the same number of sequences."""
    return speed("4x8 H100", own, context, assumed) > speed("9x8 H100", own, context, assumed)


@frame("in print", "section", "speaks for", "because")
def clues():
    """Return the passages in print that bear on the two readings: place, which reading they support, and why."""
    at, read = setup(OWN_MACHINE).deployment, Reader("mazurek2025", "Text 3.6")
    held = eq.held_experts(MODEL, at)
    fullest = eq.fullest_gpu_experts(at, MODEL.n_routed) + MODEL.n_shared
    small = eq.loaded_experts(MODEL, at, 32 / 2, READINGS["literal"])
    evicted, text = read("batch after which sequences are evicted"), Reader("mazurek2025", "Text 4")
    row = "32,768 tokens on 4x8 H100"
    room = text(row, "memory for the cache of one GPU") / text(row, "cache of one token") / evicted
    ahead = last_context(partial(faster, 512))
    bound = last_context(lambda s, a: network_binds("9x8 H100", 512, s, a))
    return [
        ("experts of a GPU: a quotient, rounded up", "3.1.2", "capped",
         f"No GPU reads experts that it does not hold: {held} of a layer on {OWN_MACHINE}. Physics, not a minimum."),
        ("“Extension to Small Batch Sizes”", "3.1.2", "capped",
         "Under this heading the formula without a limit is an addition to the formula with one."),
        ("beyond 128 tokens “we can assume the model is loaded in full”", "3.1.2", "capped",
         f"In full is {held} experts; literally the fullest GPU then loads {fullest:.1f}."),
        ("“This should work fairly well given larger numbers of activated experts”", "3.1.2", "literal",
         "The formula is trusted just where a cap would replace it, and no minimum is printed."),
        ("at batch 32 the measurement is above the prediction: fewer experts are active", "3.6",
         "neither; literal, if 32 is per GPU",
         f"Of 32 sequences in all, half a batch loads {small:.1f} experts literally, {held} at most. Evictions after "
         f"{evicted:.0f} leave {room * at.n_gpus:,.0f} tokens each if that is all of them, {room:.0f} if per GPU."),
        ("the authors measured 4x8 H100 “running AIME requests”", "caption of Figure 13",
         "literal, if answers end at 100 tokens",
         "Their public benchmark: prompts of fewer than 200 tokens and answers of 100 unless told otherwise, so that "
         "1024 would be per GPU; answers that end by themselves would make it all of the machine. The number that "
         "would decide: max_tokens."),
        ("at 512 a GPU 4x8 is faster than 9x8, which is bound by the network", "4", f"not literal at {CONTEXT}",
         f"True up to {min(ahead['capped'], bound['capped']):,} tokens capped, {ahead['literal']:,} literally."),
        ("kernels of the communication library are left out, which “is not true”", "3, 3.5", "capped",
         "Capped, a time is missing that the profile shows; literally, none is missing in the sum."),
        ("“we have to tune the model with our inefficiency factors”", "3.6", "neither",
         "Factors that were tuned agree in either reading."),
    ]  # fmt: skip


def own_machine():
    """Tokens per second of one request on the authors' own machine, by each reading at each context.

    Batches are those of the whole machine; the last is 512 sequences on each GPU, of which section 4 speaks.
    """
    n, batches = setup(OWN_MACHINE).deployment.n_gpus, (32, 512, 1024, 32 * 512)
    promise, table = Reader("mazurek2025", "Figure 17")("tokens per second of a request"), {}
    for reading, assumed in READINGS.items():
        for context in (TRUE, CONTEXT):
            speeds = [speed(OWN_MACHINE, b / n, context, assumed) / (b / n) for b in batches]
            most = float(largest_batch(OWN_MACHINE, promise, context, assumed))
            table[f"{reading}, {context} tokens"] = [*speeds, most]
    index = [f"{b:,} sequences, tokens/s of each" for b in batches]
    index.append(f"most sequences a GPU at {promise:.0f} tokens/s each")
    return pd.DataFrame(table, index=index).rename_axis(OWN_MACHINE)


def models():
    """Return both readings, each alone and with the overhead that repairs the capped one."""
    overhead = repair.fitted().overhead
    return READINGS | {f"{n} + overhead": a.replace(overhead=overhead) for n, a in READINGS.items()}


def over_measured():
    """Predicted over measured speeds at each row's own lengths, by system, overlap and batch; one column a model."""
    table = validation.measured().loc[[*validation.H100, *validation.RACK]]
    table = table.sort_values("own", kind="stable")
    found = {
        name: [validation.predicted(row, assumed) / row.per_gpu for _, row in table.iterrows()]
        for name, assumed in models().items()
    }
    system = ["72 H100s" if chip == "H100 SXM" else "GB200 rack" for chip in table.hardware]
    overlap = table.overlap.map({"two-batch": "two-batch overlap", "none": "one batch"})
    names = ["system", "overlap", "sequences a GPU"]
    index = pd.MultiIndex.from_arrays([system, overlap, table.own], names=names)
    return pd.DataFrame(found, index=index).sort_index()


def summary(data=None):
    """Root mean square of the errors of :func:`over_measured`, by system."""
    data = over_measured() if data is None else data
    return ((data - 1) ** 2).groupby(level="system", sort=False).mean() ** 0.5
