"""Mazurek & Schreiber 2025: the numbers in ``errata.toml``."""

from book.audit.ledger import errata_numbers
from book.papers.mazurek2025 import repair, simulation, systems
from book.papers.mazurek2025.counts import GB, MB, parameters
from book.papers.mazurek2025.systems import CONTEXT, MODEL, TRUE
from inferlib.catalog import load_model
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, model_of, setup, stated
from inferlib.units import factor, parse


@errata_numbers("mazurek2025")
def _arithmetic():
    """Equations 16 to 36, and what they leave out."""
    right = Assumptions.corrected()
    ours, changed = (eq.decode_attention_flops(MODEL, 1, 1, a) for a in (DEFAULT, right))
    absorbed = [
        eq.absorbed_decode_flops(MODEL, 1, 1, a) - eq.absorbed_decode_flops(MODEL, 1, 0, a)
        for a in (DEFAULT, right)
    ]
    head, counted = eq.dense_flops(MODEL, 1), eq.moe_flops(MODEL, 1) * MODEL.n_expert_layers
    return {
        "value_17": f"{ours / changed - 1:.0%}",
        "value_36": f"{absorbed[0] / absorbed[1] - 1:.1%}",
        "value_decode": f"{systems.value_flop_effect():.1%}",
        "more_flops": f"{head / counted:.0%}",
        "section_3": f"{systems.section_3_ratio():.2f}",
        "head_batch": f"{systems.head_batch():.0f}",
    }


@errata_numbers("mazurek2025")
def _experts():
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
        "literal_loss": f"{1 - systems.choices().loc['section 3.1.2 read literally', 'least']:.0%}",
        "capped_14": f"{capped['14 rows']:.1%}",
        "literal_14": f"{literal['14 rows']:.1%}",
        "literal_b200": f"{literal[f'12x4 B200 at {TRUE}']:.1%}",
        "rms_short": f"{capped[f'seven at {TRUE}']:.0%}",
        "rms_long": f"{capped[f'seven at {CONTEXT}']:.1%}",
        "terms": f"{MODEL.n_active + 1:.0f}",
        "messages": f"{eq.messages(MODEL):.0f}",
        "everyone": f"{MODEL.n_shared + MODEL.n_routed:.0f}",
    }


@errata_numbers("mazurek2025")
def _sizes():
    """Bytes and parameters."""
    parts, kb, n = parameters(), factor("KB"), 16
    qwen, other = load_model("Qwen3 32B"), load_model("Qwen2.5 72B")
    return {
        "load_printed": f"{eq.shared_expert_load(MODEL, n):.2f}",
        "load_mean": f"{eq.shared_expert_load_corrected(MODEL, n):.2f}",
        "load_others": f"{1 + n / MODEL.n_active:.1f}",
        "layer_mb": f"{eq.layer_attention_weights(MODEL) / MB:.1f}",
        "activations_mb": f"{eq.all_expert_activations(MODEL, 1) / MB:.2f}",
        "expert_mb": f"{eq.expert_weights(MODEL) / MB:.1f}",
        "attention_gb": f"{parts['attention'] / GB:.2f}",
        "experts_b": f"{parts['experts'] / 1e9:.1f}",
        "experts_share": f"{parts['experts'] / parts['all']:.1%}",
        "mlp_share": f"{(parts['experts'] + parts['dense']) / parts['all']:.1%}",
        "qwen_kb": f"{qwen.cache_bytes() / kb:.0f}",
        "qwen_40": f"{qwen.cache_bytes() / qwen.n_layers * 40 / kb:.0f}",
        "qwen_72": f"{other.cache_bytes() / kb:.2f}",
        "tables_gb": f"{2 * parts['embeddings'] / GB:.1f}",
        "left": f"{systems.free_memory() / GB:.0f}",
    }


@errata_numbers("mazurek2025")
def _speeds():
    """What a choice is worth in time."""
    nine, kimi = setup("9x8 H100"), model_of("Kimi K2")
    printed, right = systems.corrected_ceiling(nine.name)
    seen = parse(stated()["attention_bandwidth"], "B/s")
    eight = systems.choices().loc["cache in FP8"] - 1
    return {
        "network_gain": f"{right / printed - 1:.0%}",
        "layers_gain": f"{MODEL.n_layers / MODEL.n_expert_layers - 1:.1%}",
        "kimi_heads": f"{kimi.n_heads:.0f}",
        "kimi_dense": f"{kimi.n_dense_layers:.0f}",
        "table_gain": f"{systems.best_overlap_gain()[0]:.2f}",
        "measured_gain": f"{repair.overlap_gain().measured.max():.2f}",
        "cache_fp8": f"{eight.most:.0%}",
        "memory_seen": f"{nine.gpu.memory_bandwidth / seen:.2f}",
    }
