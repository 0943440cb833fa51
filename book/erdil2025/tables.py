"""Erdil 2025, section 2: everything it prints, recomputed."""

from functools import partial

from inferlib import ledger
from inferlib.ledger import Noted, Reader, reproduces
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.equations.toy import ToyAssumptions
from inferlib.papers.erdil2025.records import chips, models
from inferlib.units import factor

reproduces = partial(reproduces, "erdil2025")
H100 = chips["H100"]
MODELS = ("Llama 3 8B", "Llama 3 70B", "GPT-3", "PaLM-540B", "GPT-4")


def table_1(assumptions=None):
    """Table 1: the most tokens per second of five models on H100s, and the instance that makes them.

    Parameters
    ----------
    assumptions : ToyAssumptions, optional

    Returns
    -------
    pandas.DataFrame
        Indexed by model: ``tokens_per_second`` and ``n_gpu``, not rounded.
    """
    import pandas as pd

    assumptions = assumptions or ToyAssumptions()
    rows = {}
    for name in MODELS:
        model, chip = assumptions.applied_to(models[name], H100)
        speed = 1 / toy.minimum_latency(model, chip, assumptions.t_hop)
        rows[name] = (speed, toy.optimal_n_gpu(model, chip, assumptions.t_hop))
    return pd.DataFrame.from_dict(rows, orient="index", columns=["tokens_per_second", "n_gpu"])


@reproduces("Table 1")
def _table_1(read):
    cells = {}
    for name, row in table_1().iterrows():
        cells[name, "tokens per second"] = row.tokens_per_second
        cells[name, "GPUs"] = row.n_gpu
    return cells


@reproduces("Text 1")
def _text_1(read):
    cut = "cutting a multiplication along all three dimensions"
    # Each GPU holds two-dimensional slices of a three-dimensional product.
    gpus = partial(_power, row=cut, column="factor in each", power=3)
    faster = partial(_power, row=cut, column="factor in each", power=2)
    return {
        ("the complete model answers the DGX H100 question", ""): _question_answered,
        (cut, "factor in GPUs"): gpus,
        (cut, "factor in speed"): faster,
        (cut, "factor in memory and network traffic"): lambda read: gpus(read) / faster(read),
        (cut, "factor in utilisation"): lambda read: faster(read) / gpus(read),
    }


def _question_answered(read):
    from book.erdil2025.claims.takeaways import question_answered

    return question_answered(read)


def _power(read, row, column, power):
    return read(row, column) ** power


@reproduces("Text 2.1")
def _text_2_1(read):
    model = models["Llama 3 8B"]
    best = toy.critical_batch(model, H100)
    note = f"b* = {best:.1f} on an H100 at 16 bits"
    latency, seconds = (
        {f: function(model, H100, f * best) for f in (0.5, 1.0, 2.0)}
        for function in (toy.single_gpu_latency, toy.single_gpu_seconds)
    )
    equal = abs(toy.weight_time(model, H100, 1) / toy.arithmetic_time(model, H100, 1, best) - 1) < 1e-12
    same_latency = abs(latency[0.5] / latency[1.0] - 1) < 1e-12
    return {
        ("at b* reading and arithmetic take equally long", ""): Noted(equal, note),
        ("b* is the largest batch with the smallest latency", ""): Noted(
            same_latency and toy.single_gpu_latency(model, H100, best * (1 + 1e-6)) > latency[1.0], note
        ),
        ("a batch above b* costs latency and saves nothing", ""): Noted(
            latency[2.0] > latency[1.0] and abs(seconds[2.0] / seconds[1.0] - 1) < 1e-12,
            f"twice b*: {latency[2.0] / latency[1.0]:.3g} times the latency",
        ),
        ("a batch below b* costs more and saves no latency", ""): Noted(
            same_latency and seconds[0.5] > seconds[1.0],
            f"half of b*: {seconds[0.5] / seconds[1.0]:.3g} times the cost",
        ),
    }


@reproduces("Footnote 1")
def _footnote_1(read):
    def layer(read):
        model = "Llama 2 70B"
        return read(model, "parameters") * read(model, "bits of a weight") / 8 / read(model, "layers")

    return {
        ("Llama 2 70B", "bytes of one layer"): layer,
        ("GPUs whose caches hold one layer", ""): lambda read: (
            read("Llama 2 70B", "bytes of one layer") / read("L2 cache of a GPU")
        ),
    }


def _hops_missing(read):
    """By how much the hops of one half of an all-reduce fall short of the ranks, on a ring of ten."""
    hop = read("time of one hop")
    return 10 - toy.ring_all_reduce_time(10, hop) / 2 / hop


@reproduces("Text 2.2.1")
def _text_2_2_1(read):
    from inferlib.papers.erdil2025.derivations import toy as derivations

    ranks = derivations.even_split()[2].equation.rhs
    model, t_hop = models["Llama 3 70B"], ToyAssumptions().t_hop
    size = toy.optimal_n_gpu(model, H100, t_hop)
    slower = min(toy.critical_latency(model, H100, f * size, t_hop) for f in (0.5, 2.0))
    best = toy.critical_latency(model, H100, size, t_hop)
    even, uneven = (r + size / r for r in (size**0.5, size**0.5 * 2))
    grid = "time of an all-reduce over an evenly cut grid"
    return {
        # At four GPUs sqrt(N) - 1 is one.
        ("ring of R ranks", "hops of a reduce-scatter, less than R by"): lambda read: _hops_missing(read),
        ("ring of R ranks", "times round the ring"): lambda read: (
            toy.ring_all_reduce_time(2, read("time of one hop")) / read("time of one hop")
        ),
        (grid, "factor before (sqrt(N) - 1)"): lambda read: toy.grid_all_reduce_time(
            4, read("time of one hop")
        ),
        ("ranks in an all-reduce", "exponent of the instance size"): float(
            derivations.exponent(ranks, derivations.N_GPU)
        ),
        ("there is an instance size that is fastest even if cost does not matter", ""): Noted(
            slower > best,
            f"Llama 3 70B: {size:.1f} GPUs; half or twice as many cost {slower / best - 1:.1%} or more",
        ),
        ("the weight matrices are best cut evenly", ""): Noted(
            uneven > even, f"a grid four times as long as wide moves {uneven / even - 1:.0%} more"
        ),
    }


SERVED = ("Llama 3 8B", "Llama 3 70B")


def served(read, name, assumptions=toy.FIGURE_1):
    """A quoted offer against the frontier at the small demand and the printed rent.

    Returns
    -------
    dict
        Fastest speed over the served one, and price over the cost at the served speed; NaN where the
        frontier does not reach that speed.
    """
    speed = read(f"{name} at Fireworks", "tokens per second")
    price = read(f"{name} at Fireworks", "price of a million tokens") / factor("usd/Mtok")
    demand = read("total demand", "small", artefact="Figure 1")
    rent = read("rent of one GPU") / factor("usd/h")
    frontier = toy.toy_frontier(models[name], H100, demand=demand, price=rent, assumptions=assumptions)
    reached = frontier[frontier.tokens_per_second >= speed]
    return {
        "fastest": frontier.tokens_per_second.max(),
        "fastest over served": frontier.tokens_per_second.max() / speed,
        "cost": reached.usd_per_million.min(),
        "price over cost": price / reached.usd_per_million.min(),
    }


def served_in_both_readings():
    """The offers against the frontiers of both readings of Figure 1.

    Returns
    -------
    pandas.DataFrame
        One row a reading and model; an empty cell where the frontier ends below the served speed.
    """
    import pandas as pd

    read = Reader("erdil2025", "Text 2.2.2")
    readings = {"peak rates": toy.FIGURE_1, "attainable rates": toy.FIGURE_1_CAPPED}
    rows = [
        {"reading": reading, "model": name} | served(read, name, assumptions)
        for reading, assumptions in readings.items()
        for name in SERVED
    ]
    return pd.DataFrame(rows).drop(columns=["fastest", "cost"]).astype(object).fillna("")


@reproduces("Text 2.2.2")
def _text_2_2_2(read):
    """Claims about Figure 1's small-demand curve: served speed against the fastest, price against cost."""
    cells = {}
    for name in SERVED:
        found = served(read, name)
        cells[f"{name} is served within a factor of 2 of the most tokens per second", ""] = Noted(
            bool(found["fastest over served"] < 2),
            f"fastest {found['fastest']:.0f} tokens/s, {found['fastest over served']:.2f} times the served speed",
        )
        cells[f"{name} is sold at less than twice its cost", ""] = Noted(
            bool(found["price over cost"] < 2),
            f"cost ${found['cost']:.2f} a million at that speed; price {found['price over cost']:.2f} times that",
        )
    return cells


@reproduces("Text 2.2.3")
def _text_2_2_3(read):
    return (
        _coefficients()
        | _claims_2_2_3(read)
        | {
            ("70B dense model", "tokens per second"): partial(_scaled_speed, name="70B dense model"),
            ("405B dense model", "tokens per second"): partial(_scaled_speed, name="405B dense model"),
            ("PaLM 62B", "latency"): partial(_scaled_latency, name="PaLM 62B"),
            ("PaLM 540B", "latency"): partial(_scaled_latency, name="PaLM 540B"),
        }
    )


def _exponents():
    """The powers with which the smallest latency grows: caption of the derivation to number."""
    from inferlib.papers.erdil2025.derivations.toy import scaling

    return {step.caption: float(step.equation.rhs) for step in scaling()}


def _coefficients():
    """Factors and exponents of equations 12 to 19, read off the derivations."""
    from inferlib.papers.erdil2025.derivations import toy as d

    several = d.minimum_latency()[3].equation.rhs
    second, first = sorted(several.as_ordered_terms(), key=lambda term: d.exponent(term, d.READING))
    optimum = d.optimal_instance()[4].equation.rhs
    once = {d.READING: 1, d.HOPS: 1}
    depth, width, *_ = _exponents().values()
    cost, reading = (d.factor_three()[2].equation.rhs, toy.weight_time(d.MODEL, d.CHIP, 1))
    limit = float((cost / reading).subs({symbol: 1 for symbol in cost.free_symbols}))
    least = _cost_factor(models["Llama 3 70B"])
    latency, balance = "smallest latency", d.optimal_instance()[2].equation
    final = d.optimal_instance().result
    return {
        ("balance at the optimum", "exponent of the instance size, waiting (eq. 10)"): float(
            d.exponent(balance.lhs, d.N_GPU)
        ),
        ("balance at the optimum", "exponent of the instance size, reading (eq. 10)"): float(
            d.exponent(balance.rhs, d.N_GPU)
        ),
        ("fastest instance size", "power that is linear in reading (eq. 11)"): float(
            d.exponent(d.optimal_instance()[3].equation.lhs, d.N_GPU)
        ),
        ("fastest instance size", "exponent of the maximum (eq. 13)"): float(final.as_base_exp()[1]),
        ("cost of the smallest latency over the smallest cost", "FLOP in eq. 17"): float(
            d.factor_three().result * d.CHIP.flops / d.MODEL.n_params / limit
        ),
        ("fastest instance size", "exponent (eq. 12)"): float(d.exponent(optimum, d.MODEL.n_params)),
        (latency, "factor (eq. 14)"): float(first.subs(once)),
        (latency, "exponent of the hops (eq. 14)"): float(d.exponent(first, d.HOPS)),
        (latency, "exponent of reading (eq. 14)"): float(d.exponent(first, d.READING)),
        (latency, "second factor (eq. 14)"): float(-second.subs(once)),
        (latency, "exponent of depth"): depth,
        (latency, "exponent of width"): width,
        # N = width^2 depth, so width = (N / depth)^(1/2), and depth is a power of N.
        (latency, "exponent of parameters (eq. 19)"): lambda read: (
            read("depth", "exponent of parameters") * (depth - width / 2) + width / 2
        ),
        ("cost of the smallest latency over the smallest cost", ""): Noted(
            limit, f"in the limit; {least:.2f} for Llama 3 70B"
        ),
    }


def _cost_factor(model):
    """Cost of the fastest token over that of the cheapest."""
    return toy.cost_at_minimum_latency(model, H100, ToyAssumptions().t_hop) / toy.arithmetic_time(
        model, H100, 1, 1
    )


def _based(model):
    """The smallest latency with Figure 1's base latency in every all-reduce."""
    return toy.minimum_latency(model, H100, ToyAssumptions().t_hop) + toy.network_time(
        model, toy.FIGURE_1.t_base
    )


def _beyond_critical(model, n_gpu):
    """Latency and cost at half, once and twice the critical batch, on a given instance."""
    t_reduce = toy.grid_all_reduce_time(n_gpu, ToyAssumptions().t_hop)
    batches = [f * toy.critical_batch(model, H100) for f in (0.5, 1, 2)]
    latency = [toy.toy_latency(model, H100, n_gpu, b, t_reduce) for b in batches]
    cost = [toy.toy_gpu_seconds(model, H100, n_gpu, b, t_reduce) for b in batches]
    return latency, cost


def _approximation_error(names):
    """How far equation 18 lies above equation 14, at most."""
    t_hop = ToyAssumptions().t_hop
    pairs = [
        [f(models[n], H100, t_hop) for f in (toy.minimum_latency_large, toy.minimum_latency)] for n in names
    ]
    return max(large / exact - 1 for large, exact in pairs)


def _claims_2_2_3(read):
    table, t_hop, tiny = (table_1(), ToyAssumptions().t_hop, models["Llama 3 8B"].replace(n_params=1e5))
    less = toy.weight_time(tiny, H100, 1) / toy.network_time(tiny, t_hop)
    seventy = models["Llama 3 70B"]
    dominant = toy.weight_time(seventy, H100, 1) / toy.network_time(seventy, t_hop)
    lost = {n: 1 - toy.minimum_latency(models[n], H100, t_hop) / _based(models[n]) for n in MODELS}
    latency, cost = _beyond_critical(models["Llama 3 70B"], 16)
    far = _approximation_error(MODELS[1:])
    depth, width, hop, bandwidth, _ = _exponents().values()
    return {
        ("b* gives both the smallest cost and the smallest latency of an instance", ""): Noted(
            latency[1] <= min(latency) and cost[1] <= min(cost),
            f"latency yes, cost no: Llama 3 70B on 16 GPUs costs {1 - cost[2] / cost[1]:.0%} less at twice b*",
        ),
        ("where the formula gives less than one GPU, one is the answer", ""): Noted(
            less < 1 and toy.optimal_n_gpu(tiny, H100, t_hop) == 1,
            f"100,000 parameters: {less ** (2 / 3):.2f} GPUs by equation 12",
        ),
        ("for large models reading takes much longer than the hops", ""): Noted(
            dominant > 100, f"Llama 3 70B: {dominant:.0f} times (asked: 100)"
        ),
        ("base latency costs small models most", ""): Noted(
            max(lost, key=lost.get) == "Llama 3 8B"
            and list(lost.values()) == sorted(lost.values(), reverse=True),
            ", ".join(f"{name} {part:.0%}" for name, part in lost.items()),
        ),
        ("even an 8B model is fastest on many GPUs", ""): Noted(
            bool(table.n_gpu["Llama 3 8B"] > 10), f"{table.n_gpu['Llama 3 8B']:.1f} GPUs"
        ),
        ("the fastest instance grows with the model", ""): Noted(
            bool(table.n_gpu.is_monotonic_increasing), ", ".join(f"{n:.0f}" for n in table.n_gpu)
        ),
        ("equation 18 is a good approximation for large models", ""): Noted(
            far < 0.2, f"at most {far:.0%} above equation 14 from Llama 3 70B on (asked: within 20%)"
        ),
        ("depth matters more than width", ""): Noted(depth > width, f"exponents {depth:.3g} and {width:.3g}"),
        ("latency of collectives matters more than memory bandwidth", ""): Noted(
            hop > -bandwidth, f"exponents {hop:.3g} and {bandwidth:.3g}"
        ),
        ("the PaLM latencies follow the square root almost exactly", ""): _palm(read, within=0.05),
    }


def _scaled_speed(read, name):
    """Tokens per second by the square-root law from Llama 3 8B."""
    known = (read("Llama 3 8B", "parameters"), 1 / read("Llama 3 8B", "tokens per second"))
    return 1 / toy.square_root_law(read(name, "parameters"), *known)


def _scaled_latency(read, name):
    """Seconds per token by the square-root law from PaLM 8B."""
    known = (read("PaLM 8B", "parameters", "Text 2.2.3"), read("PaLM 8B", "latency", "Text 2.2.3"))
    return toy.square_root_law(read(name, "parameters", "Text 2.2.3"), *known)


def _palm(read, within):
    errors = {
        name: _scaled_latency(read, name) / read(name, "latency", "Text 2.2.3") - 1
        for name in ("PaLM 62B", "PaLM 540B")
    }
    text = ", ".join(f"{name} {error:+.0%}" for name, error in errors.items())
    return Noted(
        all(abs(e) <= within for e in errors.values()), f"from PaLM 8B: {text} (asked: within {within:.0%})"
    )


@reproduces("Figure 2")
def _figure_2(read):
    return {("the best PaLM latencies follow the square root approximately", ""): _palm(read, within=0.2)}


def _speed_up(times, model=models["Llama 3 70B"]):
    """How much faster the fastest token gets with more bandwidth: for a large instance, and for a model."""
    more, t_hop = (H100.replace(memory_bandwidth=times * H100.memory_bandwidth), ToyAssumptions().t_hop)
    return [
        f(model, H100, t_hop) / f(model, more, t_hop)
        for f in (toy.minimum_latency_large, toy.minimum_latency)
    ]


def _cheapest(assumptions):
    """Dollars for a million tokens at the cheap end of Llama 3 8B's frontier at the small demand."""
    demand = Reader("erdil2025", "Figure 1")("total demand", "small")
    frontier = toy.toy_frontier(models["Llama 3 8B"], H100, demand=demand, assumptions=assumptions)
    return frontier.usd_per_million.min()


def nominal_table_1():
    """Table 1 with the models' nominal sizes in place of the paper's parameter counts, and the sizes."""
    billions = dict(zip(MODELS, (8, 70, 175, 540, 1800), strict=True))
    t_hop = ToyAssumptions().t_hop
    named = {name: models[name].replace(n_params=1e9 * size) for name, size in billions.items()}
    return {
        name: (1 / toy.minimum_latency(model, H100, t_hop), toy.optimal_n_gpu(model, H100, t_hop))
        for name, model in named.items()
    }


@ledger.errata_numbers("erdil2025")
def errata_numbers():
    """The computed numbers in ``errata.toml``, of all sections."""
    from book.erdil2025 import errata_model

    return _errata_numbers() | errata_model.numbers()


def _errata_numbers():
    """Those of sections 1 and 2, and of what section 5 says of the toy model."""
    corrected, nominal = (table_1(ToyAssumptions().corrected()), nominal_table_1())
    small, assumptions = models["Llama 3 8B"], ToyAssumptions()
    without = toy.toy_frontier(small, H100, assumptions=assumptions).tokens_per_second.max()
    based = toy.toy_frontier(small, H100, assumptions=toy.FIGURE_1).tokens_per_second.max()
    latency, cost = _beyond_critical(models["Llama 3 70B"], 16)
    doubled, doubled_70b = (1 - 1 / gain for gain in _speed_up(2))
    later, section = (Reader("erdil2025", "Text 5.1"), Reader("erdil2025", "Text 2.2.3"))
    bandwidth, memory = (later("Groq LPU", column) for column in ("memory bandwidth", "memory"))
    groq, groq_70b = _speed_up(bandwidth / later("H100 SXM", "memory bandwidth"))
    lpu, seventy = (H100.replace(memory_bandwidth=bandwidth), models["Llama 3 70B"])
    palm, measured = (_scaled_latency(section, "PaLM 62B"), section("PaLM 62B", "latency"))
    rent = Reader("erdil2025", "Text 2.2.2")("rent of one GPU") / factor("usd/h")
    return {
        "palm_speed": f"{corrected.tokens_per_second['PaLM-540B']:.0f}",
        "palm_gpus": f"{corrected.n_gpu['PaLM-540B']:.0f}",
        "fastest_without_base": f"{without:.0f}",
        "fastest_with_base": f"{based:.0f}",
        "base_us": f"{1e6 * toy.FIGURE_1.t_base:.0f}",
        "price": f"{H100.price:.2f}",
        "price_up": f"{H100.price / rent - 1:.0%}",
        "count_8b": f"{models['Llama 3 8B'].n_params / 1e9:.2f}",
        "count_70b": f"{models['Llama 3 70B'].n_params / 1e9:.2f}",
        "cost_saved": f"{1 - cost[2] / cost[1]:.0%}",
        "latency_paid": f"{latency[2] / latency[1] - 1:.0%}",
        "palm_62b": f"{palm / factor('ms'):.1f}",
        "palm_62b_error": f"{palm / measured - 1:+.0%}",
        "doubled": f"{doubled:.1%}",
        "doubled_70b": f"{doubled_70b:.1%}",
        "groq": f"{groq:.1f}",
        "groq_70b": f"{groq_70b:.1f}",
        "nominal_8b": f"{nominal['Llama 3 8B'][0]:.0f}",
        "nominal_70b": f"{nominal['Llama 3 70B'][0]:.0f}",
        "nominal_palm_gpus": f"{nominal['PaLM-540B'][1]:.0f}",
        "groq_gpus": f"{toy.optimal_n_gpu(seventy, lpu, assumptions.t_hop):.0f}",
        "groq_needed": f"{seventy.weight_bytes * seventy.n_params / memory:.0f}",
        "fraction_cost": f"{_cheapest(toy.FIGURE_1):.3f}",
        "whole_cost": f"{_cheapest(toy.FIGURE_1.corrected()):.3f}",
        "cheapest_factor_70b": f"{_cost_factor(models['Llama 3 70B']):.2f}",
    }


def ablation():
    """Table 1 under one changed assumption at a time: what survives, and what Llama 3 70B would be.

    Returns
    -------
    pandas.DataFrame
        One row a variant: cells of Table 1 that still print as printed, and two cells of Llama 3 70B.
    """
    import pandas as pd

    from inferlib.ledger import grade_of, published

    printed = [
        row for row in published("erdil2025").values() if row.artefact == "Table 1" and row.kind == "model"
    ]
    nominal = pd.DataFrame.from_dict(
        nominal_table_1(), orient="index", columns=["tokens_per_second", "n_gpu"]
    )
    default = ToyAssumptions()
    variants = {
        "as printed": table_1(),
        "nominal parameter counts": nominal,
        "two all-reduces for parallel attention": table_1(default.corrected()),
        "attainable in place of peak rates": table_1(default.replace(capped=True)),
        "a hop of 2 us": table_1(default.replace(t_hop=2e-6)),
        "a hop of 0.5 us": table_1(default.replace(t_hop=0.5e-6)),
    }
    rows = []
    for name, cells in variants.items():
        values = {"tokens per second": cells.tokens_per_second, "GPUs": cells.n_gpu}
        same = [
            grade_of(row.text, row.resolution, values[row.column][row.row])[1] == "exact" for row in printed
        ]
        llama = cells.loc["Llama 3 70B"]
        rows.append((name, sum(same), llama.tokens_per_second, llama.n_gpu))
    columns = ["assumption changed", "cells as printed, of 10", "70B tokens/s", "70B GPUs"]
    return pd.DataFrame(rows, columns=columns)
