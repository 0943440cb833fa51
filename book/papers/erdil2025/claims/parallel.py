"""Erdil 2025, section 3.5 (pipeline and expert parallelism) and its footnotes, recomputed."""

from functools import cache

import numpy as np

from book.audit.grading import format_items, reproduces
from book.build_cache import cached
from book.papers.erdil2025 import economics
from book.papers.erdil2025.claims import model as section_3
from book.papers.erdil2025.claims.model import H100, PRINTED, UNLIMITED, token_latency
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.records import Cut, load_model

# Section 3.5: pipeline and expert parallelism.


def at_cost(curve, costs, column="tokens_per_second"):
    """A column of a frontier at given costs: of the fastest point that is not dearer."""
    order = np.searchsorted(-curve.usd_per_million.to_numpy(), -np.asarray(costs), side="left")
    return curve[column].to_numpy()[order]


def common_costs(first, second):
    """Evenly spaced costs that two frontiers both reach, from the least to the highest."""
    both = first.usd_per_million, second.usd_per_million
    return np.geomspace(max(map(min, both)), min(map(max, both)), 400)


def without_pipeline(name, draft=economics.DRAFT):
    """A frontier of Tables 2 and 3 with pipeline parallelism left out."""
    return economics.frontier(
        load_model(name),
        H100,
        draft=draft and load_model(draft),
        acceptance=economics.ACCEPTANCE,
        pipeline=False,
    )


def gains(without, with_it, beyond=0.0):
    """How much faster a second frontier is: at its fastest, and at most and at least at one cost.

    ``beyond``: tokens per second that the first frontier has to exceed at a cost for the cost to count.
    """
    costs = common_costs(without, with_it)
    slow, fast = (at_cost(curve, costs) for curve in (without, with_it))
    at_one_cost = (fast / slow - 1)[slow > beyond]
    fastest = with_it.tokens_per_second.max() / without.tokens_per_second.max() - 1
    return float(fastest), float(at_one_cost.max()), float(at_one_cost.min())


def saved(without, with_it):
    """The largest part of the cost that a second frontier saves at one speed, over all speeds that both reach."""
    both = without.tokens_per_second, with_it.tokens_per_second
    at = np.geomspace(max(map(min, both)), 0.999 * min(map(max, both)), 200)
    # speed and cost fall from row to row, so the cheapest point that is fast enough is the last
    last = (np.searchsorted(-speed, -at, side="right") - 1 for speed in both)
    old, new = (
        curve.usd_per_million.to_numpy()[k] for curve, k in zip((without, with_it), last, strict=True)
    )
    return (1 - new / old).max()


MEMORY_READS = H100.memory_bandwidth / H100.memory_capacity  # tokens/s: faster steps cannot read all memory


@cache
def pipeline_gains(drafted):
    """What pipelines gain over data parallelism, by model, with the small model drafting or without.

    The most at one cost where a token without pipelines is faster than memory can be read, the most at a cost a
    twentieth above the least that both reach, and the largest part of the cost that they save at one speed.
    """
    dense = ("Llama 3 70B", "Llama 3 70B 8-bit", "Llama 3.1 405B", "Llama 3.1 405B 8-bit")
    undrafted = (*dense, "Mixtral 8x22B", "GPT-4", "DeepSeek-V3")
    draft, names = (economics.DRAFT, economics.SERVED) if drafted else (None, undrafted)
    found = {}
    for name in names:
        both = without_pipeline(name, draft), economics.curve(name, draft=draft)
        near = 1.05 * common_costs(*both)[0]
        slow, quick = (at_cost(curve, [near])[0] for curve in both)
        found[name] = gains(*both, beyond=MEMORY_READS)[1], quick / slow - 1, saved(*both)
    return found


def capacity_matters(name, pipeline):
    """Return how much cheaper unlimited memory makes any speed above the bound, cached in the build."""

    def most():
        n_gpu, batch = np.geomspace(0.5, 512, 220)[:, None], np.geomspace(1, 4096, 220)
        times = [
            token_latency(load_model(name), chip, n_gpu, batch, pipeline=pipeline)
            for chip in (H100, UNLIMITED)
        ]
        speeds = np.geomspace(MEMORY_READS, 0.999 / times[1].min(), 80)
        real, ideal = (
            np.array([np.where(1 / t >= speed, n_gpu * t / batch, np.inf).min() for speed in speeds])
            for t in times
        )
        return max(0.0, *(real / ideal - 1)[np.isfinite(real)])

    case = f"capacity of {name}, {pipeline}"
    return cached(case, most, "book/papers/erdil2025/claims/*.py", *economics.SEARCH)


def _transfers(read):
    shape, stages = load_model("Llama 3 70B").shape, 5
    split = section_3.terms(shape, H100, Cut(float(stages), kind="1D"), 40, 50, 0, 1, PRINTED)
    hops = next(stage["pipeline"] for stage in split if "pipeline" in stage)
    one = m.stage_network(shape, H100, 40 / stages, PRINTED).time(50 / stages)
    return stages - hops / one


def table_2_batches():
    """The batches of Table 2's points, by model."""
    return {
        name: point(economics.curve(**setting)).batch
        for (table, name), (setting, point) in economics.settings().items()
        if table == "Table 2"
    }


@reproduces("Text 3.5")
def _text_3_5():
    return {("pipeline", "transfers, fewer than stages by"): _transfers}


@reproduces("Text 3.5")
def _parallelism(holds):
    names = ("Llama 3 70B", "Mixtral 8x22B", "GPT-4", "DeepSeek-V3")
    with_, without = ({n: capacity_matters(n, pipeline) for n in names} for pipeline in (True, False))
    costs = ", ".join(f"{n} {with_[n]:.2%} with pipelines and {without[n]:.1%} without" for n in names)
    holds(
        "frontiers beyond that speed do not depend on memory capacity",
        with_["Llama 3 70B"] == without["Llama 3 70B"] == 0,
        f"cost that unlimited memory saves at one speed, at most: {costs}",
        fair="for dense models, whose step reads all of memory",
    )
    fast, cheap, saves = ({name: of[i] for name, of in pipeline_gains(False).items()} for i in range(3))
    drafted = {name: of[0] for name, of in pipeline_gains(True).items()}
    holds(
        "there is generally no reason for pipeline parallelism beside data parallelism",
        sorted(fast.values())[-2] < 0.05,  # "generally": for all models but one
        f"beyond {MEMORY_READS:.0f} tokens/s pipelines gain at one cost at most (threshold, ours: 5 %) "
        f"{format_items(fast, '.1%')}; with drafts {format_items(drafted, '.1%')}; over all speeds they "
        f"save at one speed up to "
        f"{format_items(saves, '.0%')}; at a twentieth more than the least cost they gain {format_items(cheap, '.0%')}",
        fair="for all models but one at the speeds of the sentence before, and without drafts, as its footnote 5 says",
    )
    batches = table_2_batches()
    spread = {
        name: batches[name] / (PRINTED.expert_threshold * m.sparsity(load_model(name).shape, PRINTED))
        for name in ("Mixtral 8x22B", "GPT-4")
    }
    always, rule = (
        token_latency(load_model("DeepSeek-V3"), H100, 14, 1, assumptions=a, pipeline=False)
        for a in (PRINTED.replace(expert_threshold=0), PRINTED)
    )
    holds(
        "experts are spread whenever GPUs are fewer than experts",
        always == rule,
        f"the notebook waits for micro-batches of twice s; Table 2's batches over that: {format_items(spread, '.3f')}; "
        f"DeepSeek-V3 on 14 GPUs at batch 1 makes {1 / rule:.0f} tokens/s by this rule, {1 / always:.0f} by the text",
    )
