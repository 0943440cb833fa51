"""LIMINAL 2025: its text about models, chips, capacity, collectives and users (sections 2 to 4.3)."""

from book.audit.grading import WithNote, format_items, reproduces
from book.papers.liminal2025 import cells, speeds
from book.papers.liminal2025.cells import MANY, SYSTEMS
from book.papers.liminal2025.experts import batch_of
from book.papers.liminal2025.speeds import DRAM, GB, LARGE, LONG, SHORT, counted, huge, needs, speed
from book.papers.liminal2025.tables import families, sizes
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import STATED, load_chip, load_model, models


def least():
    """The least memory that one user of a model over 100B needs."""
    name = min(huge(), key=lambda n: needs(n, 1, SHORT))
    value = needs(name, 1, SHORT)
    return WithNote(value, f"{name}: {value / GB:.1f} of the paper's GB, {value / 1e9:.0f} decimal ones")


def for_32():
    """The least memory that 32 users of such a model need at 128K."""
    name = min(huge(), key=lambda n: needs(n, 32, LONG))
    scout = needs("Llama4-Scout", 32, LONG) / GB
    return WithNote(needs(name, 32, LONG), f"{name} needs the least at 128K; {scout:.0f} is Llama4-Scout's")


@reproduces("Key finding 1")
def _key_finding_1():
    most = max(huge(), key=lambda n: needs(n, 32, LONG))
    kimi = needs("Kimi-K2", 32, LONG) / GB
    return {
        "memory for a model over 100B": least(),
        "memory for 32 users": for_32(),
        "memory for 32 users, up to": WithNote(
            needs(most, 32, LONG), f"{most}, at 128K; Kimi-K2 needs {kimi:.0f}"
        ),
    }


@reproduces("Text 2.5")
def _text_2_5():
    def of_a_layer(name):
        one = load_model(name)
        dense, sparse = (
            model.collectives(one.replace(dense_layers=d, moe_layers=one.layers - d), MANY) / one.layers
            for d in (one.layers, 0.0)
        )
        return sparse if one.moe_layers else dense

    sparse = [name for name in models() if load_model(name).moe_layers]
    return {
        "collectives of a layer, at most": WithNote(
            max(map(of_a_layer, models())),
            f"three of attention and two of experts, in {len(sparse)} of {len(models())} models",
        )
    }


@reproduces("Text 3")
def _text_3():
    return {
        "LLMs": len(families()),
        "configurations": len(sizes()),
        ("collective", "TP128"): WithNote(
            model.collective_latency(MANY),
            "the sum of section 3's ingredients is inferred, from this number and the next; sections 4.5, 4.6 and "
            "key finding 6 repeat both",
        ),
        ("collective", "TP8"): model.collective_latency(8),
    }


@reproduces("Text 3")
def _batches(holds):
    largest = {
        (name, n): model.largest_batch(load_model(name), load_chip("HBM3"), SHORT, n) or 0
        for name in LARGE
        for n in SYSTEMS
    }
    (name, n), top = max(largest.items(), key=lambda item: item[1])
    named = [batch_of(column) for _, _, column in cells.printed_cells() if "B=" in column]
    holds(
        "batches stay between 1 and 128",
        max(named + STATED["validation"]["batches"]) <= 128,
        f"Table 5's columns of STPS need batches up to {top:,} ({name} on {n} chips, 4K)",
        fair="outside section 4.3, which says itself that its batches grow to the limit of memory",
    )


@reproduces("Text 4.1")
def _text_4_1():
    one = {name: needs(name, 1, SHORT) for name in huge()}
    low = min(one, key=one.get)
    llama = needs("Llama3-405B", 32, LONG)
    return {
        ("memory for one user of a model over 100B", "4K"): WithNote(
            (one[low], max(one.values())), f"{low} (106B) is left out: it needs {one[low] / GB:.0f}"
        ),
        ("memory for 32 users of Llama3-405B", "128K"): WithNote(
            llama, f"printed in TB: Table 4's {llama / GB:.0f} GB over 1000, where its GB are powers of 1024"
        ),
    }


@reproduces("Text 4.1")
def _intensities(holds):
    low, long = (
        {name: model.arithmetic_intensity(load_model(name), 32, context) for name in models()}
        for context in (SHORT, LONG)
    )
    balance = {m: load_chip(m).flops / load_chip(m).bandwidth for m in DRAM}
    top = max(long, key=long.get)
    holds(
        "every intensity is low: serving is bound by memory",
        max(low.values()) < min(balance.values()) and long[top] < balance["HBM3"],
        f"at batch 32 at most {max(low.values()):.1f} FLOP/B at 4K and {long[top]:.0f} at 128K ({top}); chips are "
        f"balanced at {format_items(balance, '.0f')}",
        fair="at 4K on all DRAM chips, at 128K on today's chip",
    )


@reproduces("Text 4.2")
def _collectives(holds):
    counts = {name: [model.collectives(load_model(name), n) for n in SYSTEMS] for name in LARGE}
    same = [name for name, (few, many) in counts.items() if many <= few]
    holds("TP128 needs more collectives in all LLMs", not same, f"the same as at TP8 for {', '.join(same)}")


@reproduces("Key finding 2")
def _key_finding_2(holds):
    both = [min(speed(name), speed(name, context=LONG)) > 1000 for name in LARGE]
    holds(
        "most models pass 1,000 tokens per second on 128 HBM3 chips",
        speeds.most(both),
        f"{counted(both)} at 4K and at 128K; Llama3-405B does not",
    )


@reproduces("Key finding 3")
def _key_finding_3():
    system = {c: {n: speeds.at_capacity(n, c)[0] for n in LARGE} for c in (SHORT, LONG)}
    name = min(system[SHORT], key=system[SHORT].get)
    good = [n for n, value in system[LONG].items() if value >= 1e5]
    return {
        "tokens per second of the system at TP128": WithNote(
            system[SHORT][name], f"at 4K, least of all {name}; at 128K only {', '.join(good)}"
        )
    }


@reproduces("Key finding 3")
def _tens(holds):
    users = [speeds.at_capacity(name, c)[1] for name in LARGE for c in (SHORT, LONG)]
    holds(
        "each user then sees tens of tokens per second",
        10 <= min(users) and max(users) < 100,
        f"{min(users):.0f} to {max(users):.0f}",
    )
