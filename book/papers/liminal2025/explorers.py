"""Explorers of LIMINAL 2025."""

from book.explorer import Choice, Curves, Explorer, Limit, Sentence, Slider, sizes
from book.papers.liminal2025.derivations import latency_for
from inferlib.ops import maximum
from inferlib.papers import liminal2025 as model
from inferlib.units import factor


def _counted(weights, cache):
    return model.PRINTED.replace(weight_bytes=weights, cache_bytes=cache)


def _memory(available):
    """Return the bytes of a batch's weights and caches, against the memory available."""

    def needed(app, batch, context, weights, cache, **at):
        return model.capacity_needed(app, batch, context, _counted(weights, cache))

    return {"Memory for weights and caches": Limit(needed, available, "GB")}


PROFITS = ("Llama3-405B", "Llama3-70B", "DeepSeekV3", "GPT-OSS-120B", "Qwen3-30B")


def limits(apps, known, new, latency, mine, context, chips, assumed):
    """Explorer of the limits of one user: gain by a memory, at which latency of a collective, and speed.

    It opens with the ``new`` chip's memory and compares with the ``known`` chip's. ``mine``: the initial model.
    """
    start = next((name for name, app in apps.items() if app == mine), str(mine))
    offered = {start: mine} | apps
    today = known.bandwidth / factor("TB/s")

    def speed(app, bandwidth, latency, batch, context, chips, weights, cache, **at):
        chip = known.replace(bandwidth=bandwidth * factor("TB/s"))
        at = app, chip, batch, context, chips, 1.0, latency * factor("ns")
        return model.user_speed(*at, _counted(weights, cache))

    def gain(**at):
        return speed(**at) / speed(**(at | {"bandwidth": today}))

    def of_one(name):
        return lambda app, **at: gain(app=apps[name], **at)

    def share(**at):
        # relative to the gain without any waiting
        return (gain(**at) - 1) / maximum(gain(**(at | {"latency": 0.0})) - 1, 1e-9)

    def balance(app, batch, context, chips, weights, cache, **at):
        reading = model.batch_time(app, known, batch, context, chips, 1.0, 0.0, _counted(weights, cache))
        return latency_for(app, chips, 1 / (2 * reading), 0.5)

    says = (
        "{0} times as fast, {1} % of what it would gain without waiting. "
        f"{known.name} and collectives take it equally long at {{2}} ns."
    )
    return Explorer(
        "What limits one user?",
        [
            Slider("bandwidth", "Memory bandwidth", 1, 300, round(new.bandwidth / 1e12, 1), "TB/s", log=True),
            Slider("latency", "One collective", 10, 2000, round(latency / factor("ns"), 1), "ns", log=True),
            Slider("batch", "Batch", 1, 1024, 1, log=True, whole=True),
            Slider("context", "Context", 1024, 131072, context, "tokens", log=True, whole=True),
            Slider("chips", "Chips", 1, 128, chips, log=True, whole=True),
            Slider("capacity", "Memory capacity", 1, 1000, round(known.capacity / 1e9), "GB", log=True),
            Choice("weights", "Weights", sizes(assumed.weight_bytes)),
            Choice("cache", "Cache", sizes(assumed.cache_bytes, least=1)),
            Choice("app", "Model", offered),
        ],
        [
            Sentence(
                {
                    "times as fast": (gain, "1"),
                    "of the gain without waiting": (share, "%"),
                    "balance": (balance, "ns"),
                },
                (
                    (1, f"No faster than {known.name}: {{0}} times its speed."),
                    (1.1, "The chosen model hardly notices: " + says),
                    (1.5, "The chosen model profits a little: " + says),
                    (None, "The chosen model profits: " + says),
                ),
            ),
            Curves(
                {name: of_one(name) for name in PROFITS},
                "latency",
                f"times as fast as with {known.name}, one user",
            ),
            Curves(
                {
                    "as it is": speed,
                    "free collectives": lambda **at: speed(**(at | {"latency": 0.0})),
                    "free memory": lambda **at: speed(**(at | {"bandwidth": 1e9})),
                },
                "bandwidth",
                "tokens per second, one user of the chosen model",
                "1/s",
                log_y=True,
            ),
        ],
        limits=_memory(lambda chips, capacity, **at: chips * capacity * factor("GB")),
    )
