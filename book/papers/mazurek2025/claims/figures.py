"""Statements of Mazurek & Schreiber 2025 about their figures, as inequalities.

Those about Figures 13 to 17 are checked with the choices of :mod:`book.papers.mazurek2025.systems`; if its two readings
of section 3.1.2 differ, the note gives both. Our own thresholds are marked as asked.
"""

from functools import partial

from book.audit.grading import reproduces
from book.papers.mazurek2025 import systems
from book.papers.mazurek2025.derivations import compute_bound_context
from book.papers.mazurek2025.readings import faster, last_context
from book.papers.mazurek2025.systems import CONTEXT, MODEL, OWN, READINGS, speed
from inferlib.papers.mazurek2025 import equations as eq, records
from inferlib.papers.mazurek2025.records import PRINTED, load_model, setup, setups

_RACK = "12x4 B200"


def _last(true):
    """The longest context at which a statement is true in each reading, as text."""
    return ", ".join(f"{name} up to {end} tokens" for name, end in last_context(true).items())


@reproduces("Figure 14")
def _figure_14(read, holds):
    own = read("batch per GPU")
    four, nine = (speed(name, own) for name in ("4x8 H100", "9x8 H100"))
    holds(
        "there 4x8 H100 is faster per GPU than 9x8 H100", four > nine,
        f"capped, {four:.0f} and {nine:.0f} tokens/s at {CONTEXT} tokens; true {_last(partial(faster, own))}",
    )  # fmt: skip


def _kimi(own, name, assumed):
    return float(systems.kimi_over_deepseek(own, name, assumptions=assumed))


@reproduces("Figure 15")
def _figure_15(holds):
    kimi, own = load_model("Kimi K2"), (8, 64, 256, 512)
    holds(
        "Kimi K2 is DeepSeek V3 with more experts", kimi.n_routed > MODEL.n_routed and kimi.used == MODEL.used,
        f"{kimi.n_heads} heads in place of {MODEL.n_heads}, {kimi.n_dense_layers} dense layer in place of "
        f"{MODEL.n_dense_layers}, vocabulary {kimi.vocab_size:,} in place of {MODEL.vocab_size:,}",
        fair="essentially: the same kinds of layers, not the same sizes",
    )  # fmt: skip
    sent = eq.tokens_traffic(kimi, 1)
    holds(
        "traffic is the same",
        lambda read: eq.tokens_traffic(kimi, 1) == eq.tokens_traffic(MODEL, 1),
        f"{sent / 1e6:.3f} MB a token in both",
    )
    ratios = {
        reading: {name: [_kimi(b, name, assumed) for b in own] for name in setups()}
        for reading, assumed in READINGS.items()
    }
    worst = {reading: min(map(min, rows.values())) for reading, rows in ratios.items()}
    holds(
        "Kimi K2 is slower", all(max(row) <= 1 + 1e-9 for rows in ratios.values() for row in rows.values()),
        f"by up to {1 - worst['capped']:.0%} (literal {1 - worst['literal']:.0%}) over three setups and 8 to 512 a "
        f"GPU; at 1 a GPU on 4x8 it is {_kimi(1, '4x8 H100', PRINTED) - 1:.0%} faster",
        fair="from 8 sequences a GPU on",
    )  # fmt: skip
    more = MODEL.replace(n_routed=kimi.n_routed, name="DeepSeek V3, 384 experts")
    guessed = min(float(systems.kimi_over_deepseek(b, name, more)) for name in setups() for b in own)
    holds(
        "only modestly so", min(worst.values()) > 0.8,
        f"by at most {1 - worst['capped']:.0%} (asked: a fifth); {1 - guessed:.0%} if only the experts differed",
    )  # fmt: skip
    at = setup("4x8 H100").deployment
    held = [eq.weights_on_gpu(m, eq.held_experts(m, at)) / 1e9 for m in (kimi, MODEL)]
    holds(
        "Kimi K2 reaches the limit of memory earlier", held[0] > held[1],
        f"{held[0]:.1f} and {held[1]:.1f} GB of weights on a GPU of 4x8",
    )  # fmt: skip


@reproduces("Figure 16")
def _figure_16(holds):
    gpu = setup("4x8 H100").gpu
    long, longer = (eq.prefill_time(MODEL, gpu, s) for s in (1e6, 2e6))
    holds(
        "a prompt's time grows with the square of its length", 3.9 < longer / long <= 4,
        f"twice a million tokens, {longer / long:.2f} times the time (asked: 3.9 to 4)",
    )  # fmt: skip
    decode, prefill = systems.lengthening()
    holds(
        "decode suffers less from long contexts than prefill", decode < prefill,
        f"32,768 tokens over 1024: {decode:.2f} times at 8 a GPU, against {prefill:.0f} times",
    )  # fmt: skip
    bound = [systems.parts_of(name, own, 32768) for name in setups() for own in OWN]
    roomy = compute_bound_context(MODEL, records.load_chip("H200"), records.Assumptions.corrected())
    holds(
        "a large cache makes attention memory-bound",
        all(t["attention memory"] > t["attention arithmetic"] for t in bound),
        f"its three systems at 32,768 tokens and every batch, memory being given a factor of 2.0; an H200, corrected, "
        f"only from {roomy:,.0f} tokens on",
    )


@reproduces("Figure 17")
def _figure_17(read, holds):
    target = read("tokens per second of a request")
    found = {
        s: {name: systems.largest_batch(name, target, s) for name in setups()} for s in (2000, CONTEXT, 32768)
    }
    shown = "; ".join(f"{s:,} tokens: " + ", ".join(map(str, row.values())) for s, row in found.items())
    holds(
        "12x4 B200 allows the largest batch", all(max(row, key=row.get) == _RACK for row in found.values()),
        f"a GPU, in the order printed: {shown}",
    )  # fmt: skip
