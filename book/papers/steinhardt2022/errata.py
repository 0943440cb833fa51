"""Steinhardt 2022: the numbers that ``errata.toml`` names in braces."""

from book.audit.grading import published
from book.papers.steinhardt2022.symbols import slopes
from book.papers.steinhardt2022.tables import US, counts, power_of_two, slow_network, uneven_share, warm_up
from inferlib.papers import steinhardt2022 as model
from inferlib.papers.steinhardt2022 import PRINTED, STATED, WITHOUT_LIMIT, load_chip
from inferlib.units import factor


def formula():
    """The complete formula on the post's own machine, and what its assumptions are worth."""
    a100, slow = load_chip("A100"), slow_network()
    between = a100.replace(chips=1, network_bandwidth=0.9 * a100.memory_bandwidth)
    uneven = a100.replace(network_bandwidth=a100.network_bandwidth * uneven_share(a100))
    fast = a100.replace(network_bandwidth=WITHOUT_LIMIT)
    few = model.memory_block(a100), model.memory_batch(a100) / 10
    memory, network = slopes(a100)
    return {
        "fast_us": model.elapsed_time(a100) / US,
        "slow_us": model.elapsed_time(slow) / US,
        "times_slower": model.elapsed_time(slow) / model.elapsed_time(a100),
        "excess": model.network_limited_time(between) / model.elapsed_time(between),
        "loss": 1 - uneven_share(a100),
        "uneven_us": model.elapsed_time(uneven) / US,
        "gain": model.elapsed_time(fast) / model.block_time(fast, *few),
        "use": model.block_utilisation(fast, *few),
        "memory_power": memory,
        "network_power": network,
        "latency_k": model.latency_waste(a100),
        "floor_gain": model.practical_time(a100, 1) / PRINTED.latency,
    }


def blocks():
    """How many machines the tiling takes, without and with the constants."""
    a100 = load_chip("A100")
    rough, whole = model.rough_machine_block(a100), model.machine_block(a100)
    (machines_low, machines_high), (chips_low, chips_high) = counts(power_of_two(whole))
    return {
        "rough": rough,
        "whole": whole,
        "whole_rounded": power_of_two(whole),
        "machines_low": machines_low,
        "machines_high": machines_high,
        "chips_low": chips_low,
        "chips_high": chips_high,
        "ratio": model.blocks_needed(power_of_two(whole), power_of_two(rough)),
    }


def example():
    """The warm-up, batching and tiling by exact arithmetic."""
    given, printed = STATED["warm_up"], published("steinhardt2022")["Tiling", "memory", "time"]
    one, batched, tile = warm_up(), warm_up(given["batch"]), warm_up(given["batch"], given["grid"])
    layer = batched.microseconds.max() / given["layers"]
    return {
        "memory_us": batched.microseconds["memory"],
        "arithmetic_us": batched.microseconds["arithmetic"],
        "layer_us": layer,
        "once_us": one.microseconds["arithmetic"],
        "vectors_gb": (batched.amount["memory"] - one.amount["memory"]) / factor("GB"),
        "tile_work_us": tile.microseconds["arithmetic"],
        "single_us": one.microseconds["memory"],
        "batched_gb": batched.amount["memory"] / factor("GB"),
        "work_g": batched.amount["arithmetic"] / factor("GFLOP"),
        "tile_us": tile.microseconds["memory"],
        "tile_speed_up": layer / tile.microseconds.max(),
        "short": 1 - printed.value / US / tile.microseconds["memory"],
        "both_ways": one.amount["network"],
    }
