"""Steinhardt 2022: the numbers that ``errata.toml`` names in braces."""

from book.audit.ledger import Reader, compute, errata_numbers, published
from book.papers.steinhardt2022.symbols import slopes
from book.papers.steinhardt2022.tables import (
    MS,
    US,
    counts,
    power_of_two,
    slow_network,
    uneven_share,
    warm_up,
)
from inferlib.papers.steinhardt2022 import equations as model
from inferlib.papers.steinhardt2022.equations import PRINTED, WITHOUT_LIMIT, Assumptions, load_chip, stated
from inferlib.units import factor


def _recomputed(*place):
    """What the scorecard computes for one printed row, in SI units."""
    return compute(published("steinhardt2022")[place])[0]


@errata_numbers("steinhardt2022")
def formula():
    """The complete formula on the post's own machine, and what its assumptions are worth."""
    a100, slow = load_chip("A100"), slow_network()
    between, beyond = (
        a100.replace(chips=1, network_bandwidth=share * a100.memory_bandwidth) for share in (0.9, 1.5)
    )
    uneven = a100.replace(network_bandwidth=a100.network_bandwidth * uneven_share(a100))
    fast = a100.replace(network_bandwidth=WITHOUT_LIMIT)
    few = model.memory_block(a100), model.memory_batch(a100) / 10
    memory, network = slopes(a100)
    serial = Assumptions.corrected()
    return {
        "fast_us": model.elapsed_time(a100) / US,
        "slow_us": model.elapsed_time(slow) / US,
        "times_slower": model.elapsed_time(slow) / model.elapsed_time(a100),
        "slow_ms": model.forward_pass_time(slow, 1) / MS,
        "excess": model.network_limited_time(between) / model.elapsed_time(between),
        "beyond_us": model.network_limited_time(beyond) / US,
        "loss": 1 - uneven_share(a100),
        "uneven_us": model.elapsed_time(uneven) / US,
        "gain": model.elapsed_time(fast) / model.block_time(fast, *few),
        "use": model.block_utilisation(fast, *few),
        "memory_power": memory,
        "network_power": network,
        "latency_k": model.latency_waste(a100),
        "floor_gain": model.practical_time(a100, 1) / PRINTED.latency,
        "layers": PRINTED.layers,
        "serial": model.multiplies(serial),
        "serial_ms": model.forward_pass_time(a100, 1, serial) / MS,
        "pass_ms": model.forward_pass_time(a100, 1) / MS,
    }


@errata_numbers("steinhardt2022")
def blocks():
    """How many machines the tiling takes, without and with the constants, and attention beside it."""
    a100 = load_chip("A100")
    rough, whole = model.rough_machine_block(a100), model.machine_block(a100)
    read = Reader("steinhardt2022", "Matrix multiplies")
    single = [2 * model.attention_ratio(d, read("context")) for d in read("width")]
    (machines_low, machines_high), (chips_low, chips_high) = counts(power_of_two(whole))
    return {
        "rough": rough,
        "rough_rounded": power_of_two(rough),
        "whole": whole,
        "whole_rounded": power_of_two(whole),
        "machines_low": machines_low,
        "machines_high": machines_high,
        "chips_low": chips_low,
        "chips_high": chips_high,
        "ratio": (power_of_two(whole) / power_of_two(rough)) ** 2,
        "ratio_exact": model.blocks_needed(whole, power_of_two(rough)),
        "single_low": single[0],
        "single_high": single[1],
        # a fourth matrix of the same size, against both sums
        "four_low": single[0] / 2 * 4 / 3,
        "four_high": single[1] / 2 * 4 / 3,
    }


@errata_numbers("steinhardt2022")
def example():
    """The warm-up, batching and tiling by exact arithmetic."""
    given, gi = stated()["warm_up"], 1024**3
    one, batched, tile = warm_up(), warm_up(given["batch"]), warm_up(given["batch"], given["grid"])
    rows = published("steinhardt2022")
    amount, rate = rows["Batching", "memory", "amount"], rows["Warm-up", "A100", "M"]
    ends = [
        (amount.value + sign * amount.resolution / 2 * factor(amount.unit))
        / (rate.value - sign * rate.resolution / 2 * factor(rate.unit))
        for sign in (-1, 1)
    ]
    return {
        "stated_us": _recomputed("Batching", "memory", "time") / US,
        "stated_low_us": ends[0] / US,
        "stated_high_us": ends[1] / US,
        "memory_us": batched.microseconds["memory"],
        "arithmetic_us": batched.microseconds["arithmetic"],
        "layer_us": batched.microseconds.max() / given["layers"],
        "once_us": one.microseconds["arithmetic"],
        "vectors_gb": (batched.amount["memory"] - one.amount["memory"]) / factor("GB"),
        "tile_work_us": tile.microseconds["arithmetic"],
        "single_us": one.microseconds["memory"],
        "batched_gb": batched.amount["memory"] / factor("GB"),
        "batched_gib": batched.amount["memory"] / gi,
        "work_g": batched.amount["arithmetic"] / factor("GFLOP"),
        "work_gi": batched.amount["arithmetic"] / gi,
        "tile_us": tile.microseconds["memory"],
        "tile_stated_us": _recomputed("Tiling", "memory", "time") / US,
        "tile_speed_up": batched.microseconds.max() / given["layers"] / tile.microseconds.max(),
        "short": 1 - rows["Tiling", "memory", "time"].value / US / tile.microseconds["memory"],
        "both_ways": one.amount["network"],
    }
