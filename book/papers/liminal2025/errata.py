"""LIMINAL 2025: the numbers in ``errata.toml``, which are names in braces there."""

from book.audit.grading import Reader
from book.papers.liminal2025 import ablation, cells, efficiency, speeds, travels
from book.papers.liminal2025.cells import MANY
from book.papers.liminal2025.speeds import LARGE, LONG, SHORT, K, gain, speed, written
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import IDEAL, PRINTED, Assumptions, load_model

READ_SHARED, LOCAL = {"shared_unread": False}, {"whole_contexts": False}
LOW_RANK = {"multiplied_out": False}


def _under(name, n, context, **changes):
    """UTPS on HBM3 at batch 1 under other assumptions, as the paper writes it."""
    return written(cells.Reading.changed(**changes).speed(name, "HBM3", 1, context, n))


def _lost(**changes):
    """Return how many of the cells that come out as printed do not under other assumptions."""
    return ablation.survivors() - ablation.survivors(**changes)


def _gains(form, context, **rule):
    """The gains at the markers of the three models that section 4.6 names."""
    markers = (efficiency.marker(name, "3D-DRAM", context, **rule) for name in efficiency.quoted())
    return ", ".join(f"{gained:{form}}" for _, gained in markers)


def of_models():
    """Numbers about models: weights, bytes and arithmetic."""

    def counted(name, assumed):
        one = load_model(name, assumed)
        routed = one.expert * one.n_experts * one.routed_share
        return model.stored_weights(one) / 1e9, (one.used + routed) / 1e9

    # without routers, as the printed cells
    released = PRINTED.replace(**LOW_RANK)
    total, active = counted("DeepSeekV3", released)
    shared = PRINTED.replace(**READ_SHARED)
    scout = [model.bytes_loaded(load_model("Llama4-Scout", a), 1, SHORT, a) / 1e9 for a in (PRINTED, shared)]
    pairs = [load_model("DeepSeekV3", a).pair_flops for a in (PRINTED, Assumptions.corrected())]
    qwen = load_model("Qwen3-30B")
    of_one_token = model.expert_evaluations(qwen, 32) - model.active_experts(qwen, 32)
    literal = model.tensor_work(qwen, 32, SHORT) - PRINTED.flop_per_weight * qwen.expert * of_one_token
    return {
        "scout_read": f"{scout[0]:.1f}",
        "scout_all": f"{scout[1]:.1f}",
        "shared_lost": _lost(**READ_SHARED),
        "low_total": f"{total:.0f}",
        "low_active": f"{active:.1f}",
        "kimi_low_active": f"{counted('Kimi-K2', released)[1]:.1f}",
        "wide": f"{pairs[0] / pairs[1] - 1:.1%}",
        "narrow_lost": _lost(values_over_keys=False),
        "local_lost": _lost(**LOCAL),
        "head_cells": ablation.survivors(**ablation.counted("head", "embedding")),
        "literal": f"{literal / model.bytes_loaded(qwen, 32, SHORT):.1f}",
    }


def of_speeds():
    """Numbers about speeds, in the paper's writing."""
    return {
        "slow": _under("Llama3-405B", MANY, SHORT, pflops=1e12),
        "maverick_all": _under("Llama4-Maverick", 8, SHORT, **READ_SHARED),
        "deepseek_all": _under("DeepSeekV3", 8, SHORT, **READ_SHARED),
        "deepseek_low": _under("DeepSeekV3", 8, SHORT, **LOW_RANK),
        "deepseek_low_shared": _under("DeepSeekV3", 8, SHORT, **LOW_RANK, **READ_SHARED),
        "oss_head": _under("GPT-OSS-120B", 8, SHORT, **ablation.counted("head")),
        "hbm4_eight": written(speed("GPT-OSS-120B", "HBM4", n=8)),
        "ceiling": written(max(speeds.ceiling(name, MANY) for name in LARGE)),
        "ceiling_eight": written(max(speeds.ceiling(name, 8) for name in LARGE)),
        "oss_local": _under("GPT-OSS-120B", 8, LONG, **LOCAL),
        "maverick_local": _under("Llama4-Maverick", 8, LONG, **LOCAL),
    }


def of_bandwidth():
    """Numbers about bandwidth, latency and arithmetic."""
    short, long = ({name: gain(name, context) for name in LARGE} for context in (SHORT, LONG))
    grown = [
        efficiency.break_even_power(name, "3D-DRAM", "HBM3")
        for name in LARGE
        if not load_model(name).latent_layers
    ]
    uses = [speeds.use_of_arithmetic(name, m, SHORT) for name in LARGE for m in model.chips()]

    def fast(batch, context):
        return sum(speed(name, "3D-DRAM", batch, context, t_tp=IDEAL) >= 1e4 for name in LARGE)

    return {
        "below_two": sum(g < 2 for g in short.values()),
        "reach_two": ", ".join(name for name, g in long.items() if g >= 2),
        "system_gain": f"{min(grown):.1f} to {max(grown):.1f}",
        "long_ten": fast(1, LONG),
        "batched": fast(32, SHORT),
        "batched_long": fast(32, LONG),
        "more_collectives": sum(
            model.collectives(load_model(n), MANY) > model.collectives(load_model(n), 8) for n in LARGE
        ),
        "hop_lost": _lost(free_stages=0.0),
        "hops": f"{1e6 * model.exposed_time(load_model('Llama3-70B'), MANY, 80, 0):.1f}",
        "microsecond": f"{1e9 * cells.latencies()['1.0us']:.2f}",
        "sram_bound": ", ".join(speeds.arithmetic_binds()),
        "sram_extra": f"{max(map(speeds.arithmetic_extra, LARGE)):.0%}",
        "sram_slower": sum(not speeds.sram_wins(name) for name in LARGE),
        "sram_unhopped": sum(speeds.without_hops(n) > speed(n, "3D-DRAM", 1, LONG) for n in LARGE),
        "short_use": f"{max(uses):.1%}",
        "wafer": f"{1e9 * model.collective_latency(25):.0f}",
    }


def of_power():
    """Numbers about efficiency, and about real servers."""
    quoted = Reader("liminal2025", "Text 4.6")
    travelled = travels.errors(travels.answers())
    return {
        "loss": f"{quoted('loss of tokens per second at the marker'):.0%}",
        "gains": _gains(".1f", LONG),
        "gains_beyond": _gains(".1f", LONG, beyond=True),
        "gains_32": _gains(".2f", 32 * K),
        "decimal_cells": ablation.kept_by(ablation.readings()["units", "everything decimal"]),
        "more": f"{cells.AS_PRINTED.tb_per_s / 1e12 - 1:.0%}",
        "eq8_rows": f"{travelled.rows['all']}",
        "eq8_all": f"{travelled['eq. 8']['all']:.1f}%",
        "eq8_one": f"{travelled['eq. 8']['1']:.1f}%",
        "limit_all": f"{travelled.limit['all']:.1f}%",
    }
