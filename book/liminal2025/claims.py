"""LIMINAL 2025: every number and statement of its text, checked."""

import math
from functools import cache, partial

from book.liminal2025 import cells, efficiency, experts
from book.liminal2025.tables import FAMILIES
from inferlib import catalog
from inferlib.ledger import Noted, Reader, reproduces
from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.records import (
    IDEAL,
    PRINTED,
    Assumptions,
    chips,
    load_chip,
    load_model,
    models,
    stated,
    transformer,
)
from inferlib.units import factor

reproduces = partial(reproduces, "liminal2025")
GB, K = PRINTED.gb, PRINTED.kilotoken
HUGE = 100e9  # "over 100B": parameters
SMALL_CONTEXT, LARGE_CONTEXT = 4 * K, 128 * K
LARGE = cells.large()


@cache
def app(name):
    """A model of the paper under its own assumptions."""
    return load_model(name)


def speed(name, memory="HBM3", batch=1, context=SMALL_CONTEXT, n=128, t_tp=None):
    """UTPS of one of the paper's systems; the achievable latency when none is given."""
    chip = load_chip(memory)
    t_tp = model.collective_latency(n) if t_tp is None else t_tp
    stages = model.stages_of(app(name), chip)
    return model.user_speed(app(name), chip, batch, context, n, stages, t_tp)


def waiting_share(name, memory, context, t_tp, n=128):
    """Part of a token's time that is exposed, at batch 1."""
    stages = model.stages_of(app(name), load_chip(memory))
    exposed = model.exposed_time(app(name), n, stages, t_tp)
    return exposed * speed(name, memory, 1, context, n, t_tp)


def ceiling(name, t_tp=IDEAL, n=128):
    """UTPS if memory and arithmetic took no time at all."""
    return 1 / model.exposed_time(app(name), n, 1, t_tp)


def use_of_arithmetic(name, memory, context, t_tp=None, batch=1, n=128):
    """Part of the tensor engines' peak that a step uses."""
    chip = load_chip(memory)
    busy = model.compute_time(app(name), chip, batch, context, n)
    return busy * speed(name, memory, batch, context, n, t_tp)


def huge():
    """The models of Table 4 with more than 100 billion parameters."""
    return [name for name in models() if model.stored_weights(app(name)) > HUGE]


def needs(name, batch, context):
    """Bytes that a batch of a model occupies."""
    return model.capacity_needed(app(name), batch, context)


def _count(good, names=LARGE):
    return f"{sum(map(bool, good))} of {len(names)}"


def _most(good, text, names=LARGE):
    """A claim about "most" models: more than half, with the count as note."""
    good = list(good)
    return Noted(sum(map(bool, good)) > len(names) / 2, f"{_count(good, names)} {text}")


def _all(good, text, names=LARGE):
    good = list(good)
    return Noted(all(map(bool, good)), f"{_count(good, names)} {text}")


def _listed(values, digits=".2g"):
    return ", ".join(f"{name} {value:{digits}}" for name, value in values.items())


def _written(value):
    return cells.written(value, cells.SPEED)


# --- Memory ----------------------------------------------------------------------------------------------


def _least():
    name = min(huge(), key=lambda n: needs(n, 1, SMALL_CONTEXT))
    value = needs(name, 1, SMALL_CONTEXT)
    return Noted(value, f"{name}: {value / GB:.1f} of the paper's GB, {value / 1e9:.0f} decimal ones")


def _for_32():
    name = min(huge(), key=lambda n: needs(n, 32, LARGE_CONTEXT))
    scout = needs("Llama4-Scout", 32, LARGE_CONTEXT) / GB
    return Noted(
        needs(name, 32, LARGE_CONTEXT), f"{name} needs the least at 128K; {scout:.0f} is Llama4-Scout's"
    )


def _up_to():
    name = max(huge(), key=lambda n: needs(n, 32, LARGE_CONTEXT))
    kimi = needs("Kimi-K2", 32, LARGE_CONTEXT) / GB
    return Noted(needs(name, 32, LARGE_CONTEXT), f"{name}, at 128K; Kimi-K2 needs {kimi:.0f}")


@reproduces("Introduction")
def _introduction(read):
    fast = {n: speed("GPT-OSS-120B", n=n) for n in (8, 128)}
    gains = [_gain(name, SMALL_CONTEXT) for name in LARGE]
    long = [_gain(name, LARGE_CONTEXT) for name in LARGE]
    share = [waiting_share(name, "3D-DRAM", LARGE_CONTEXT, factor("us")) for name in LARGE]
    return {
        ("challenge 1", "memory for a model over 100B"): _least(),
        ("challenge 1", "memory for 32 users of such a model"): _for_32(),
        ("challenge 1", "memory for 32 users, up to"): _up_to(),
        ("challenge 2", "tokens per second of GPT-OSS-120B on HBM3"): Noted(fast[128], "on 128 chips, 4K"),
        ("challenge 2: HBM3 plateaus there", ""): Noted(
            max(fast.values()) <= fast[128],
            f"eight chips reach {_written(fast[8])}, more than 128 with {_written(fast[128])}",
        ),
        ("challenge 2", "bandwidth of 3D-DRAM over HBM3"): lambda read: (
            read("xPU-3D-DRAM", "Mem BW", "Table 3") / read("xPU-HBM3", "Mem BW", "Table 3")
        ),
        ("challenge 2", "gain in tokens per second"): Noted(
            (min(gains), max(gains)), f"4K; at 128K {min(long):.2f} to {max(long):.2f}"
        ),
        ("challenge 2", "LLMs"): Noted(len(FAMILIES), f"families, in {len(LARGE)} models"),
        ("challenge 3: a collective below 1 us is essential to use high bandwidth", ""): Noted(
            min(share) > 0.5,
            f"at 1 us {min(share):.0%} to {max(share):.0%} of a token's time on 3D-DRAM is spent waiting",
        ),
        ("challenge 4: at low latency DRAM serves more tokens per chip than SRAM", ""): _dram_over_sram(),
        ("challenge 5: 50,000 tokens per second need algorithms", ""): _fifty_thousand(),
    }


def _gain(name, context):
    return speed(name, "3D-DRAM", 1, context, t_tp=IDEAL) / speed(name, "HBM3", 1, context, t_tp=IDEAL)


def _per_chip(name, memory):
    swept = efficiency.sweep(name, memory, LARGE_CONTEXT, t_tp=IDEAL)
    return float(swept.stps.max()) / (128 * swept.attrs["stages"])


def _dram_over_sram():
    ratios = [_per_chip(name, "3D-DRAM") / _per_chip(name, "SRAM") for name in LARGE]
    return Noted(
        min(ratios) > 1,
        f"3D-DRAM serves {min(ratios):.0f} to {max(ratios):.0f} times as many tokens a chip (128K, 200 ns)",
    )


def _fifty_thousand():
    tops = {name: ceiling(name) for name in LARGE}
    best, worst = max(tops, key=tops.get), min(tops, key=tops.get)
    return Noted(
        tops[best] < 50_000,
        f"with memory and arithmetic for nothing, 200 ns a collective allow {_written(tops[worst])} "
        f"({worst}) to {_written(tops[best])} ({best})",
    )


def _ten_thousand():
    reach = {
        label: [speed(name, "3D-DRAM", t_tp=t) > 1e4 for name in LARGE]
        for label, t in cells.latencies().items()
    }
    text = ", ".join(f"{_count(good)} at {label}" for label, good in reach.items())
    return Noted(not any(any(good) for good in reach.values()), f"above 10,000 on 3D-DRAM, 4K: {text}")


@reproduces("Abstract")
def _abstract(read):
    return {("beyond 10,000 tokens per second hardware alone is not enough", ""): _ten_thousand()}


@reproduces("Conclusion")
def _conclusion(read):
    fast = speed("GPT-OSS-120B")
    soon = max(speed(name, memory) for name in LARGE for memory in chips())
    return {
        ("tokens per second on technologies of today", ""): Noted(
            fast, f"HBM3 at TP128; the chips soon to appear reach {_written(soon)} at 1 us"
        ),
        ("10,000 tokens per second need algorithms", ""): _ten_thousand(),
    }


@reproduces("Key finding 1")
def _key_finding_1(read):
    return {
        ("memory for a model over 100B", ""): _least(),
        ("memory for 32 users", ""): _for_32(),
        ("memory for 32 users, up to", ""): _up_to(),
    }


@reproduces("Text 4.1")
def _text_4_1(read):
    one = {name: needs(name, 1, SMALL_CONTEXT) for name in huge()}
    low = {name: model.arithmetic_intensity(app(name), 32, SMALL_CONTEXT) for name in models()}
    others = {name: value for name, value in low.items() if not name.startswith("Llama3")}
    most = max(others, key=others.get)
    long = {name: model.arithmetic_intensity(app(name), 32, LARGE_CONTEXT) for name in models()}
    top = max(long, key=long.get)
    balance = load_chip("HBM3").flops / load_chip("HBM3").bandwidth
    latent = [long[n] for n in long if app(n).latent_layers]
    rest = {n: v for n, v in long.items() if not app(n).latent_layers}
    second = max(rest, key=rest.get)
    return {
        ("memory for one user of a model over 100B", "4K"): Noted(
            (min(one.values()), max(one.values())),
            f"{min(one, key=one.get)} (106B) is left out: it needs {min(one.values()) / GB:.0f}",
        ),
        ("intensity at 4K and batch 32 stays below 25 but for Llama 3", ""): Noted(
            others[most] < 25, f"the largest of the others: {most}, {others[most]:.1f}"
        ),
        ("every intensity is low: serving is bound by memory", ""): Noted(
            long[top] < balance,
            f"at most {long[top]:.0f} FLOP/B ({top}, 128K, batch 32); HBM3 is balanced at {balance:.0f}, HBM4 at "
            f"{load_chip('HBM4').flops / load_chip('HBM4').bandwidth:.0f}",
        ),
        ("latent attention has the higher intensity at 128K", ""): Noted(
            min(latent) > rest[second],
            f"{min(latent):.0f} and {max(latent):.0f}; the next is {second} with {rest[second]:.0f}",
        ),
        ("memory for 32 users of Llama3-405B", "128K"): needs("Llama3-405B", 32, LARGE_CONTEXT),
    }


# --- Collectives -----------------------------------------------------------------------------------------


@reproduces("Text 2.5")
def _text_2_5(read):
    def of_a_layer(name):
        one = app(name)
        dense, sparse = (
            model.collectives(one.replace(dense_layers=d, moe_layers=one.layers - d), 128) / one.layers
            for d in (one.layers, 0.0)
        )
        return sparse if one.moe_layers else dense

    most = {name: of_a_layer(name) for name in models()}
    sparse = [n for n in most if app(n).moe_layers]
    return {
        ("collectives of a layer, at most", ""): Noted(
            max(most.values()),
            f"three of attention and two of experts, in {len(sparse)} of {len(most)} models",
        )
    }


@reproduces("Text 3")
def _text_3(read):
    largest = {
        (name, n): model.largest_batch(app(name), load_chip("HBM3"), SMALL_CONTEXT, n)
        for name in LARGE
        for n in (8, 128)
    }
    top = max((b for b in largest.values() if b), default=0)
    name, n = next(key for key, batch in largest.items() if batch == top)
    return {
        ("HBM3", "tensor engine"): lambda read: Noted(
            read("xPU-HBM3", "Compute", "Table 3"), "Table 3 says PFLOPS, and Table 5 needs them"
        ),
        ("LLMs", ""): len(FAMILIES),
        ("configurations", ""): sum(len(names) for names in FAMILIES.values()),
        ("batches stay between 1 and 128", ""): Noted(
            top <= 128, f"Table 5 needs batches up to {top:,} ({name} on {n} chips, 4K)"
        ),
        ("collective", "TP128"): model.collective_latency(128),
        ("collective", "TP8"): model.collective_latency(8),
    }


@reproduces("Text 4.2")
def _text_4_2(read):
    counts = {name: [model.collectives(app(name), n) for n in (8, 128)] for name in LARGE}
    same = [name for name, (few, many) in counts.items() if many <= few]
    latency = [model.collective_latency(n) for n in (8, 128)]
    fits = [name for name in LARGE if model.largest_batch(app(name), load_chip("HBM3"), SMALL_CONTEXT, 8)]
    gain = {name: speed(name, n=128) / speed(name, n=8) for name in fits}
    size = {name: model.bytes_loaded(app(name), 1, SMALL_CONTEXT) for name in fits}
    big = sorted(size, key=size.get)[-3:]
    reading = {name: 1 - waiting_share(name, "HBM3", SMALL_CONTEXT, latency[0], 8) for name in big}
    slower = [name for name in fits if gain[name] < 1]
    return {
        ("TP128 needs more collectives in all LLMs", ""): Noted(
            not same, f"the same as at TP8 for {', '.join(same)}"
        ),
        ("a collective takes longer at TP128", ""): latency[1] > latency[0],
        ("reading memory dominates in the larger models", ""): Noted(
            min(reading.values()) > 0.5, _listed(reading, ".0%") + " of the time at TP8"
        ),
        ("larger models gain more from 128 chips", ""): Noted(
            _rank_correlation(size, gain) > 0.9,
            f"rank correlation of bytes and gain {_rank_correlation(size, gain):.2f}",
        ),
        ("some small models are slower on 128 chips at 4K", ""): Noted(bool(slower), ", ".join(slower)),
        ("GPT-OSS-120B is one of them", ""): "GPT-OSS-120B" in slower,
    }


def _rank_correlation(a, b):
    """Spearman's, of two tables with the same keys and no ties."""
    ranks = [{key: i for i, key in enumerate(sorted(t, key=t.get))} for t in (a, b)]
    n, squares = len(a), sum((ranks[0][key] - ranks[1][key]) ** 2 for key in a)
    return 1 - 6 * squares / (n * (n * n - 1))


@reproduces("Key finding 2")
def _key_finding_2(read):
    both = [min(speed(name), speed(name, context=LARGE_CONTEXT)) > 1000 for name in LARGE]
    return {
        ("most models pass 1,000 tokens per second on 128 HBM3 chips", ""): _most(
            both, "at 4K and at 128K; Llama3-405B does not"
        )
    }


@reproduces("Text 4.3")
def _text_4_3(read):
    def grows(name):
        swept = efficiency.sweep(name, "HBM3", LARGE_CONTEXT)
        return (swept.utps.diff("batch") < 0).all() and (swept.stps.diff("batch") > 0).all()

    return {
        ("with more users each is slower and the system faster", ""): _all(
            map(grows, LARGE), "with every doubling of the batch at 128K"
        )
    }


def _at_capacity(name, context, n=128):
    batch = model.largest_batch(app(name), load_chip("HBM3"), context, n)
    user = speed(name, "HBM3", batch, context, n)
    return batch * user, user


@reproduces("Key finding 3")
def _key_finding_3(read):
    short, long = ({n: _at_capacity(n, c) for n in LARGE} for c in (SMALL_CONTEXT, LARGE_CONTEXT))
    least = min(short, key=lambda name: short[name][0])
    users = [user for table in (short, long) for _, user in table.values()]
    good = [name for name in LARGE if long[name][0] >= 1e5]
    return {
        ("tokens per second of the system at TP128", ""): Noted(
            short[least][0], f"at 4K, least of all {least}; at 128K only {', '.join(good)}"
        ),
        ("each user then sees tens of tokens per second", ""): Noted(
            min(users) >= 10 and max(users) < 100, f"{min(users):.0f} to {max(users):.0f}"
        ),
    }


# --- Bandwidth and latency -------------------------------------------------------------------------------


@reproduces("Text 4.4")
def _text_4_4(read):
    gains = {(name, label): _gain(name, k * K) for label, k in (("4K", 4), ("128K", 128)) for name in LARGE}
    at = {label: {n: g for (n, c), g in gains.items() if c == label} for label in ("4K", "128K")}
    below = {label: sum(g < 2 for g in table.values()) for label, table in at.items()}
    batched = {
        label: sum(speed(n, "3D-DRAM", 32, c, t_tp=IDEAL) >= 1e4 for n in LARGE)
        for label, c in (("4K", SMALL_CONTEXT), ("128K", LARGE_CONTEXT))
    }
    active = {n: app(n).used + app(n).expert * app(n).n_experts * app(n).routed_share for n in LARGE}
    return {
        ("even at large batch most LLMs reach 10,000 tokens per second", ""): Noted(
            min(batched.values()) > len(LARGE) / 2,
            f"at batch 32 {batched['4K']} of {len(LARGE)} at 4K and {batched['128K']} at 128K; Table 6 is batch 1",
        ),
        ("Llama3-405B gains most", ""): all(max(t, key=t.get) == "Llama3-405B" for t in at.values()),
        ("Qwen3-30B gains least", ""): all(min(t, key=t.get) == "Qwen3-30B" for t in at.values()),
        ("Qwen3-30B has the fewest active parameters", ""): min(active, key=active.get) == "Qwen3-30B",
        ("bandwidth from 4 to 30 TB/s", ""): lambda read: (
            read("xPU-3D-DRAM", "Mem BW", "Table 3") / read("xPU-HBM3", "Mem BW", "Table 3")
        ),
        ("gain", ""): Noted(
            (min(gains.values()), max(gains.values())),
            f"both contexts; {min(at['4K'].values()):.2f} to {max(at['4K'].values()):.2f} at 4K",
        ),
        ("nearly all models gain less than 2x", ""): Noted(
            min(below.values()) >= len(LARGE) - 1,
            f"{below['4K']} of {len(LARGE)} at 4K, {below['128K']} at 128K",
        ),
    }


@reproduces("Key finding 4")
def _key_finding_4(read):
    user = [_gain(name, LARGE_CONTEXT) >= 2 for name in LARGE]
    system = [efficiency.break_even_power(name, "3D-DRAM", "HBM3") for name in LARGE]
    return {
        ("3D-DRAM doubles or triples tokens per second", ""): Noted(
            sum(user) > len(LARGE) / 2,
            f"of one user for {_count(user)} (128K, 200 ns); of the system at capacity "
            f"{min(system):.2g} to {max(system):.2g} times as many",
        )
    }


@reproduces("Text 4.5")
def _text_4_5(read):
    def ideal(name, memory):
        at = [speed(name, memory, 1, LARGE_CONTEXT, t_tp=t) for t in cells.latencies().values()]
        return at[2] / at[0]

    better = [ideal(name, "3D-DRAM") > ideal(name, "HBM3") for name in LARGE]
    over = {
        (name, label): speed(name, "SRAM", 1, LARGE_CONTEXT, t_tp=t)
        / speed(name, "3D-DRAM", 1, LARGE_CONTEXT, t_tp=t)
        for name in LARGE
        for label, t in cells.latencies().items()
    }
    top = max(over, key=over.get)
    middle = sorted(over.values())[len(over) // 2]
    slower = sorted({name for (name, label), ratio in over.items() if label == "200ns" and ratio < 1})
    return {
        ("collective", "TP128"): model.collective_latency(128),
        ("collective", "TP8"): model.collective_latency(8),
        ("ideal latency helps 3D-DRAM more than HBM3", ""): _all(better, "models"),
        ("beyond 3D-DRAM more bandwidth gives little", ""): Noted(
            middle < 1.1,
            f"SRAM over 3D-DRAM: median {middle:.2f}, but {over[top]:.2f} for {top[0]} at {top[1]}",
        ),
        ("SRAM is slower than 3D-DRAM for its pipeline", ""): Noted(
            len(slower) > len(LARGE) / 2, f"at 200 ns {len(slower)} of {len(LARGE)}: {', '.join(slower)}"
        ),
    }


@reproduces("Key finding 5")
def _key_finding_5(read):
    shares = {
        label: [waiting_share(name, "3D-DRAM", LARGE_CONTEXT, t) for name in LARGE]
        for label, t in cells.latencies().items()
    }
    text = ", ".join(f"{min(s):.0%} to {max(s):.0%} at {label}" for label, s in shares.items())
    return {
        ("with ten times the bandwidth of HBM3 synchronization dominates", ""): Noted(
            min(shares["1.0us"] + shares["438ns"]) > 0.5, f"share of a token's time on 3D-DRAM, 128K: {text}"
        )
    }


@reproduces("Key finding 6")
def _key_finding_6(read):
    t = model.collective_latency(8)
    fast = [speed(name, "3D-DRAM", 1, LARGE_CONTEXT, t_tp=t) for name in LARGE]
    inside = [5000 <= value <= 10_000 for value in fast]
    above = sum(value > 10_000 for value in fast)
    return {
        ("collective", ""): t,
        ("most models reach 5,000 to 10,000 tokens per second on 3D-DRAM", ""): _most(
            inside, f"at 128K; {above} above, {len(LARGE) - sum(inside) - above} below"
        ),
    }


@reproduces("Key finding 7")
def _key_finding_7(read):
    return {("50,000 tokens per second are out of reach of hardware", ""): _fifty_thousand()}


# --- Power -----------------------------------------------------------------------------------------------


def _quoted_gain(name):
    (batch, gain), (_, shorter) = (efficiency.marker(name, "3D-DRAM", k * K) for k in (128, 32))
    return Noted(gain, f"batch {batch} at the stated 128K; at 32K the same rule gives {shorter:.2f}")


@reproduces("Text 4.6")
def _text_4_6(read):
    beyond = _arithmetic_binds()
    total = model.collectives(app("GPT-OSS-120B"), 128)
    few = model.collectives(app("GPT-OSS-120B"), 8)
    fastest = max(LARGE, key=speed)
    active = app("GPT-OSS-120B").used + app("GPT-OSS-120B").expert * _experts("GPT-OSS-120B")
    sram = {name: _sram_wins(name) for name in LARGE}
    batches = [int(efficiency.sweep(name, "SRAM", LARGE_CONTEXT).batch[-1]) for name in LARGE]
    exposed = {b: model.batch_time(*_step(b)) - _longer(b) for b in (1, 32)}
    return {
        ("at the highest speed arithmetic hides behind memory", ""): Noted(
            not beyond, f"not on SRAM at 128K: {', '.join(beyond)} compute for longer than they read"
        ),
        ("exposed time does not depend on the batch", ""): math.isclose(exposed[1], exposed[32]),
        ("GPT-OSS-120B is the fastest", ""): fastest == "GPT-OSS-120B",
        ("GPT-OSS-120B", "active parameters"): active,
        ("GPT-OSS-120B", "collectives"): Noted(
            total, f"at TP128, which the section is about and Tables 5 and 7 need; {few:.0f} at TP8"
        ),
        ("GPT-OSS-120B", "layers"): app("GPT-OSS-120B").layers,
        ("experts of a token", "Kimi-K2"): _experts("Kimi-K2"),
        ("experts of a token", "DeepSeekV3"): _experts("DeepSeekV3"),
        ("gain in STPS/W on 3D-DRAM", "Qwen3-30B"): _quoted_gain("Qwen3-30B"),
        ("gain in STPS/W on 3D-DRAM", "DeepSeekV3"): _quoted_gain("DeepSeekV3"),
        ("gain in STPS/W on 3D-DRAM", "Kimi-K2"): _quoted_gain("Kimi-K2"),
        ("SRAM has the highest tokens per second for one user", ""): _most(
            sram.values(), "at 128K and 1 us: " + ", ".join(n for n, wins in sram.items() if wins)
        ),
        ("SRAM cannot run large batches", ""): Noted(
            max(batches) < 32, f"{min(batches)} to {max(batches)} sequences a stage at 128K"
        ),
        ("3D-DRAM is the most efficient DRAM, then HBM4", ""): _order(),
        ("bandwidth of HBM4", ""): lambda read: Noted(
            read("xPU-HBM4", "Mem BW", "Table 3"), "4 TB/s is HBM3 in Table 3"
        ),
        ("DeepSeekV3 and Kimi-K2 are bound by arithmetic on HBM4 as the batch grows", ""): _latent_bound(),
        ("DeepSeekV3: HBM3 has the highest STPS/W", ""): _hbm3_wins("DeepSeekV3"),
        ("Kimi-K2: HBM3 has the highest STPS/W", ""): _hbm3_wins("Kimi-K2"),
    }


def _experts(name):
    return app(name).n_experts * app(name).routed_share


def _step(batch):
    return (app("Llama3-70B"), load_chip("HBM3"), batch, LARGE_CONTEXT, 128, 1, model.collective_latency(128))


def _longer(batch):
    at = _step(batch)[:5]
    return max(model.compute_time(*at), model.memory_time(*at))


def _arithmetic_binds():
    """Models whose arithmetic takes longer than memory at batch 1 and 128K, on some chip."""
    bound = {}
    for name in LARGE:
        for memory in chips():
            at = app(name), load_chip(memory), 1, LARGE_CONTEXT, 128
            if model.compute_time(*at) > model.memory_time(*at):
                bound.setdefault(name, []).append(memory)
    return bound


def _sram_wins(name):
    return speed(name, "SRAM", 1, LARGE_CONTEXT) > speed(name, "3D-DRAM", 1, LARGE_CONTEXT)


def _order():
    others = [name for name in LARGE if not app(name).latent_layers]
    stacked = [efficiency.break_even_power(name, "3D-DRAM", "HBM4") for name in others]
    wide = [efficiency.break_even_power(name, "HBM4", "HBM3") for name in others]
    return Noted(
        min(stacked) > 1 and min(wide) > 1,
        f"without latent attention, while a 3D chip draws below {min(stacked):.2f} to {max(stacked):.2f} times "
        f"HBM4's watts, and HBM4 below {min(wide):.1f} times HBM3's",
    )


def _latent_bound():
    notes, good = [], []
    for name in ("DeepSeekV3", "Kimi-K2"):
        batch = int(efficiency.sweep(name, "HBM4", LARGE_CONTEXT).batch[-1])
        at = app(name), load_chip("HBM4"), batch, LARGE_CONTEXT, 128
        good.append(model.compute_time(*at) > model.memory_time(*at))
        # with an endless batch only attention counts: its FLOP over the bytes of the cache
        limit = model.attention_work(app(name), 1) / model.cache_size(app(name), 1)
        notes.append(f"{name} from {load_chip('HBM4').flops / limit / PRINTED.tb_per_s:.1f} TB/s")
    return Noted(all(good), "in the limit of a large batch " + ", ".join(notes))


def _hbm3_wins(name):
    """Whether HBM3 has the best STPS/W at the upper end of the bracket of energies, where it is best placed."""
    ratio = efficiency.break_even_power(name, "HBM4", "HBM3")
    energy, end = (efficiency.break_even_energy(name, "HBM4", "HBM3"), efficiency.energies()[1])
    best = {m: efficiency.best_efficiency(name, m, LARGE_CONTEXT, end) for m in ("HBM3", "HBM4", "3D-DRAM")}
    return Noted(
        max(best, key=best.get) == "HBM3",
        f"where HBM4 draws {ratio:.2f} times HBM3's watts: from {energy / 8e-12:.1f} pJ/bit "
        f"(asked: at {efficiency.PICOJOULE_PER_BIT[1]:.0f})",
    )


@reproduces("Key finding 8")
def _key_finding_8(read):
    gains = [efficiency.marker(name, "3D-DRAM", LARGE_CONTEXT)[1] for name in LARGE]
    return {
        ("efficiency grows a lot for a tenth of the speed", ""): Noted(
            min(gains) > 2, f"3D-DRAM, 128K: {min(gains):.1f} to {max(gains):.1f} times"
        )
    }


@reproduces("Key finding 9")
def _key_finding_9(read):
    kimi = model.largest_batch(app("Kimi-K2"), load_chip("HBM3"), SMALL_CONTEXT, 8) is None
    read_part = 1 - waiting_share("Llama3-405B", "HBM3", SMALL_CONTEXT, model.collective_latency(8), 8)
    wait = waiting_share("GPT-OSS-120B", "3D-DRAM", SMALL_CONTEXT, model.collective_latency(128))
    use = use_of_arithmetic("DeepSeekV3", "HBM4", LARGE_CONTEXT, batch=128)
    return {
        ("capacity, bandwidth, arithmetic and collectives are each stressed by some LLM", ""): Noted(
            kimi and read_part > 0.5 and wait > 0.5 and use > 0.5,
            f"Kimi-K2 does not fit eight chips; Llama3-405B reads {read_part:.0%} of the time there; GPT-OSS-120B "
            f"waits {wait:.0%} on 3D-DRAM; DeepSeekV3 at batch 128 uses {use:.0%} of HBM4's arithmetic",
        )
    }


@reproduces("Text 4.7")
def _text_4_7(read):
    uses = {
        (name, memory, label): use_of_arithmetic(name, memory, c)
        for name in LARGE
        for memory in chips()
        for label, c in (("4K", SMALL_CONTEXT), ("128K", LARGE_CONTEXT))
    }
    top = max(uses, key=uses.get)
    short = {key: value for key, value in uses.items() if key[2] == "4K"}
    top_short = max(short, key=short.get)
    dies, wafer = (read("dies of a wafer-scale package"), read("moving data across it"))
    switched = model.collective_latency(dies)
    return {
        ("use of the tensor engine at low batch", ""): Noted(
            uses[top],
            f"batch 1, 1 us: {top[0]} on {top[1]} at {top[2]}; at 4K at most {short[top_short]:.2%} ({top_short[0]} "
            f"on {top_short[1]})",
        ),
        ("a wafer has the lower collective latency", ""): Noted(
            wafer < switched,
            f"the paper's own switch takes {switched * 1e9:.0f} ns for {dies:.0f} chips, and "
            f"{model.collective_latency(128) * 1e9:.0f} for 128",
        ),
    }


# --- Validation ------------------------------------------------------------------------------------------


def validation_points():
    """The configurations of section 5 and whether they fit: 5 models, 8 batches, 8 contexts.

    Returns
    -------
    list of (str, int, int, bool)
        Model, batch, context in tokens, and whether weights and caches of 16-bit numbers fit 8 x H100.
    """
    given, wide = (stated()["validation"], Assumptions(weight_bytes=2.0, cache_bytes=2.0))
    memory = 8 * catalog.load_chip("H100 SXM").memory_capacity
    found = []
    for name in given["models"]:
        one = load_model(name, wide)
        for batch in given["batches"]:
            for k in given["contexts"]:
                context = k * int(wide.kilotoken)
                found.append(
                    (name, batch, context, model.capacity_needed(one, batch, context, wide) <= memory)
                )
    return found


@reproduces("Text 5")
def _text_5(read):
    points = validation_points()
    fit = sum(good for *_, good in points)
    return {
        ("their latency", ""): lambda read: read("memory latency of H100") * read("exposed accesses"),
        ("more than 90 % of the variance is explained", ""): Noted(
            read("R2") > 0.9, f"R2 of {read('R2'):.3f}, with one latency fitted for each model"
        ),
        ("some configurations run out of memory", ""): Noted(
            fit < len(points), f"{fit} of {len(points)} fit by weights and caches alone"
        ),
    }


@reproduces("Appendix A")
def _appendix_a(read):
    return {
        ("die", "power"): lambda read: Noted(
            read("power of one mm2") * read("die", "area in mm2"),
            "1.1 times 800; the power of the memories, which the section estimates, is not printed",
        )
    }


def errata_numbers():
    """The computed numbers in ``errata.toml``."""
    from book.liminal2025 import ablation

    fixed = Assumptions.corrected()
    deepseek = {name: _counted("DeepSeekV3", a) for name, a in (("fused", PRINTED), ("low", fixed))}
    kimi = {name: _counted("Kimi-K2", a) for name, a in (("fused", PRINTED), ("low", fixed))}
    shared, literal = (PRINTED.replace(read_shared=True), PRINTED.replace(distinct_flops=True))
    wide = app("DeepSeekV3").pair_flops / load_model("DeepSeekV3", fixed).pair_flops - 1
    local = PRINTED.replace(local_attention=True)
    qwen = load_model("Qwen3-30B", literal)
    most = ablation.survivors(PRINTED)
    hop, narrow = (PRINTED.replace(free_stages=0.0), PRINTED.replace(wide_values=False))
    teraflops = PRINTED.replace(pflops=PRINTED.pflops / 1000)
    exactly = PRINTED.replace(**ablation.with_latencies(model.collective_latency(8), factor("us")))
    survivors = ablation.table().set_index("change").survive
    quoted = Reader("liminal2025", "Text 4.6")
    return {
        "slow": _written(_under(teraflops, "Llama3-405B", 128, SMALL_CONTEXT)),
        "right": _written(speed("Llama3-405B")),
        "more": f"{PRINTED.tb_per_s / 1e12 - 1:.0%}",
        "decimal_cells": f"{survivors['everything decimal']}",
        "scout_read": f"{model.bytes_loaded(app('Llama4-Scout'), 1, SMALL_CONTEXT) / 1e9:.1f}",
        "scout_all": f"{_bytes('Llama4-Scout', shared) / 1e9:.1f}",
        "maverick": _written(speed("Llama4-Maverick", n=8)),
        "maverick_all": _written(_under(shared, "Llama4-Maverick", 8, SMALL_CONTEXT)),
        "deepseek": _written(speed("DeepSeekV3", n=8)),
        "deepseek_all": _written(_under(shared, "DeepSeekV3", 8, SMALL_CONTEXT)),
        "fused_total": f"{deepseek['fused'][0]:.0f}",
        "low_total": f"{deepseek['low'][0]:.0f}",
        "fused_active": f"{deepseek['fused'][1]:.1f}",
        "low_active": f"{deepseek['low'][1]:.1f}",
        "kimi_fused_active": f"{kimi['fused'][1]:.1f}",
        "kimi_low_active": f"{kimi['low'][1]:.1f}",
        "wide": f"{wide:.1%}",
        "literal": f"{model.arithmetic_intensity(qwen, 32, SMALL_CONTEXT, literal):.1f}",
        "evaluated": f"{model.arithmetic_intensity(app('Qwen3-30B'), 32, 4 * K):.1f}",
        "narrow_lost": f"{most - ablation.survivors(narrow)}",
        "hop_lost": f"{most - ablation.survivors(hop)}",
        "kept": f"{most}",
        "worst": f"{experts.noise().deviation.abs().max():.2f}",
        "sram_faster": f"{load_chip('SRAM').bandwidth / load_chip('HBM3').bandwidth:.0f}",
        "hops": f"{1e6 * model.exposed_time(app('Llama3-70B'), 128, 80, 0):.1f}",
        "achieved": f"{1e9 * model.collective_latency(128):.2f}",
        "exactly_cells": f"{ablation.survivors(exactly)}",
        "collectives": f"{model.collectives(app('GPT-OSS-120B'), 128):.0f}",
        "gains": ", ".join(
            f"{efficiency.marker(n, '3D-DRAM', LARGE_CONTEXT)[1]:.1f}"
            for n in ("Qwen3-30B", "DeepSeekV3", "Kimi-K2")
        ),
        "gains_32": ", ".join(
            f"{efficiency.marker(n, '3D-DRAM', 32 * K)[1]:.2f}"
            for n in ("Qwen3-30B", "DeepSeekV3", "Kimi-K2")
        ),
        "hbm4": f"{load_chip('HBM4').bandwidth / PRINTED.tb_per_s:.0f}",
        "loss": f"{quoted('loss of tokens per second at the marker'):.0%}",
        "gain_low": f"{min(_gain(n, SMALL_CONTEXT) for n in LARGE):.2f}",
        "gain_high": f"{max(_gain(n, LARGE_CONTEXT) for n in LARGE):.2f}",
        "ratio": f"{load_chip('3D-DRAM').bandwidth / load_chip('HBM3').bandwidth:.1f}",
        "scout": f"{needs('Llama4-Scout', 1, SMALL_CONTEXT) / GB:.0f}",
        "oss_32": f"{needs('GPT-OSS-120B', 32, LARGE_CONTEXT) / GB:.0f}",
        "llama_32": f"{needs('Llama3-405B', 32, LARGE_CONTEXT) / GB:.0f}",
        "die": f"{PRINTED.power_per_mm2 * PRINTED.die_area:.0f}",
        "oss_local": _written(_under(local, "GPT-OSS-120B", 8, LARGE_CONTEXT)),
        "oss_full": _written(speed("GPT-OSS-120B", context=LARGE_CONTEXT, n=8)),
        "maverick_local": _written(_under(local, "Llama4-Maverick", 8, LARGE_CONTEXT)),
        "maverick_full": _written(speed("Llama4-Maverick", context=LARGE_CONTEXT, n=8)),
        "head_cells": f"{ablation.survivors(PRINTED.replace(head=True, embeddings=True))}",
        "head_gb": f"{transformer('Llama3-405B').vocab_size * transformer('Llama3-405B').d_model / 1e9:.1f}",
        "wafer": f"{1e9 * model.collective_latency(25):.0f}",
        "sram_bound": ", ".join(_arithmetic_binds()),
        "kimi_ratio": f"{efficiency.break_even_power('Kimi-K2', 'HBM4', 'HBM3'):.2f}",
        "kimi_energy": f"{efficiency.break_even_energy('Kimi-K2', 'HBM4', 'HBM3') / 8e-12:.1f}",
        "top_use": f"{use_of_arithmetic('DeepSeekV3', 'SRAM', LARGE_CONTEXT):.1%}",
        "batch": f"{model.largest_batch(app('DeepSeekV3'), load_chip('HBM3'), SMALL_CONTEXT, 128):,}",
        "batched": f"{sum(speed(n, '3D-DRAM', 32, t_tp=IDEAL) >= 1e4 for n in LARGE)}",
        "ceiling": _written(max(ceiling(n) for n in LARGE)),
    }


def _counted(name, assumptions):
    one = load_model(name, assumptions)
    routed = one.expert * one.n_experts * one.routed_share
    return model.stored_weights(one) / 1e9, (one.used + routed) / 1e9


def _bytes(name, assumptions):
    return model.bytes_loaded(load_model(name, assumptions), 1, SMALL_CONTEXT, assumptions)


def _under(assumptions, name, n, context):
    """UTPS on HBM3 at batch 1 under other assumptions."""
    chip, t_tp = (load_chip("HBM3", assumptions), model.collective_latency(n, assumptions))
    one = load_model(name, assumptions)
    return model.user_speed(one, chip, 1, context, n, 1, t_tp, assumptions)
