"""Mazurek & Schreiber 2025: the numbers in ``errata.toml``."""

import numpy as np

from book.papers.mazurek2025 import repair, simulation, systems
from book.papers.mazurek2025.counts import GB, parameters
from book.papers.mazurek2025.systems import CONTEXT, MODEL, TRUE
from inferlib.catalog import load_model
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED, STATED, Assumptions, setup
from inferlib.units import factor, parse

LONGEST = 32_768  # tokens: the longest context of the source, in section 4


def arithmetic():
    """Equations 16 to 36, and what they leave out."""
    right = Assumptions.corrected()
    ours, changed = (eq.decode_attention_flops(MODEL, 1, 1, a) for a in (PRINTED, right))
    absorbed = [
        eq.absorbed_decode_flops(MODEL, 1, 1, a) - eq.absorbed_decode_flops(MODEL, 1, 0, a)
        for a in (PRINTED, right)
    ]
    head, counted = eq.dense_flops(MODEL, 1), eq.moe_flops(MODEL, 1) * MODEL.n_expert_layers
    return {
        "value_17": f"{ours / changed - 1:.0%}",
        "value_36": f"{absorbed[0] / absorbed[1] - 1:.1%}",
        "value_decode": f"{systems.largest_change(np.geomspace(100, LONGEST, 60), value_flop=2.0):.0%}",
        "value_long": f"{systems.largest_change(np.geomspace(3000, LONGEST, 20), value_flop=2.0):.1%}",
        "longest": f"{LONGEST:,}",
        "more_flops": f"{head / counted:.0%}",
        "section_3": f"{systems.section_3_ratio():.2f}",
        "head_batch": f"{systems.head_batch():.0f}",
    }


def experts():
    """Section 3.1.2, its two readings, and what the experts of a GPU are."""
    four, nine = (setup(name).deployment for name in ("4x8 H100", "9x8 H100"))
    full = [eq.fullest_gpu_experts(at, MODEL.n_routed) for at in (four, nine)]
    reached = simulation.fullest(16)
    found = repair.strongest()
    capped, literal = (found.loc[reading] for reading in systems.READINGS)
    return {
        "full_4x8": f"{full[0]:.1f}",
        "held_4x8": f"{MODEL.n_routed / four.n_gpus:.0f}",
        "full_9x8": f"{full[1]:.1f}",
        "held_9x8": f"{eq.held_experts(MODEL, nine) - 1:.0f}",
        "printed_16": f"{reached['printed']:.2f}",
        "simulated_16": f"{reached['simulated']:.2f}",
        "placed_16": f"{reached['without replacement']:.2f}",
        "capped_14": f"{capped['14 rows']:.1%}",
        "literal_14": f"{literal['14 rows']:.1%}",
        "literal_b200": f"{literal[f'12x4 B200 at {TRUE}']:.1%}",
        "rms_short": f"{capped[f'seven at {TRUE}']:.0%}",
        "rms_long": f"{capped[f'seven at {CONTEXT}']:.1%}",
        "messages": f"{eq.messages(MODEL):.0f}",
    }


def sizes():
    """Bytes and parameters."""
    parts, at = parameters(), setup("4x8 H100")
    left = at.gpu.memory_capacity - eq.weights_on_gpu(MODEL, eq.held_experts(MODEL, at.deployment))
    return {
        "experts_b": f"{parts['experts'] / 1e9:.1f}",
        "mlp_share": f"{(parts['experts'] + parts['dense']) / parts['all']:.1%}",
        "qwen_72": f"{load_model('Qwen2.5 72B').cache_bytes() / factor('KB'):.2f}",
        "tables_gb": f"{2 * parts['embeddings'] / GB:.1f}",
        "left": f"{left / GB:.0f}",
    }


def speeds():
    """Effects of the open choices on times."""
    nine = setup("9x8 H100")
    printed, right = systems.corrected_ceiling(nine.name)
    seen = parse(STATED["attention_bandwidth"], "B/s")
    return {
        "network_gain": f"{right / printed - 1:.0%}",
        "layers_gain": f"{MODEL.n_layers / MODEL.n_expert_layers - 1:.1%}",
        "measured_gain": f"{repair.overlap_gain().measured.max():.2f}",
        "cache_fp8": f"{systems.largest_change([systems.CONTEXT], cache_value_bytes=1.0):.0%}",
        "memory_seen": f"{nine.gpu.memory_bandwidth / seen:.2f}",
    }
