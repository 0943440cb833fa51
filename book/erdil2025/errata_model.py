"""Erdil 2025, sections 3 to 5: the computed numbers of their errata."""

from functools import cache

import numpy as np

from book.erdil2025 import economics
from book.erdil2025.claims import (
    context as text_context,
    economics as text_economics,
    parallel as text_parallel,
    takeaways as text_takeaways,
)
from book.erdil2025.claims.context import LONG
from book.erdil2025.claims.economics import SEVENTY
from book.erdil2025.claims.model import (
    DEEPSEEK,
    DEFAULT,
    H100,
    bytes_and_flop_of_latents,
    equal_batch,
    feed_forward,
    literal_and_coded,
)
from inferlib.ledger import grade_of, published
from inferlib.papers.erdil2025.equations import model as m
from inferlib.papers.erdil2025.equations.model import PRINTED_EQUATIONS, TABLE_5
from inferlib.papers.erdil2025.pareto import frontier
from inferlib.papers.erdil2025.records import as_model, chips, models
from inferlib.papers.erdil2025.search import speculative_latency, token_latency

SOUND = DEFAULT.replace(cache_of_micro_batch=False)  # the cache of the whole batch has to fit
COLUMNS = {
    "tokens per second": "tokens_per_second",
    "price of a million tokens": "usd_per_million",
    "GPUs": "n_gpu",
    "batch": "batch",
}


def cells_as_printed(table, alpha, dollars=None):
    """How many printed cells of a table come out with another alpha or rent, and how many there are."""
    exact = rows = 0
    for (name, row), (setting, _) in economics.settings().items():
        if name != table:
            continue
        at = economics.preferred(economics.curve(**setting), alpha)
        for column, field in COLUMNS.items():
            cell, value = (published("erdil2025")[table, row, column], float(at[field]))
            if field == "usd_per_million" and dollars:
                value *= dollars / H100.price
            exact += grade_of(cell.text, cell.resolution, value)[1] == "exact"
            rows += 1
    return exact, rows


@cache
def numbers():
    """Name in ``errata.toml`` to text."""
    return _captions() | _generations() | _drafting() | _parallel() | _context() | _records() | _arithmetic()


def _captions():
    found = {}
    for table, short in (("Table 3", "t3"), ("Table 6", "t6")):
        for alpha in (3, 4):
            exact, rows = cells_as_printed(table, alpha)
            found |= {f"{short}_alpha_{alpha}": f"{exact}", f"{short}_cells": f"{rows}"}
    newer = economics.preferred(economics.curve("Llama 3 70B"))
    older = economics.preferred(economics.curve("Llama 3 70B", assumptions=TABLE_5))
    for name, at in (("newer", newer), ("older", older)):
        found[name] = (
            f"{at.tokens_per_second:.0f} tokens/s, {at.usd_per_million:.2f} dollars, {at.n_gpu:.0f} GPUs and "
            f"{at.batch:.0f} sequences"
        )
    rent = 2.0
    exact, rows = 0, 0
    for table in ("Table 3", "Table 5", "Table 6"):
        at_two, count = cells_as_printed(table, 3, dollars=rent)
        at_ours, _ = cells_as_printed(table, 3)
        exact, rows = exact + at_ours - at_two, rows + count // len(COLUMNS)
    batches = text_parallel.table_2_batches()
    return found | {
        "costs_lost": f"{exact}",
        "costs": f"{rows}",
        "rent": f"{H100.price:.2f}",
        "rent_a100": f"{chips['A100'].price:.4f}",
        "batches": ", ".join(f"{batch:.2f}" for batch in batches.values()),
        "threshold_mixtral": f"{_threshold('Mixtral 8x22B'):.0f}",
        "threshold_gpt": f"{_threshold('GPT-4'):.0f}",
    }


def _threshold(name):
    """Sequences of a micro-batch from which on the notebook spreads a model's experts."""
    return DEFAULT.expert_threshold * m.sparsity(models[name].shape, DEFAULT)


def _generations():
    found = text_economics.generation_gains()
    tops = {chip: economics.fastest(economics.curve(SEVENTY, chip)) for chip in economics.GENERATIONS}
    points, _ = text_economics.halvings()
    literal, coded = literal_and_coded()
    printed = economics.table(4, PRINTED_EQUATIONS)
    shrinks = [ratio for *_, ratio in found.values()]
    v100 = chips["V100"].replace(peaks={"bf16": 125e12, "fp8": 125e12}, flops=125e12)
    n_gpu = np.geomspace(8, 512, 400)
    cheap = [token_latency(models[SEVENTY], chip, 16, 2048, pipeline=False) for chip in (chips["V100"], v100)]
    fast = [token_latency(models[SEVENTY], chip, n_gpu, 1).min() for chip in (chips["V100"], v100)]
    return {
        "shrink_a100": f"{shrinks[0]:.1f}",
        "shrink_h100": f"{shrinks[1]:.1f}",
        "sizes": ", ".join(f"{at.n_gpu:.0f}" for at in tops.values()),
        "halvings": " and ".join(f"{gain:+.0%}" for gain in points),
        "literal": ", ".join(f"{speed:.0f}" for speed in printed.tokens_per_second),
        "literal_gpus": ", ".join(f"{n:.0f}" for n in printed.n_gpu),
        "literal_h100": f"{literal:.0f}",
        "coded_2d": f"{coded:.0f}",
        "v100_cheap": f"{cheap[0] / cheap[1] - 1:.0%}",
        "v100_fast": f"{fast[0] / fast[1] - 1:.1%}",
    }


def _drafting():
    found = {}
    for name, short in (("Llama 3 70B", "70b"), ("Llama 3.1 405B", "405b")):
        same, points = text_economics.gain_at_table_5(name)
        found |= {f"drafts_{short}": f"{same:.0%}", f"drafts_points_{short}": f"{points:.0%}"}
    top, most, _ = text_economics.drafting_gains()
    draft, more = models[economics.DRAFT], {}
    for name in ("Llama 3.1 405B 8-bit", "GPT-4"):
        at = economics.fastest(economics.curve(name, draft=economics.DRAFT))
        five, six = (
            speculative_latency(
                models[name],
                draft,
                H100,
                at.n_gpu,
                at.batch,
                acceptance=economics.ACCEPTANCE,
                gamma_max=most_drafts,
            )
            for most_drafts in (5, 6)
        )
        more[name] = five / six - 1
    at = economics.fastest(economics.curve(SEVENTY, draft=economics.DRAFT))
    printed, free = (
        speculative_latency(
            models[SEVENTY], draft, H100, at.n_gpu, at.batch, acceptance=economics.ACCEPTANCE, assumptions=a
        )
        for a in (DEFAULT, DEFAULT.replace(free_token=True))
    )
    return found | {
        "halved_top": f"{1 + top:.2f}",
        "halved_most": f"{1 + most:.2f}",
        "six_405b": f"{more['Llama 3.1 405B 8-bit']:.1%}",
        "six_gpt": f"{more['GPT-4']:.1%}",
        "free_token": f"{printed / free - 1:.0%}",
    }


def _parallel():
    gains = text_parallel.pipeline_gains()
    without = {name: text_parallel.without_pipeline(name) for name in text_parallel.PIPED}
    piped = {name: economics.curve(name, draft=economics.DRAFT) for name in text_parallel.PIPED}
    equal, critical = equal_batch()
    shape, names = models[SEVENTY].shape, ("Table 3", SEVENTY)
    setting, point = economics.settings()[names]
    at = point(economics.curve(**setting))
    honest = {**setting, "assumptions": DEFAULT.replace(hop_halved=False)}
    slower = economics.seconds_at(honest, at) * at.tokens_per_second - 1
    weights, both = shape.replace(weight_bytes=1.0), shape
    bytes_of = [feed_forward(s, 8, 1, "1D")[0].per_token[0] for s in (both, weights)]
    mixtral = [economics.preferred(c["Mixtral 8x22B"]).tokens_per_second for c in (without, piped)]
    return {
        "pp_gpt_without": f"{without['GPT-4'].tokens_per_second.max():.0f}",
        "pp_gpt": f"{piped['GPT-4'].tokens_per_second.max():.0f}",
        "pp_mixtral_without": f"{mixtral[0]:.0f}",
        "pp_mixtral": f"{mixtral[1]:.0f}",
        "pp_llama": f"{gains[SEVENTY][1]:.1%}",
        "equal_batch": f"{equal:.0f}",
        "critical_batch": f"{critical:.0f}",
        "hop_slower": f"{slower:.1%}",
        "hop_stages": f"{at.stages:.2f}",
        "traffic_kept": f"{bytes_of[1] / bytes_of[0]:.0%}",
    }


def _context():
    found = {}
    for name, short in (("Mistral Large 2", "mistral"), ("DeepSeek-V3", "deepseek")):
        at = economics.curve(name, context=LONG).iloc[-1]
        found |= {
            f"{short}_printed": f"{at.usd_per_million:.2f}",
            f"{short}_sound": f"{economics.curve(name, context=LONG, assumptions=SOUND).usd_per_million.min():.2f}",
            f"{short}_cache": f"{models[name].cache_bytes * LONG * at.batch / 1e12:.0f}",
            f"{short}_memory": f"{at.n_gpu * H100.memory_capacity / 1e12:.1f}",
        }
    at = economics.preferred(economics.curve("Llama 3 70B"))
    needs, eight = bytes_and_flop_of_latents()
    return found | {
        "full_cost": f"{text_context.full_cost(price=2.0):.3f}",
        "full_cost_capped": f"{text_context.full_cost(H100.flops_fraction, 2.0):.2f}",
        "mfu": f"{at.mfu:.1%}",
        "mfu_capped": f"{at.mfu / H100.flops_fraction:.1%}",
        "cheaper": f"{0.5 / at.mfu:.1f}",
        "doubled_complete": f"{max(text_takeaways.doubled_bandwidth().values()):.1%}",
        "group_h100": f"{text_takeaways.needed_group(H100):.0f}",
        "latent_needs": f"{needs:.0f}",
        "latent_has": f"{eight:.0f}",
        "latent_has_16": f"{bytes_and_flop_of_latents('bf16')[1]:.0f}",
        "latent_four": f"{text_takeaways.arithmetic_bound_from(4):,.0f}",
        "latent_four_16": f"{text_takeaways.arithmetic_bound_from(4, 'bf16'):,.0f}",
    }


def _records():
    from inferlib import load_model

    ours, theirs = (models["Llama 3.1 405B"], as_model(load_model("Llama 3.1 405B")))
    active = sum(m.flop_per_token(DEEPSEEK, 0, DEFAULT)) / DEEPSEEK.flop_per_weight
    return {
        "kv_heads": f"{ours.shape.n_heads / ours.shape.group_size:.0f}",
        "kv_heads_meta": f"{theirs.shape.n_heads / theirs.shape.group_size:.0f}",
        "cache_times": f"{ours.cache_bytes / theirs.cache_bytes:.0f}",
        "deepseek_total": f"{models['DeepSeek-V3'].n_params / 1e9:.1f}",
        "deepseek_active": f"{active / 1e9:.1f}",
        "deepseek_s": f"{m.sparsity(DEEPSEEK, DEFAULT):.0f}",
        "deepseek_exact_s": f"{DEEPSEEK.n_experts / DEEPSEEK.n_active:.1f}",
    }


def _arithmetic():
    """Llama 3 70B with 8-bit weights where 16-bit activations are multiplied at the 16-bit rate."""
    slow = H100.replace(peaks=H100.peaks | {"fp8": H100.peaks["bf16"]})
    at, before = (
        economics.preferred(curve) for curve in (frontier(models[SEVENTY], slow), economics.curve(SEVENTY))
    )
    cheap = (
        frontier(models[SEVENTY], slow).usd_per_million.min() / economics.curve(SEVENTY).usd_per_million.min()
    )
    return {
        "wide_speed": f"{at.tokens_per_second:.0f}",
        "wide_cost": f"{at.usd_per_million:.2f}",
        "wide_before": f"{before.usd_per_million:.2f}",
        "wide_speed_before": f"{before.tokens_per_second:.0f}",
        "wide_cheap": f"{cheap:.1f}",
    }
