"""Erdil 2025, sections 1 and 2: everything their text prints, recomputed."""

from functools import partial

import numpy as np

from book.audit.grading import format_items, reproduces
from book.papers.erdil2025.economics import widths
from book.papers.erdil2025.readings import FIGURE_1
from book.papers.erdil2025.tables import H100, MODELS, SERVED, served
from inferlib.papers.erdil2025 import derivations
from inferlib.papers.erdil2025.equations import toy
from inferlib.papers.erdil2025.records import ToyAssumptions, load_model

T_HOP, SEVENTY = ToyAssumptions().t_hop, load_model("Llama 3 70B")
PALM = ("PaLM 8B", "PaLM 62B", "PaLM 540B")


@reproduces("Text 2.2.1")
def _text_2_2_1(read):
    hop = "time of one hop"
    grid = "time of an all-reduce over an evenly cut grid"
    return {
        # By how much the hops of one half of an all-reduce fall short of the ranks, on a ring of ten.
        ("ring of R ranks", "hops of a reduce-scatter, less than R by"): lambda read: (
            10 - toy.ring_all_reduce_time(10, read(hop)) / 2 / read(hop)
        ),
        ("ring of R ranks", "times round the ring"): lambda read: (
            toy.ring_all_reduce_time(2, read(hop)) / read(hop)
        ),
        # At four GPUs sqrt(N) - 1 is one.
        (grid, "factor before (sqrt(N) - 1)"): lambda read: toy.grid_all_reduce_time(4, read(hop)),
        ("ranks in an all-reduce", "exponent of the instance size"): lambda read: float(
            derivations.exponent(derivations.even_split()[2].equation.rhs, derivations.N_GPU)
        ),
    }


@reproduces("Text 2.2.2")
def _served(holds):
    def each(key, *at):
        return {name: float(served(name, *at)[key]) for name in SERVED}

    found, plain = (each("fastest over served", assumed) for assumed in (FIGURE_1, ToyAssumptions()))
    holds(
        "both models are served within a factor of 2 of the most tokens per second",
        max(found.values()) < 2,
        f"times the served speed: {format_items(found, '.2f')}; by equation 5 alone {format_items(plain, '.2f')}",
        fair="with the 6 us that Figure 1's code adds to every all-reduce",
    )
    small, large = (each("price over cost", FIGURE_1, demand) for demand in ("small", "large"))
    holds(
        "both models are sold at less than twice their cost",
        max(small.values()) < 2,
        f"price over cost at the served speed: {format_items(small, '.2f')}; at the large demand "
        f"{format_items(large, '.1f')}",
        fair="at Figure 1's small demand and peak rates",
    )


@reproduces("Text 2.2.3")
def _text_2_2_3(read):
    """Factors and exponents of equations 10 to 19, read off the derivations, and the law of equation 19."""
    d = derivations
    several = d.minimum_latency()[5].equation.rhs
    second, first = sorted(several.as_ordered_terms(), key=lambda term: d.exponent(term, d.READING))
    balance, collected, optimum, final = (step.equation for step in d.optimal_instance()[2:])
    once = {d.READING: 1, d.HOPS: 1}
    depth, width, *_ = exponents()
    at_optimum = "balance at the optimum"
    waits, reads = (d.exponent(side, d.N_GPU) for side in (balance.lhs, balance.rhs))
    cost, reading = d.factor_three()[3].equation.rhs, toy.weight_time(d.MODEL, d.CHIP, 1)
    limit = float((cost / reading).subs({symbol: 1 for symbol in cost.free_symbols}))
    latency, size = "smallest latency", "fastest instance size"
    factor = "cost of the smallest latency over the smallest cost"
    best, least, three = d.optimal_instance, d.minimum_latency, d.factor_three
    found = {
        (at_optimum, "exponent of the instance size, waiting (eq. 10)"): (best, waits),
        (at_optimum, "exponent of the instance size, reading (eq. 10)"): (best, reads),
        (size, "power that is linear in reading (eq. 11)"): (best, d.exponent(collected.lhs, d.N_GPU)),
        (size, "exponent (eq. 12)"): (best, d.exponent(optimum.rhs, d.MODEL.n_params)),
        (size, "exponent of the maximum (eq. 13)"): (best, final.rhs.as_base_exp()[1]),
        (latency, "factor (eq. 14)"): (least, first.subs(once)),
        (latency, "exponent of the hops (eq. 14)"): (least, d.exponent(first, d.HOPS)),
        (latency, "exponent of reading (eq. 14)"): (least, d.exponent(first, d.READING)),
        (latency, "second factor (eq. 14)"): (least, -second.subs(once)),
        (factor, "FLOP in eq. 17"): (three, three().result * d.CHIP.flops / d.MODEL.n_params / limit),
        (factor, ""): (three, limit),
        (latency, "exponent of depth"): (d.scaling, depth),
        (latency, "exponent of width"): (d.scaling, width),
    }

    def read_off(derivation, value):
        return lambda read: float(value) if derivation() else None

    return {place: read_off(*pair) for place, pair in found.items()} | {
        # N = width^2 depth, so width = (N / depth)^(1/2), and depth is a power of N.
        (latency, "exponent of parameters (eq. 19)"): lambda read: (
            read("depth", "exponent of parameters") * (depth - width / 2) + width / 2
        ),
        ("70B dense model", "tokens per second"): partial(_scaled_speed, name="70B dense model"),
        ("405B dense model", "tokens per second"): partial(_scaled_speed, name="405B dense model"),
        ("PaLM 62B", "latency"): partial(scaled_latency, name="PaLM 62B"),
        ("PaLM 540B", "latency"): partial(scaled_latency, name="PaLM 540B"),
    }


def exponents():
    """The powers with which the smallest latency grows: depth, width, hop, bandwidth, parameters."""
    return [float(step.equation.rhs) for step in derivations.scaling()]


def beyond_critical(model, n_gpu):
    """Latency and cost at half, once and twice the critical batch, on a given instance."""
    t_reduce = toy.grid_all_reduce_time(n_gpu, T_HOP)
    batches = [f * toy.critical_batch(model, H100) for f in (0.5, 1, 2)]
    latency = [toy.toy_latency(model, H100, n_gpu, b, t_reduce) for b in batches]
    cost = [toy.toy_gpu_seconds(model, H100, n_gpu, b, t_reduce) for b in batches]
    return latency, cost


def speed_up(times):
    """How much faster Llama 3 70B's fastest token gets with more bandwidth: on a large instance, and on the best."""
    more = H100.replace(memory_bandwidth=times * H100.memory_bandwidth)
    latencies = toy.minimum_latency_large, toy.minimum_latency
    return [latency(SEVENTY, H100, T_HOP) / latency(SEVENTY, more, T_HOP) for latency in latencies]


@reproduces("Text 2.2.3")
def _limits(read, holds):
    latency, cost = beyond_critical(SEVENTY, 16)
    holds(
        "b* gives both the smallest cost and the smallest latency of an instance",
        latency[1] <= min(latency) and cost[1] <= min(cost),
        f"latency yes, cost no: Llama 3 70B on 16 GPUs costs {1 - cost[2] / cost[1]:.0%} less at twice b*",
    )
    at = [(load_model(name), H100, T_HOP) for name in MODELS]
    far = [toy.minimum_latency_large(*one) / toy.minimum_latency(*one) - 1 for one in at]
    holds(
        "equation 18 is a good approximation for large models",
        far == sorted(far, reverse=True) and far[MODELS.index("PaLM-540B")] < 0.1,
        f"above equation 14 by {', '.join(f'{error:.0%}' for error in far)}, in Table 1's order",
        fair="the better the larger the model",
    )
    (wide, top), (narrow, far) = widths(load_model("Llama 3 70B 8-bit"), H100)
    holds(
        "the frontier is wider than a factor of 3 because of network bandwidth",
        wide > 3 and narrow < wide / 3,
        f"Llama 3 70B at 8 bits, dollars at nine tenths of the top speed over the least: {wide:.0f}, and {narrow:.1f} "
        f"without a limit of bandwidth; at the very top {top:,.0f} and {far:,.0f}",
        fair="up to nine tenths of the top speed",
    )
    power = palm_power(read)
    holds(
        "the PaLM latencies follow the square root almost exactly",
        abs(power - 0.5) <= 0.05,
        f"the power over the three sizes is {power:.2f}; from PaLM 8B {palm_errors(read)}, within the rounding of "
        "4 ms and 8B",
        fair="as a power, over all three",
    )


def _scaled_speed(read, name):
    """Tokens per second by the square-root law from Llama 3 8B."""
    known = (read("Llama 3 8B", "parameters"), 1 / read("Llama 3 8B", "tokens per second"))
    return 1 / toy.square_root_law(read(name, "parameters"), *known)


def scaled_latency(read, name):
    """Seconds per token by the square-root law from PaLM 8B."""
    known = (read("PaLM 8B", "parameters", "Text 2.2.3"), read("PaLM 8B", "latency", "Text 2.2.3"))
    return toy.square_root_law(read(name, "parameters", "Text 2.2.3"), *known)


def palm_power(read):
    """The power of the parameters with which the three printed latencies of PaLM grow."""
    known = [[read(name, column, "Text 2.2.3") for name in PALM] for column in ("parameters", "latency")]
    return np.polyfit(*np.log(known), 1)[0]


def palm_errors(read):
    """How far the law from PaLM 8B misses the other two, in words."""
    off = {n: scaled_latency(read, n) / read(n, "latency", "Text 2.2.3") - 1 for n in PALM[1:]}
    return format_items(off, "+.0%")


@reproduces("Figure 2")
def _figure_2(read, holds):
    power = palm_power(read)
    holds(
        "the best PaLM latencies follow the square root approximately",
        abs(power - 0.5) <= 0.1,
        f"power {power:.2f} (threshold, ours: 0.1); from PaLM 8B {palm_errors(read)}",
    )
