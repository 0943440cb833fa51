"""LIMINAL 2025: abstract, introduction and conclusion, and the key findings that they repeat."""

from book.audit.grading import WithNote, reproduces
from book.papers.liminal2025.cells import FEW, MANY, SYSTEMS, latencies
from book.papers.liminal2025.claims.memory import for_32, least
from book.papers.liminal2025.speeds import (
    GB,
    LARGE,
    LONG,
    SHORT,
    ceiling,
    counted,
    gain,
    needs,
    speed,
    written,
)
from book.papers.liminal2025.tables import families
from inferlib.papers.liminal2025 import chips


@reproduces("Introduction")
def _introduction():
    gains, long = ([gain(name, c) for name in LARGE] for c in (SHORT, LONG))
    llama = needs("Llama3-405B", 32, LONG) / GB
    return {
        ("challenge 1", "memory for a model over 100B"): least(),
        ("challenge 1", "memory for 32 users of such a model"): for_32(),
        ("challenge 1", "memory for 32 users, up to"): WithNote(
            needs("Kimi-K2", 32, LONG), f"Kimi-K2, which the sentence names; Llama3-405B needs {llama:.0f}"
        ),
        ("challenge 2", "tokens per second of GPT-OSS-120B on HBM3"): WithNote(
            speed("GPT-OSS-120B"), "on 128 chips, 4K"
        ),
        ("challenge 2", "gain in tokens per second"): WithNote(
            (min(gains), max(gains)), f"4K; at 128K {min(long):.2f} to {max(long):.2f}"
        ),
        ("challenge 2", "LLMs"): WithNote(len(families()), f"families of Table 1, in {len(LARGE)} models"),
    }


@reproduces("Introduction")
def _challenges(holds):
    fast = {n: speed("GPT-OSS-120B", n=n) for n in (FEW, 32, MANY)}
    holds(
        "challenge 2: HBM3 plateaus there",
        fast[FEW] < 1.1 * fast[MANY],
        f"eight chips reach {written(fast[FEW])} (asked: less than a tenth more), 128 reach {written(fast[MANY])}; by "
        f"the rule that we infer for the latency of a collective 32 chips would reach {written(fast[32])}",
        fair="on the two sizes of system that the paper looks at",
    )


@reproduces("Abstract")
def _abstract(holds):
    reach = {name: [speed(n, "3D-DRAM", t_tp=t) > 1e4 for n in LARGE] for name, t in latencies().items()}
    text = ", ".join(f"{counted(good)} at {name}" for name, good in reach.items())
    holds(
        "beyond 10,000 tokens per second hardware alone is not enough",
        max(ceiling(name, n) for name in LARGE for n in SYSTEMS) < 50_000,
        f"above 10,000 on 3D-DRAM at 4K are {text}; eight HBM4 chips at 438 ns give GPT-OSS-120B "
        f"{written(speed('GPT-OSS-120B', 'HBM4', n=8))}",
        fair="as the next tenfold of key finding 7, from 50,000 on; the conclusion says it again",
    )


@reproduces("Conclusion")
def _conclusion():
    soon = max(speed(name, memory) for name in LARGE for memory in chips())
    return {
        "tokens per second on technologies of today": WithNote(
            speed("GPT-OSS-120B"),
            f"HBM3 at TP128; the chips soon to appear reach {written(soon)} there, and eight HBM4 chips "
            f"{written(speed('GPT-OSS-120B', 'HBM4', n=8))}",
        )
    }


@reproduces("Key finding 7")
def _tenfold(read):
    def next_tenfold(read):
        return tuple(10 * end for end in read("range of most models", artefact="Key finding 6"))

    return {"the next tenfold": next_tenfold}


@reproduces("Key finding 7")
def _out_of_reach(holds):
    few, many = ({name: ceiling(name, n) for name in LARGE} for n in SYSTEMS)
    best, worst = max(many, key=many.get), min(many, key=many.get)
    holds(
        "50,000 tokens per second are out of reach of hardware",
        max(few.values()) < 50_000,
        f"with memory and arithmetic for nothing, 200 ns a collective allow {written(many[worst])} "
        f"({worst}) to {written(many[best])} ({best}) on 128 chips, and up to {written(max(few.values()))} on eight",
    )
