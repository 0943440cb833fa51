"""Erdil 2025: the numbers that ``errata.toml`` names in braces."""

import numpy as np

from book.audit.ledger import Reader, errata_numbers, grade_of, published
from book.erdil2025 import economics, tables
from book.erdil2025.claims import context, long_contexts, model as section_3, parallel, speculation, takeaways
from book.erdil2025.claims.context import LONG
from book.erdil2025.claims.economics import SEVENTY, drafting_gains, fastest, generation_gains
from book.erdil2025.claims.model import DEEPSEEK, DEFAULT, H100
from book.erdil2025.claims.toy import beyond_critical, palm_power, scaled_latency, speed_up
from book.erdil2025.economics import DRAFT
from inferlib import load_model
from inferlib.papers.erdil2025 import pareto, records, search
from inferlib.papers.erdil2025.equations import model as m, printed, toy
from inferlib.papers.erdil2025.records import FIGURE_1, TABLE_5, ToyAssumptions, chips, models
from inferlib.papers.erdil2025.search import speculative_latency, token_latency
from inferlib.units import factor

SOUND = DEFAULT.replace(cache_of_micro_batch=False)  # the cache of the whole batch has to fit
COLUMNS = {
    "tokens per second": "tokens_per_second",
    "price of a million tokens": "usd_per_million",
    "GPUs": "n_gpu",
    "batch": "batch",
}


@errata_numbers("erdil2025")
def _section_2():
    corrected, nominal = tables.table_1(ToyAssumptions.parallel()), tables.nominal_table_1()
    small, read = models["Llama 3 8B"], Reader("erdil2025", "Text 2.2.3")
    curves = (toy.toy_frontier(small, H100, assumptions=a) for a in (ToyAssumptions(), FIGURE_1))
    without, based = (curve.tokens_per_second.max() for curve in curves)
    served = Reader("erdil2025", "Text 2.2.2")("Llama 3 8B at Fireworks", "tokens per second")
    latency, cost = beyond_critical(models["Llama 3 70B"], 16)
    rows = published("pope2022")  # its fastest decodes: 64 tokens of PaLM 62B, and one of PaLM 540B
    pope = [
        rows["Table 3", "low-latency decode", "latency"].value / 64,
        rows["Text 4.4", "int8, batch 64", ""].value,
    ]
    palm, measured = scaled_latency(read, "PaLM 62B"), read("PaLM 62B", "latency")
    rent = Reader("erdil2025", "Text 2.2.2")("rent of one GPU") / factor("usd/h")
    return {
        "palm_speed": f"{corrected.tokens_per_second['PaLM-540B']:.0f}",
        "palm_gpus": f"{corrected.n_gpu['PaLM-540B']:.0f}",
        "fastest_without_base": f"{without:.0f}",
        "fastest_with_base": f"{based:.0f}",
        "served_without_base": f"{without / served:.1f}",
        "base_us": f"{FIGURE_1.t_base / factor('us'):.0f}",
        "price_up": f"{H100.price / rent - 1:.0%}",
        "count_8b": f"{small.n_params / 1e9:.2f}",
        "count_70b": f"{models['Llama 3 70B'].n_params / 1e9:.2f}",
        "cost_saved": f"{1 - cost[2] / cost[1]:.0%}",
        "latency_paid": f"{latency[2] / latency[1] - 1:.0%}",
        "palm_62b": f"{palm / factor('ms'):.1f}",
        "palm_62b_error": f"{palm / measured - 1:+.0%}",
        "palm_power": f"{palm_power(read):.2f}",
        "palm_power_two": f"{_power(measured, read('PaLM 540B', 'latency')):.2f}",
        "pope_62b": f"{pope[0] / factor('ms'):.1f}",
        "pope_540b": f"{pope[1] / factor('ms'):.1f}",
        "pope_power": f"{_power(*pope):.2f}",
        "nominal_8b": f"{nominal['Llama 3 8B'][0]:.0f}",
        "nominal_70b": f"{nominal['Llama 3 70B'][0]:.0f}",
        "nominal_palm_gpus": f"{nominal['PaLM-540B'][1]:.0f}",
        "fraction_cost": f"{_cheapest(FIGURE_1):.3f}",
        "whole_cost": f"{_cheapest(FIGURE_1.replace(least_gpus=1.0)):.3f}",
    }


def _power(small, large):
    """The power of the parameters with which latency grows from PaLM 62B to PaLM 540B."""
    return np.log(large / small) / np.log(540 / 62)


def _cheapest(assumptions):
    """Dollars for a million tokens at the cheap end of Llama 3 8B's frontier at the small demand."""
    demand = Reader("erdil2025", "Figure 1")("total demand", "small")
    curve = toy.toy_frontier(models["Llama 3 8B"], H100, demand=demand, assumptions=assumptions)
    return curve.usd_per_million.min()


@errata_numbers("erdil2025")
def _takeaways():
    """What section 5 says of short contexts: bandwidth, and chips with much of it."""
    doubled, doubled_70b = (1 - 1 / gain for gain in speed_up(2))
    read, seventy = Reader("erdil2025", "Text 5.1"), models["Llama 3 70B"]
    bandwidth, memory = (read("Groq LPU", column) for column in ("memory bandwidth", "memory"))
    groq, groq_70b = speed_up(bandwidth / read("H100 SXM", "memory bandwidth"))
    complete = takeaways.with_groq(bandwidth).values()
    lpu = H100.replace(memory_bandwidth=bandwidth)
    return {
        "doubled": f"{doubled:.1%}",
        "doubled_70b": f"{doubled_70b:.1%}",
        "doubled_based": f"{takeaways.doubled_with_base():.1%}",
        "doubled_complete": f"{max(takeaways.doubled_bandwidth().values()):.1%}",
        "groq": f"{groq:.1f}",
        "groq_70b": f"{groq_70b:.1f}",
        "groq_complete": f"{min(complete):.1f} to {max(complete):.1f}",
        "groq_gpus": f"{toy.optimal_n_gpu(seventy, lpu, ToyAssumptions().t_hop):.0f}",
        "groq_needed": f"{seventy.weight_bytes * seventy.n_params / memory:.0f}",
        "at_peaks": f"{long_contexts.fastest_at_peaks():.0f}",
        "at_attainable": f"{fastest(SEVENTY)[0]:.0f}",
    }


def cells_as_printed(table, alpha, dollars=None):
    """How many printed cells of a table come out with another alpha or rent, and how many there are."""
    exact = rows = 0
    for (name, row), (setting, _) in economics.settings().items():
        if name != table:
            continue
        at = economics.preferred(economics.curve(**setting), alpha)
        for column, field in COLUMNS.items():
            rent = dollars / H100.price if field == "usd_per_million" and dollars else 1
            exact += _exact(table, row, column, float(at[field]) * rent)
            rows += 1
    return exact, rows


def _exact(table, row, column, value):
    """Whether a printed cell comes out."""
    cell = published("erdil2025")[table, row, column]
    return grade_of(cell.text, cell.resolution, value)[1] == "exact"


def sampled_on_22_may(name, draft):
    """Table 5's point of a frontier read with the thresholds committed on 22 May 2025, in absolute seconds."""
    shape, gpu, assumptions = search.opened(models[name], H100, TABLE_5)
    grid = np.meshgrid(*pareto.grid(shape, gpu, assumptions), indexing="ij")
    n_gpu, batch = (axis.ravel() for axis in grid)
    if draft:
        latency = _drafted(name, n_gpu, batch, assumptions=assumptions)
    else:
        latency = token_latency(models[name], H100, n_gpu, batch, assumptions=assumptions)
    cost = n_gpu * latency / batch * (H100.price * factor("usd/h") * 1e6)
    reached = [limit for limit in 1e-3 * np.logspace(-1, 3, num=600) if limit >= latency.min()]
    points = np.array([np.where(latency <= limit, cost, np.inf).argmin() for limit in reached])
    best = points[np.argmax((1 / latency[points]) ** 3 / cost[points])]
    values = (1 / latency[best], cost[best], n_gpu[best], batch[best])
    return dict(zip(COLUMNS, map(float, values), strict=True))


def _drafted(name, n_gpu, batch, **options):
    """Seconds per token on H100s with the small model drafting."""
    options |= {"acceptance": economics.ACCEPTANCE}
    return speculative_latency(models[name], models[DRAFT], H100, n_gpu, batch, **options)


@errata_numbers("erdil2025")
def _captions():
    def threshold(name):
        """Sequences of a micro-batch from which on the notebook spreads a model's experts."""
        return DEFAULT.expert_threshold * m.sparsity(models[name].shape, DEFAULT)

    found = {}
    for table, short in (("Table 3", "t3"), ("Table 6", "t6")):
        for alpha in (3, 4):
            exact, rows = cells_as_printed(table, alpha)
            found |= {f"{short}_alpha_{alpha}": f"{exact}", f"{short}_cells": f"{rows}"}
    for name, assumed in (("newer", DEFAULT), ("older", TABLE_5)):
        at = economics.preferred(economics.curve("Llama 3 70B", assumptions=assumed))
        found[name] = (
            f"{at.tokens_per_second:.0f} tokens/s, {at.usd_per_million:.2f} dollars, {at.n_gpu:.0f} GPUs and "
            f"{at.batch:.0f} sequences"
        )
    exact, rows = 0, 0
    for table in ("Table 3", "Table 5", "Table 6"):
        at_two, count = cells_as_printed(table, 3, dollars=2.0)
        exact += cells_as_printed(table, 3)[0] - at_two
        rows += count // len(COLUMNS)
    # Table 5 with the model and the sampler of 22 May
    older = [
        _exact("Table 5", row, column, value)
        for name in economics.SPECULATED
        for draft, row in ((None, name), (DRAFT, f"{name} (S)"))
        for column, value in sampled_on_22_may(name, draft).items()
    ]
    batches = parallel.table_2_batches()
    speed, price = "tokens per second", "price of a million tokens"
    worth = [
        printed.value(_printed(table, row, speed), _printed(table, row, price), 3)
        for table, row in (("Table 6", "16-bit weights"), ("Table 5", "Llama 3 70B"))
    ]
    return found | {
        "worth": f"{worth[0] / worth[1] - 1:.0%}",
        "older_exact": f"{sum(older)}",
        "costs_lost": f"{exact}",
        "costs": f"{rows}",
        "rent": f"{H100.price:.2f}",
        "rent_a100": f"{chips['A100'].price:.4f}",
        "batches": ", ".join(f"{batch:.2f}" for batch in batches.values()),
        "threshold_mixtral": f"{threshold('Mixtral 8x22B'):.0f}",
        "threshold_gpt": f"{threshold('GPT-4'):.0f}",
    }


@errata_numbers("erdil2025")
def _generations():
    tops = [economics.fastest(economics.curve(SEVENTY, chip)) for chip in economics.GENERATIONS]
    literal, coded = section_3.literal_and_coded()
    printed = economics.table(4, records.PRINTED_EQUATIONS)
    shrinks = [ratio for *_, ratio in generation_gains().values()]
    v100 = chips["V100"].replace(peaks={"bf16": 125e12, "fp8": 125e12}, flops=125e12)
    n_gpu = np.geomspace(8, 512, 400)
    cheap = [token_latency(models[SEVENTY], chip, 16, 2048, pipeline=False) for chip in (chips["V100"], v100)]
    fast = [token_latency(models[SEVENTY], chip, n_gpu, 1).min() for chip in (chips["V100"], v100)]
    return {
        "shrink_a100": f"{shrinks[0]:.1f}",
        "shrink_h100": f"{shrinks[1]:.1f}",
        "shrink_mean": f"{np.prod(shrinks) ** 0.5:.2f}",
        "sizes": ", ".join(f"{at.n_gpu:.0f}" for at in tops),
        "literal": ", ".join(f"{speed:.0f}" for speed in printed.tokens_per_second),
        "literal_gpus": ", ".join(f"{n:.0f}" for n in printed.n_gpu),
        "literal_h100": f"{literal:.0f}",
        "coded_2d": f"{coded:.0f}",
        "v100_cheap": f"{cheap[0] / cheap[1] - 1:.0%}",
        "v100_fast": f"{fast[0] / fast[1] - 1:.1%}",
    }


@errata_numbers("erdil2025")
def _drafting():
    found = {}
    for name, short in (("Llama 3 70B", "70b"), ("Llama 3.1 405B", "405b")):
        same, points = speculation.gain_at_table_5(name)
        found |= {f"drafts_{short}": f"{same:.0%}", f"drafts_points_{short}": f"{points:.0%}"}
    most_70b, most_16 = (drafting_gains("Llama 3 70B", assumed)[1] for assumed in (TABLE_5, DEFAULT))
    top, most, _ = drafting_gains()
    more = {}
    for name in ("Llama 3.1 405B 8-bit", "GPT-4"):
        at = economics.fastest(economics.curve(name, draft=DRAFT))
        five, six = (_drafted(name, at.n_gpu, at.batch, gamma_max=drafts) for drafts in (5, 6))
        more[name] = five / six - 1
    at = economics.fastest(economics.curve(SEVENTY, draft=DRAFT))
    readings = DEFAULT, records.Assumptions.leviathan()
    printed, free = (_drafted(SEVENTY, at.n_gpu, at.batch, assumptions=assumed) for assumed in readings)
    return found | {
        "halved_top": f"{1 + top:.2f}",
        "halved_most": f"{1 + most:.2f}",
        "drafts_most_70b": f"{most_70b:.0%}",
        "drafts_16": f"{1 + most_16:.2f}",
        "six_405b": f"{more['Llama 3.1 405B 8-bit']:.1%}",
        "six_gpt": f"{more['GPT-4']:.1%}",
        "free_token": f"{printed / free - 1:.0%}",
    }


@errata_numbers("erdil2025")
def _parallel():
    plain = {name: most for name, (_, most, _) in parallel.pipeline_gains(False).items()}
    piped = {n: economics.curve(n, draft=DRAFT) for n in ("Mixtral 8x22B", "GPT-4")}
    without = {name: parallel.without_pipeline(name) for name in piped}
    one_way, both_ways, critical = section_3.equal_batch()
    setting, point = economics.settings()["Table 3", SEVENTY]
    at = point(economics.curve(**setting))
    honest = {**setting, "assumptions": DEFAULT.replace(hop_halved=False)}
    slower = economics.seconds_at(honest, at) * at.tokens_per_second - 1
    mixtral = [economics.preferred(c["Mixtral 8x22B"]).tokens_per_second for c in (without, piped)]
    return {
        "pp_gpt_without": f"{without['GPT-4'].tokens_per_second.max():.0f}",
        "pp_gpt": f"{piped['GPT-4'].tokens_per_second.max():.0f}",
        "pp_mixtral_without": f"{mixtral[0]:.0f}",
        "pp_mixtral": f"{mixtral[1]:.0f}",
        "pp_dense": f"{max(gain for n, gain in plain.items() if n not in ('GPT-4', 'DeepSeek-V3')):.1%}",
        "pp_gpt_plain": f"{plain['GPT-4']:.1%}",
        "pp_deepseek": f"{plain['DeepSeek-V3']:.0%}",
        "equal_batch": f"{one_way:.0f}",
        "equal_batch_2d": f"{both_ways:.0f}",
        "equal_batch_half": f"{both_ways / 2:.0f}",
        "critical_batch": f"{critical:.0f}",
        "hop_slower": f"{slower:.1%}",
        "hop_stages": f"{at.stages:.2f}",
        "traffic_kept": f"{section_3.traffic_kept():.0%}",
    }


@errata_numbers("erdil2025")
def _spread_experts():
    """Table 2's sparse points with experts always spread, and at a batch of one."""
    always, n_gpu = DEFAULT.replace(expert_threshold=0), np.geomspace(5, 1024, 400)
    names, found = {"mixtral": "Mixtral 8x22B", "gpt": "GPT-4", "deepseek": "DeepSeek-V3"}, {}
    for short, name in names.items():
        at = economics.fastest(economics.curve(name, draft=DRAFT, assumptions=always))
        seconds = _drafted(name, n_gpu, 1)
        found |= {
            f"spread_{short}": f"{at.tokens_per_second:.0f}",
            f"spread_{short}_gpus": f"{at.n_gpu:.0f}",
            f"alone_{short}": f"{1 / seconds.min():.0f}",
        }
    return found


def _printed(artefact, row, column=""):
    return published("erdil2025")[artefact, row, column].value


@errata_numbers("erdil2025")
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
    attainable, of_peak = context.mfu()
    needs, eight = section_3.bytes_and_flop_of_latents()
    half, shares = _printed("Text 4.3", "prefill", "utilisation"), takeaways.decoding_shares().values()
    full, sixteen = _printed("Text 4.3", "cost at full utilisation"), ("Table 6", "16-bit weights")
    groups = {n: long_contexts.needed_group(chips[n]) for n in economics.GENERATIONS}
    return found | {
        "deepseek_kb": f"{context.released_cache() / 1e3:.1f}",
        "deepseek_cheaper": f"{context.cheaper_with_released_cache():.1f}",
        "prefill_low": f"{half / max(shares):.1f}",
        "prefill_high": f"{half / min(shares):.1f}",
        "prefill_needed": f"{3 * max(shares):.0%}",
        "full_cost": f"{context.full_cost(price=2.0):.3f}",
        "full_cost_capped": f"{context.full_cost(H100.flops_fraction, 2.0):.2f}",
        "mfu": f"{of_peak:.1%}",
        "mfu_capped": f"{attainable:.1%}",
        "cheaper_capped": f"{0.5 / attainable:.2f}",
        "quotient": f"{full / _printed(*sixteen, 'price of a million tokens'):.1%}",
        **{f"group_{name.lower()}": f"{size:.0f}" for name, size in groups.items()},
        "latent_needs": f"{needs:.0f}",
        "latent_has": f"{eight:.0f}",
        "latent_has_16": f"{section_3.bytes_and_flop_of_latents('bf16')[1]:.0f}",
        "latent_until_16": f"{section_3.arithmetic_until():,.0f}",
        "latent_outweighs": f"{long_contexts.more_than_weights():,.0f}",
        "latent_four": f"{long_contexts.arithmetic_bound_from(4):,.0f}",
        "latent_four_16": f"{long_contexts.arithmetic_bound_from(4, 'bf16'):,.0f}",
    }


@errata_numbers("erdil2025")
def _records():
    ours, theirs = models["Llama 3.1 405B"], records.model_of(load_model("Llama 3.1 405B"))
    active = sum(m.flop_per_token(DEEPSEEK, 0, DEFAULT)) / DEEPSEEK.flop_per_weight
    looked_up = DEFAULT.replace(embedding_multiplied=False)
    setting, point = economics.settings()["Table 3", "Mixtral 8x22B"]
    curves = (economics.curve(**setting | {"assumptions": a}) for a in (DEFAULT, looked_up))
    mixtral = [point(curve).tokens_per_second for curve in curves]
    return {
        "embedding_before": f"{mixtral[0]:.0f}",
        "embedding_after": f"{mixtral[1]:.0f}",
        "group_405b": f"{theirs.shape.group_size:.0f}",
        "kv_heads": f"{ours.shape.n_heads / ours.shape.group_size:.0f}",
        "kv_heads_meta": f"{theirs.shape.n_heads / theirs.shape.group_size:.0f}",
        "cache_times": f"{ours.cache_bytes / theirs.cache_bytes:.0f}",
        "deepseek_total": f"{models['DeepSeek-V3'].n_params / 1e9:.1f}",
        "deepseek_active": f"{active / 1e9:.1f}",
        "deepseek_s": f"{m.sparsity(DEEPSEEK, DEFAULT):.0f}",
        "deepseek_exact_s": f"{DEEPSEEK.n_experts / DEEPSEEK.n_active:.1f}",
    }


@errata_numbers("erdil2025")
def _arithmetic():
    """Llama 3 70B with 8-bit weights where 16-bit activations are multiplied at the 16-bit rate."""
    slow = H100.replace(peaks=H100.peaks | {"fp8": H100.peaks["bf16"]})
    curve = economics.frontier(models[SEVENTY], slow)
    at = economics.preferred(curve)
    cheap = curve.usd_per_million.min() / economics.curve(SEVENTY).usd_per_million.min()
    return {
        "wide_speed": f"{at.tokens_per_second:.0f}",
        "wide_cost": f"{at.usd_per_million:.2f}",
        "wide_cheap": f"{cheap:.1f}",
    }
