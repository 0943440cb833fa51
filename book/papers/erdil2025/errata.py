"""Erdil 2025: the numbers that ``errata.toml`` names in braces."""

import numpy as np

from book.audit.grading import Reader, published
from book.papers.erdil2025 import economics, frontiers, program
from book.papers.erdil2025.claims import (
    context,
    long_contexts,
    model as section_3,
    parallel,
    speculation,
    takeaways,
)
from book.papers.erdil2025.claims.context import LONG
from book.papers.erdil2025.claims.economics import SEVENTY, cells_as_printed
from book.papers.erdil2025.claims.model import DEEPSEEK, H100, PRINTED
from book.papers.erdil2025.claims.toy import beyond_critical, palm_power
from book.papers.erdil2025.economics import DRAFT, SOUND
from book.papers.erdil2025.readings import FIGURE_1, PRINTED_EQUATIONS, TABLE_5
from inferlib import catalog
from inferlib.papers.erdil2025 import records
from inferlib.papers.erdil2025.equations import model as m, printed
from inferlib.papers.erdil2025.records import ToyAssumptions, load_chip, load_model
from inferlib.units import factor


def of_section_2():
    small, read = load_model("Llama 3 8B"), Reader("erdil2025", "Text 2.2.3")
    curves = (frontiers.toy_frontier(small, H100, assumptions=a) for a in (ToyAssumptions(), FIGURE_1))
    without, based = (curve.tokens_per_second.max() for curve in curves)
    served = Reader("erdil2025", "Text 2.2.2")("Llama 3 8B at Fireworks", "tokens per second")
    latency, cost = beyond_critical(load_model("Llama 3 70B"), 16)
    rows = published("pope2022")  # its fastest decodes: 64 tokens of PaLM 62B, and one of PaLM 540B
    pope = [
        rows["Table 3", "low-latency decode", "latency"].value / 64,
        rows["Text 4.4", "int8, batch 64", ""].value,
    ]
    return {
        "fastest_with_base": f"{based:.0f}",
        "served_without_base": f"{without / served:.1f}",
        "base_us": f"{FIGURE_1.t_base / factor('us'):.0f}",
        "cost_saved": f"{1 - cost[2] / cost[1]:.0%}",
        "latency_paid": f"{latency[2] / latency[1] - 1:.0%}",
        "palm_power": f"{palm_power(read):.2f}",
        "pope_62b": f"{pope[0] / factor('ms'):.1f}",
        "pope_540b": f"{pope[1] / factor('ms'):.1f}",
        "pope_power": f"{np.log(pope[1] / pope[0]) / np.log(540 / 62):.2f}",
    }


def of_captions():
    found = {}
    for table, short in (("Table 3", "t3"), ("Table 6", "t6")):
        for alpha in (3, 4):
            exact, rows = cells_as_printed(table, alpha)
            found |= {f"{short}_alpha_{alpha}": f"{exact}", f"{short}_cells": f"{rows}"}
    for name, assumed in (("newer", PRINTED), ("older", TABLE_5)):
        at = economics.preferred(economics.curve("Llama 3 70B", assumptions=assumed))
        found[name] = (
            f"{at.tokens_per_second:.0f} tokens/s, {at.usd_per_million:.2f} dollars, {at.n_gpu:.0f} GPUs and "
            f"{at.batch:.0f} sequences"
        )
    batches = parallel.table_2_batches()
    speed, price = "tokens per second", "price of a million tokens"
    worth = [
        printed.value(_printed(table, row, speed), _printed(table, row, price), 3)
        for table, row in (("Table 6", "16-bit weights"), ("Table 5", "Llama 3 70B"))
    ]
    return found | {
        "worth": f"{worth[0] / worth[1] - 1:.0%}",
        "rent": f"{H100.price:.2f}",
        "rent_a100": f"{load_chip('A100').price:.4f}",
        "batches": ", ".join(f"{batch:.2f}" for batch in batches.values()),
    }


def of_printed_equations():
    literal, coded = section_3.literal_and_coded()
    printed = economics.table(4, PRINTED_EQUATIONS)
    return {
        "literal": ", ".join(f"{speed:.0f}" for speed in printed.tokens_per_second),
        "literal_gpus": ", ".join(f"{n:.0f}" for n in printed.n_gpu),
        "literal_h100": f"{literal:.0f}",
        "coded_2d": f"{coded:.0f}",
    }


def of_pipelines():
    plain = parallel.pipeline_gains(False)
    fast, cheap, saves = ({name: of[i] for name, of in plain.items()} for i in range(3))
    mixtral, gpt = map(parallel.without_pipeline, ("Mixtral 8x22B", "GPT-4"))
    return {
        "pp_gpt_without": f"{gpt.tokens_per_second.max():.0f}",
        "pp_mixtral_without": f"{economics.preferred(mixtral).tokens_per_second:.0f}",
        "pp_bound": f"{parallel.MEMORY_READS:.0f}",
        "pp_most": f"{max(gain for n, gain in fast.items() if n != 'DeepSeek-V3'):.1%}",
        "pp_deepseek": f"{fast['DeepSeek-V3']:.0%}",
        "pp_saved": ", ".join(f"{saves[n]:.0%} ({n})" for n in plain if "8-bit" not in n),
        "pp_cheap_70b": f"{cheap['Llama 3 70B']:.0%}",
        "pp_cheap_405b": f"{1 + cheap['Llama 3.1 405B']:.1f}",
        "traffic_kept": f"{section_3.traffic_kept():.0%}",
    }


def of_first_program():
    """Section 4.1 by the author's first public program and by Table 5's."""
    found, speeds = {}, []
    for short, name in (("70b", "Llama 3 70B"), ("405b", "Llama 3.1 405B")):
        factor_of = "{:+.1%}".format if short == "70b" else lambda gain: f"{1 + gain:.2f} times"
        for at, suffix in (("alpha 3", ""), ("alpha 4", "_at_4")):
            slow, quick = speculation.gain_of_program(program.FIRST, name, at)
            found[f"first_{short}{suffix}"] = factor_of(quick / slow - 1)
            speeds += [f"{slow:.2f} and {quick:.2f}"] if not suffix else []
        same, points = speculation.gain_at_table_5(name)
        found |= {f"gain_{short}": factor_of(same), f"table_5_{short}": factor_of(points)}
        plain, drafted = (
            program.point(program.FIRST, name, draft).usd_per_million for draft in (False, True)
        )
        found["first_costs" + "_405b" * (short == "405b")] = f"{1 - drafted / plain:.0%}"
    slow, quick = speculation.gain_of_program(program.FIXED, "Llama 3 70B")
    found["fixed_70b"] = f"{quick / slow - 1:+.0%}"
    exact = (program.layers().loc["Table 5"].drop("alpha", level="row") == "exact").sum()
    last, may = exact.pop(program.LAST), exact.pop(program.MAY)
    return found | {
        "first_speeds": ", ".join(speeds),
        "t5_may": f"{may}",
        "t5_last": f"{last}",
        "t5_inferred": f"{exact.pop(program.NOT_PUBLIC)}",
        "t5_others": f"{exact.max()}",
    }


def of_spread_experts():
    """Table 2's sparse points with experts always spread."""
    always, found = PRINTED.replace(expert_threshold=0), {}
    for short, name in (("mixtral", "Mixtral 8x22B"), ("gpt", "GPT-4"), ("deepseek", "DeepSeek-V3")):
        curve = economics.curve(name, draft=DRAFT, assumptions=always)
        found[f"spread_{short}"] = f"{curve.tokens_per_second.max():.0f}"
    return found


def _printed(artefact, row, column=""):
    return published("erdil2025")[artefact, row, column].value


def of_long_contexts():
    found = {}
    for name, short in (("Mistral Large 2", "mistral"), ("DeepSeek-V3", "deepseek")):
        at = economics.curve(name, context=LONG).iloc[-1]
        found |= {
            f"{short}_printed": f"{at.usd_per_million:.2f}",
            f"{short}_sound": f"{economics.curve(name, context=LONG, assumptions=SOUND).usd_per_million.min():.2f}",
            f"{short}_cache": f"{load_model(name).cache_bytes * LONG * at.batch / 1e12:.0f}",
            f"{short}_memory": f"{at.n_gpu * H100.memory_capacity / 1e12:.1f}",
        }
    half, shares = _printed("Text 4.3", "prefill", "utilisation"), takeaways.decoding_shares().values()
    return found | {
        "deepseek_kb": f"{context.released_cache() / 1e3:.1f}",
        "deepseek_cheaper": f"{context.cheaper_with_released_cache():.1f}",
        "prefill_low": f"{half / max(shares):.1f}",
        "prefill_high": f"{half / min(shares):.1f}",
        "prefill_needed": f"{3 * max(shares):.0%}",
        "full_cost": f"{context.full_cost(2.0):.3f}",
        "mfu": f"{context.mfu()[1]:.1%}",
        "at_peaks": f"{long_contexts.fastest_at_peaks():.0f}",
    }


def of_records():
    ours, theirs = load_model("Llama 3.1 405B"), records.load_model(catalog.load_model("Llama 3.1 405B"))
    active = sum(m.flop_per_token(DEEPSEEK, 0, PRINTED)) / DEEPSEEK.flop_per_weight
    looked_up = PRINTED.replace(embedding_multiplied=False)
    setting, point = economics.settings()["Table 3", "Mixtral 8x22B"]
    mixtral = point(economics.curve(**setting | {"assumptions": looked_up}))
    return {
        "embedding_after": f"{mixtral.tokens_per_second:.0f}",
        "group_405b": f"{theirs.shape.group_size:.0f}",
        "kv_heads": f"{ours.shape.n_heads / ours.shape.group_size:.0f}",
        "kv_heads_meta": f"{theirs.shape.n_heads / theirs.shape.group_size:.0f}",
        "cache_times": f"{ours.cache_bytes / theirs.cache_bytes:.0f}",
        "deepseek_total": f"{load_model('DeepSeek-V3').n_params / 1e9:.1f}",
        "deepseek_active": f"{active / 1e9:.1f}",
        "deepseek_s": f"{m.sparsity(DEEPSEEK, PRINTED):.0f}",
        "deepseek_exact_s": f"{DEEPSEEK.n_experts / DEEPSEEK.n_active:.1f}",
    }


def of_narrow_weights():
    """Llama 3 70B with 8-bit weights where 16-bit activations are multiplied at the 16-bit rate."""
    slow = H100.replace(peaks=H100.peaks | {"fp8": H100.peaks["bf16"]})
    curve = economics.frontier(load_model(SEVENTY), slow)
    cheap = curve.usd_per_million.min() / economics.curve(SEVENTY).usd_per_million.min()
    return {
        "wide_speed": f"{economics.preferred(curve).tokens_per_second:.0f}",
        "wide_cheap": f"{cheap:.1f}",
    }
