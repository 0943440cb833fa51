"""LIMINAL 2025: its text about bandwidth, latency and arithmetic (sections 4.4, 4.5 and 4.7)."""

from book.audit.grading import WithNote, reproduces
from book.papers.liminal2025 import efficiency
from book.papers.liminal2025.cells import MANY, latencies
from book.papers.liminal2025.speeds import (
    LARGE,
    LONG,
    SHORT,
    counted,
    gain,
    most,
    speed,
    use_of_arithmetic,
    waiting_share,
)
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import IDEAL, chips, load_chip, load_model

CONTEXTS = {"4K": SHORT, "128K": LONG}


def gains():
    """What 3D-DRAM brings one user, by context and model."""
    return {label: {name: gain(name, context) for name in LARGE} for label, context in CONTEXTS.items()}


@reproduces("Text 4.4")
def _text_4_4(read):
    short, long = (table.values() for table in gains().values())
    return {
        "bandwidth from 4 to 30 TB/s": lambda read: (
            read("xPU-3D-DRAM", "Mem BW", "Table 3") / read("xPU-HBM3", "Mem BW", "Table 3")
        ),
        "gain": WithNote(
            (min(*short, *long), max(*short, *long)),
            f"both contexts; {min(short):.2f} to {max(short):.2f} at 4K",
        ),
    }


@reproduces("Text 4.4")
def _bandwidth(holds):
    fast = {
        (batch, label): [speed(name, "3D-DRAM", batch, context, t_tp=IDEAL) >= 1e4 for name in LARGE]
        for batch in (1, 32)
        for label, context in CONTEXTS.items()
    }
    holds(
        "even at large batch most LLMs reach 10,000 tokens per second",
        most(fast[1, "128K"]),
        f"{counted(fast[1, '128K'])} at 128K and batch 1; at batch 32 {counted(fast[32, '4K'])} at 4K and "
        f"{counted(fast[32, '128K'])} at 128K",
        fair="“context” for “batch”: the section and its Table 6 are about batch 1",
    )
    at = gains()
    below = {label: [g < 2 for g in table.values()] for label, table in at.items()}
    holds(
        "nearly all models gain less than 2x",
        min(map(sum, below.values())) >= len(LARGE) - 1,
        f"{counted(below['4K'])} at 4K, {counted(below['128K'])} at 128K (asked: all but one)",
    )


@reproduces("Key finding 4")
def _key_finding_4(holds):
    user = {name: value for name, value in gains()["128K"].items() if value >= 2}
    system = {name: efficiency.break_even_power(name, "3D-DRAM", "HBM3") for name in LARGE}
    rest = [value for name, value in system.items() if not load_model(name).latent_layers]
    holds(
        "3D-DRAM doubles or triples tokens per second",
        bool(user) and min(rest) >= 2,
        f"of one user for {len(user)} of {len(LARGE)} ({', '.join(user)}; 128K, 200 ns), {min(user.values()):.1f} to "
        f"{max(user.values()):.1f} times; of the system at capacity {min(system.values()):.2g} to "
        f"{max(system.values()):.2g} times",
        fair="a path to it exists: for one user of some large models, and for the system unless attention is latent",
    )


@reproduces("Text 4.5")
def _text_4_5():
    return {
        ("collective", "TP128"): model.collective_latency(MANY),
        ("collective", "TP8"): model.collective_latency(8),
    }


@reproduces("Key finding 5")
def _key_finding_5(holds):
    def waiting(name, t):
        chip = load_chip("3D-DRAM").replace(bandwidth=10 * load_chip("HBM3").bandwidth)
        step = model.batch_time(load_model(name), chip, 1, LONG, MANY, 1, t)
        return model.exposed_time(load_model(name), MANY, 1, t) / step

    shares = {label: [waiting(name, t) for name in LARGE] for label, t in latencies().items()}
    text = ", ".join(f"{min(s):.0%} to {max(s):.0%} at {label}" for label, s in shares.items())
    holds(
        "with ten times the bandwidth of HBM3 synchronization dominates",
        min(map(min, shares.values())) > 0.5,
        f"share of a token's time (asked: half) with ten times the bandwidth, 128K: {text}",
    )


@reproduces("Key finding 6")
def _key_finding_6():
    return {"collective": model.collective_latency(8)}


@reproduces("Key finding 6")
def _fast(holds):
    fast = [speed(name, "3D-DRAM", 1, LONG, t_tp=model.collective_latency(8)) for name in LARGE]
    inside, above = [5000 <= v <= 10_000 for v in fast], sum(v > 10_000 for v in fast)
    holds(
        "most models reach 5,000 to 10,000 tokens per second on 3D-DRAM",
        most(inside),
        f"{counted(inside)} at 128K; {above} above, {len(LARGE) - sum(inside) - above} below",
    )


@reproduces("Key finding 9")
def _key_finding_9(holds):
    kimi = model.largest_batch(load_model("Kimi-K2"), load_chip("HBM3"), SHORT, 8) is None
    reading = 1 - waiting_share("Llama3-405B", "HBM3", SHORT, model.collective_latency(8), 8)
    wait = waiting_share("GPT-OSS-120B", "3D-DRAM", SHORT, model.collective_latency(MANY), MANY)
    use = use_of_arithmetic("DeepSeekV3", "HBM4", LONG, batch=128)
    holds(
        "capacity, bandwidth, arithmetic and collectives are each stressed by some LLM",
        kimi and min(reading, wait, use) > 0.5,
        f"Kimi-K2 does not fit eight chips; Llama3-405B reads {reading:.0%} of the time there; GPT-OSS-120B waits "
        f"{wait:.0%} on 3D-DRAM; DeepSeekV3 at batch 128 uses {use:.0%} of HBM4's arithmetic (asked: half)",
    )


@reproduces("Text 4.7")
def _text_4_7():
    uses = {
        (name, memory, label): use_of_arithmetic(name, memory, context)
        for name in LARGE
        for memory in chips()
        for label, context in CONTEXTS.items()
    }
    top = max(uses, key=uses.get)
    short = max((key for key in uses if key[2] == "4K"), key=uses.get)
    return {
        "use of the tensor engine at low batch": WithNote(
            uses[top],
            f"batch 1, 1 us: {top[0]} on {top[1]} at {top[2]}; at 4K at most {uses[short]:.2%} ({short[0]} on "
            f"{short[1]})",
        )
    }
