"""Mazurek & Schreiber 2025: the numbers of its text and of Tables 1 and 2, recomputed."""

from functools import partial

from book.mazurek2025 import claims, validation
from inferlib import ledger
from inferlib.catalog import load_chip, load_model
from inferlib.ledger import Noted, Reader, reproduces
from inferlib.papers.mazurek2025.equations import experts, flops, memory, network, throughput
from inferlib.papers.mazurek2025.records import DEFAULT, Assumptions, Deployment, model_of, setup, stated
from inferlib.units import factor

reproduces = partial(reproduces, "mazurek2025")
MB, GB = factor("MB"), factor("GB")


def attention_matrices(model=None):
    """The eight matrices of attention.

    Returns
    -------
    pandas.DataFrame
        Indexed by matrix: ``MB`` of one layer and ``GB`` of all.
    """
    import pandas as pd

    model = model or model_of("DeepSeek V3")
    sizes = {name: matrix(model) for name, matrix in memory.ATTENTION.items()}
    sizes["all"] = memory.layer_attention_weights(model)
    frame = pd.DataFrame({"MB": {name: size / MB for name, size in sizes.items()}})
    return frame.assign(GB=frame.MB * MB * model.n_layers / GB)


def parameters(model=None):
    """Parameters by part as the source's formulas count them, one byte each.

    Returns
    -------
    dict
        ``attention``, ``experts`` (shared ones and routers included), ``dense``, ``embeddings`` and ``all``.
    """
    model = model or model_of("DeepSeek V3")
    parts = {
        "attention": memory.attention_weights(model),
        "experts": memory.experts_on_gpu(model, model.n_shared + model.n_routed),
        "dense": memory.dense_weights(model),
        "embeddings": memory.embedding_weights(model),
    }
    return parts | {"all": sum(parts.values())}


def active_parameters(model=None):
    """Parameters one token is multiplied with: the head, and not the embedding table."""
    model = model or model_of("DeepSeek V3")
    parts = parameters(model) | {"experts": memory.experts_on_gpu(model, model.used)}
    return parts["attention"] + parts["experts"] + parts["dense"] + parts["embeddings"] / 2


def outweighing(model=None, low=2, high=200):
    """The most GPUs for which the experts on one, dealt out evenly, still weigh as much as attention.

    Returns
    -------
    int
    """
    model = model or model_of("DeepSeek V3")
    attention = memory.attention_weights(model)
    on = {
        n: memory.experts_on_gpu(model, experts.held_experts(model, Deployment(n))) for n in range(low, high)
    }
    return max(n for n, weight in on.items() if weight >= attention)


@reproduces("Introduction")
def _introduction(read):
    return {("parameters", ""): parameters()["all"]}


@reproduces("Text 1")
def _text_1(read):
    ours = memory.cache_per_token(model_of("DeepSeek V3"))
    qwen, llama = (load_model(name).cache_bytes() for name in ("Qwen3 32B", "Llama 3.1 405B"))
    forty = load_model("Qwen3 32B").cache_bytes() * 40 / load_model("Qwen3 32B").n_layers
    active = active_parameters()
    return claims.text_1() | {
        ("parameters one token activates", ""): Noted(
            active, "with the head, without the embedding table; with both or neither it is 1 up or down"
        ),
        ("parameters a large batch may load", ""): parameters()["all"],
        ("expert layers", ""): lambda read: read("layers") - read("dense layers"),
        ("experts", ""): lambda read: read("shared experts") + read("routed experts"),
        ("cache of one token", "DeepSeek V3"): ours,
        ("cache of one token", "Qwen3 32B"): Noted(
            qwen, f"64 layers; {forty / factor('KB'):.2f} KB would be 40 layers of the same shape"
        ),
        ("cache of one token", "Llama 405B"): llama,
        ("cache of other models over DeepSeek's", ""): Noted(
            (qwen / ours, llama / ours), f"Qwen3 32B to Llama 405B; {forty / ours:.1f} with the printed Qwen"
        ),
        ("Llama 3.3 70B", "ratio"): lambda read: (
            read("Llama 3.3 70B", "feed-forward width") / read("Llama 3.3 70B", "width")
        ),
    }


@reproduces("Figure 5")
def _figure_5(read):
    return {
        ("shared experts", ""): lambda read: Noted(
            read("experts") - read("routed experts"), "its own count in the same caption, 257 less 256"
        ),
        ("experts a token goes through", ""): model_of("DeepSeek V3").used,
    }


@reproduces("Text 2.1")
def _text_2_1(read):
    parts = parameters()
    all_billions, attention = (round(parts["all"] / 1e9), round(parts["attention"] / 1e9, -1))
    said = all_billions - attention
    return claims.text_2_1() | {
        ("parameters of expert layers", ""): Noted(
            parts["experts"], f"{all_billions} - {attention:.0f}, all but attention, is {said:.0f}"
        ),
        ("share of expert layers", ""): Noted(
            parts["experts"] / parts["all"], f"{said:.0f} / {all_billions} is {said / all_billions:.1%}"
        ),
    }


@reproduces("Text 2.2")
def _text_2_2(read):
    return claims.text_2_2(read) | {
        ("SGLang", "GPUs of a node"): lambda read: read("SGLang", "GPUs") / read("SGLang", "nodes")
    }


@reproduces("Text 2.4")
def _text_2_4(read):
    return claims.text_2_4() | {
        ("attention weights", ""): Noted(parameters()["attention"], "section 3.1.1 prints 11.4 GB"),
        ("GPUs beyond which attention outweighs experts", ""): outweighing(),
    }


@reproduces("Text 2.5")
def _text_2_5(read):
    model, tensor_parallel = model_of("DeepSeek V3"), 1
    gain, where = claims.best_overlap_gain()
    return {
        ("traffic over that of tensor parallelism", ""): network.messages(model) / tensor_parallel,
        ("overlap gains close to a factor", ""): Noted(gain, f"at best, on {where}, by the source's model"),
    }


@reproduces("Text 3")
def _text_3(read):
    parts = parameters()
    share = parts["experts"] / parts["all"]
    return {("share of expert weights", ""): Noted(share, "follows from the 98.5% of section 2.1")}


@reproduces("Text 3.1.1")
def _text_3_1_1(read):
    model = model_of("DeepSeek V3")
    rounded = sum(round(matrix(model) / MB, 1) for matrix in memory.ATTENTION.values())
    return claims.text_3_1_1() | {
        **{(name, ""): matrix(model) for name, matrix in memory.ATTENTION.items()},
        ("attention weights of one layer", ""): Noted(
            memory.layer_attention_weights(model), f"the eight rounded sizes add up to {rounded:.1f}"
        ),
        ("attention weights of all layers", ""): memory.attention_weights(model),
        ("cache of one token", ""): memory.cache_per_token(model),
        ("activations of one sequence", ""): memory.attention_activations(model, 1),
    }


@reproduces("Text 3.1.2")
def _text_3_1_2(read):
    model = model_of("DeepSeek V3")
    one, activations = (memory.expert_matrix(model), memory.all_expert_activations(model, 1))
    attention = memory.attention_activations(model, 1)
    rounded = activations / attention * round(attention / MB, 1)
    once = 1 / experts.selection_probability(model)
    return claims.text_3_1_2(read) | {
        ("activations of one sequence", ""): Noted(
            activations, f"1.5 times the rounded 0.9 MB of section 3.1.1 is {rounded:.2f}"
        ),
        ("one matrix of an expert", "W_1 and W_2"): one,
        ("one matrix of an expert", "W_Gate"): one,
        ("one expert", ""): Noted(
            memory.expert_weights(model), f"3 times the 15 that 14.7 rounds to is {3 * round(one / MB)}"
        ),
        ("one matrix of a dense layer", "W_1 and W_2"): memory.dense_matrix(model),
        ("one matrix of a dense layer", "W_Gate"): memory.dense_matrix(model),
        ("a dense layer", ""): memory.dense_layer_weights(model),
        ("dense layers", ""): memory.dense_weights(model),
        ("tokens over which an expert is chosen once", ""): once,
        ("tokens of 32 that miss an expert", ""): once * experts.never_selected(model, 1),
    }


@reproduces("Text 3.1.3")
def _text_3_1_3(read):
    size = memory.embedding_weights(model_of("DeepSeek V3"))
    return claims.text_3_1_3(read) | {("both embedding matrices", ""): size}


@reproduces("Text 3.2")
def _text_3_2(read):
    return claims.text_3_2()


@reproduces("Text 3.3")
def _text_3_3(read):
    model = model_of("DeepSeek V3")
    two, share = (network.two_experts_traffic(model, 8), network.link_traffic(model, Deployment(8), 8))
    fullest = experts.held_experts(model.replace(n_routed=8, n_shared=1), Deployment(8))
    return {
        ("devices of the base model", ""): model.n_routed + model.n_shared,
        ("messages of a token and layer", ""): network.messages(model),
        ("bytes of both ways", ""): lambda read: read("dispatched") + read("combined"),
        ("traffic of one sequence", ""): Noted(
            network.tokens_traffic(model, 1),
            f"{network.tokens_traffic(model, 1, Assumptions.corrected()) / GB:.4f} with 58 layers and 8 messages",
        ),
        ("9 experts on 8 GPUs", "experts on the fullest"): fullest,
        ("9 experts on 8 GPUs", "it carries more than an eighth of the traffic"): Noted(
            bool(two > share), f"{two / share:.2f} times"
        ),
        ("9 experts on 8 GPUs", "nearly double"): two / share,
    }


@reproduces("Table 2")
def _table_2(read):
    def one_port(read, row):
        return read(row, "Gbit/s of a port") * factor("GB/s") / 8

    def single(read):
        shared = load_chip("H20").scale_out_bandwidth / factor("GB/s")
        note = f"400 Gbit/s are 50 GB/s; {shared:.0f} is a GPU's share of 4 ports for 8, as in a box of H20"
        return Noted(one_port(read, "CX7, single port"), note)

    return {
        ("CX7, fully connected", "bandwidth"): partial(one_port, row="CX7, fully connected"),
        ("CX7, single port", "bandwidth"): single,
        ("NVLink H100/H200", "bandwidth"): load_chip("H100 SXM").scale_up_bandwidth,
        ("NVLink B200", "bandwidth"): load_chip("B200").scale_up_bandwidth,
    }


@reproduces("Text 3.4")
def _text_3_4(read):
    model, row = model_of("DeepSeek V3"), "2x8 H100, shared expert on one GPU"
    n = int(read(row, "nodes") * read(row, "GPUs of a node"))
    printed, mean = (experts.shared_expert_load(model, n), experts.shared_expert_load_corrected(model, n))
    other = 1 + 1 / (model.n_active / n)
    note = f"the printed fraction; over the mean GPU it is {mean:.2f}, over any other GPU {other:.1f}"
    return claims.text_3_4() | {
        (row, "routed experts beside it"): model.n_routed / n,
        (row, "activations over the others'"): Noted(printed, note),
        (row, "traffic over the others'"): Noted(printed, note),
        ("balancedness of a balanced system", ""): experts.expert_balancedness(3.0, 3.0),
    }


@reproduces("Figure 10")
def _figure_10(read):
    return {
        ("share of experts a token goes to, one in", ""): lambda read: (
            read("experts") / read("experts a token goes to")
        )
    }


@reproduces("Text 3.5")
def _text_3_5(read):
    def ratio(read, row):
        return read(row, "peak") / read(row, "reached")

    return {
        ("network", "inefficiency"): partial(ratio, row="network"),
        ("attention's arithmetic", "inefficiency"): lambda read: (
            1 / read("attention's arithmetic", "utilisation")
        ),
        ("experts' arithmetic", "inefficiency"): partial(ratio, row="experts' arithmetic"),
    }


@reproduces("Text 4")
def _text_4(read):
    row = "32,768 tokens on 4x8 H100"

    def largest(read):
        free = read(row, "memory for the cache of one GPU") * read(row, "nodes") * read(row, "GPUs of a node")
        exact = memory.cache_per_token(model_of("DeepSeek V3"))
        found = free / (read(row, "cache of one token") * read(row, "context"))
        return Noted(found, f"{free / (exact * read(row, 'context')):.1f} with the exact cache of a token")

    return claims.text_4(read) | {(row, "largest batch"): largest}


def reading_counts():
    """How the printed numbers fare, by kind.

    Returns
    -------
    pandas.DataFrame
        Rows ``model``, ``derived`` and ``claim``: how many have which grade.
    """
    from inferlib.ledger import GRADES, scorecard

    card = scorecard("mazurek2025")
    card = card[card.kind.isin(["model", "derived", "claim"])]
    counts = card.groupby("kind", sort=False).grade.value_counts().unstack(fill_value=0)
    return counts.reindex(columns=[g for g in GRADES if g in counts])


def choices(own=(8, 64, 256, 512), context=4989):
    """What each open choice is worth: the source's systems with one choice changed at a time.

    Parameters
    ----------
    own : sequence of int
        Sequences a GPU.
    context : float

    Returns
    -------
    pandas.DataFrame
        Indexed by choice: tokens per second and GPU over those of the default reading, the smallest and the
        largest ratio over systems and batches.
    """
    import pandas as pd

    model = model_of("DeepSeek V3")

    def speeds(assumptions=DEFAULT, context=context, **changes):
        found = []
        for name in stated()["setups"]:
            at = setup(name)
            where = at.deployment.replace(**changes)
            for b in own:
                found.append(
                    throughput.gpu_throughput(model, at.gpu, where, b * where.n_gpus, context, assumptions)
                )
        return found

    base = speeds()
    cases = {
        "a context of 2000 tokens": speeds(context=2000),
        "no overlap": speeds(two_batch=False),
        "experts perfectly balanced": speeds(balancedness=1.0),
        "experts not balanced, 0.5": speeds(balancedness=0.5),
        "no extra experts": speeds(extra_experts=0),
        "no cap on the experts of a GPU": speeds(Assumptions.uncapped()),
        "58 layers and 8 messages": speeds(DEFAULT.replace(dense_layers_send=False, shared_sent=False)),
        "cache in FP8": speeds(DEFAULT.replace(cache_value_bytes=1.0)),
        "memory factor 1": speeds(DEFAULT.replace(memory_inefficiency=1.0)),
        "the factor 2 of equation 36": speeds(DEFAULT.replace(value_flop=2.0)),
        "FLOP of dense layers and head": speeds(DEFAULT.replace(all_flops=True)),
        "no 10 % penalty": speeds(DEFAULT.replace(arithmetic_penalty=1.0)),
        "all corrections": speeds(Assumptions.corrected()),
    }
    rows = {name: [new / old for new, old in zip(found, base, strict=True)] for name, found in cases.items()}
    low_high = {name: (min(ratios), max(ratios)) for name, ratios in rows.items()}
    return pd.DataFrame.from_dict(low_high, orient="index", columns=["least", "most"])


@ledger.errata_numbers("mazurek2025")
def errata_numbers():
    """The computed numbers in ``errata.toml``."""
    model, kimi, right = (model_of("DeepSeek V3"), model_of("Kimi K2"), Assumptions.corrected())
    parts, row = parameters(), "2x8 H100, shared expert on one GPU"
    read = Reader("mazurek2025", "Text 3.4")
    n = int(read(row, "nodes") * read(row, "GPUs of a node"))
    ours, changed = (
        flops.decode_attention_flops(model, 1, 1),
        flops.decode_attention_flops(model, 1, 1, right),
    )
    absorbed = [
        flops.absorbed_decode_flops(model, 1, 1, a) - flops.absorbed_decode_flops(model, 1, 0, a)
        for a in (DEFAULT, right)
    ]
    four, nine = setup("4x8 H100"), setup("9x8 H100")
    full = [experts.fullest_gpu_experts(s.deployment, model.n_routed) for s in (four, nine)]
    ceilings = [network.network_ceiling(model, nine.gpu, nine.deployment, a) for a in (DEFAULT, right)]
    table = validation.best_contexts()
    uncapped = table.loc["no cap on the experts of a GPU"]
    best = table.loc["as printed"]
    section_3 = claims.section_3_ratio()
    small = claims.fewer_experts_gain()
    head, dense = (flops.dense_flops(model, 1), flops.moe_flops(model, 1) * model.n_expert_layers)
    qwen = load_model("Qwen3 32B")
    linear = [experts.active_experts(model, b) / (b * model.n_active) for b in (8, 32)]
    reaches = validation.fullest_by_formula(batches=(16,), draws=300).iloc[0]
    gain = validation.overlap_gain()
    return {
        "value_17": f"{ours / changed - 1:.0%}",
        "value_36": f"{absorbed[0] / absorbed[1] - 1:.1%}",
        "value_decode": f"{claims.value_flop_effect():.1%}",
        "terms": f"{model.n_active + 1:.0f}",
        "full_4x8": f"{full[0]:.1f}",
        "held_4x8": f"{model.n_routed / four.deployment.n_gpus:.0f}",
        "full_9x8": f"{full[1]:.1f}",
        "held_9x8": f"{experts.held_experts(model, nine.deployment) - 1:.0f}",
        "printed_16": f"{reaches.printed:.2f}",
        "simulated_16": f"{reaches.simulated:.2f}",
        "placed_16": f"{reaches['without replacement']:.2f}",
        "uncapped_context": f"{uncapped['best context']:.0f}",
        "uncapped_rms": f"{uncapped['rms there']:.1%}",
        "capped_rms": f"{best['rms there']:.1%}",
        "section_3": f"{section_3:.2f}",
        "network_gain": f"{ceilings[1] / ceilings[0] - 1:.0%}",
        "layers_gain": f"{model.n_layers / model.n_expert_layers - 1:.1%}",
        "load_printed": f"{experts.shared_expert_load(model, n):.2f}",
        "load_mean": f"{experts.shared_expert_load_corrected(model, n):.2f}",
        "load_others": f"{1 + n / model.n_active:.1f}",
        "layer_mb": f"{memory.layer_attention_weights(model) / MB:.1f}",
        "activations_mb": f"{memory.all_expert_activations(model, 1) / MB:.2f}",
        "expert_mb": f"{memory.expert_weights(model) / MB:.1f}",
        "attention_gb": f"{parts['attention'] / GB:.2f}",
        "experts_b": f"{parts['experts'] / 1e9:.1f}",
        "experts_share": f"{parts['experts'] / parts['all']:.1%}",
        "qwen_kb": f"{qwen.cache_bytes() / factor('KB'):.0f}",
        "qwen_40": f"{qwen.cache_bytes() / qwen.n_layers * 40 / factor('KB'):.0f}",
        "head_batch": f"{claims.head_batch():.0f}",
        "more_flops": f"{head / dense:.0%}",
        "kimi_heads": f"{kimi.n_heads:.0f}",
        "kimi_dense": f"{kimi.n_dense_layers:.0f}",
        "linear_8": f"{linear[0]:.0%}",
        "linear_32": f"{linear[1]:.0%}",
        "fewer": f"{small['simulated']:.0%}",
        "fewest": f"{small['mean']:.0%}",
        "overlap_cost": f"{small['overlap']:.0%}",
        "table_gain": f"{claims.best_overlap_gain()[0]:.2f}",
        "measured_gain": f"{gain.measured.max():.2f}",
        "cache_fp8_low": f"{claims.cache_fp8()[0]:.0%}",
        "cache_fp8_high": f"{claims.cache_fp8()[1]:.0%}",
        "rms_short": f"{best['rms at 2050']:.0%}",
        "rms_long": f"{best['rms at 4989']:.1%}",
        "memory_seen": f"{setup('4x8 H100').gpu.memory_bandwidth / 3.0e12:.2f}",
        "tables_gb": f"{2 * parts['embeddings'] / GB:.1f}",
        "messages": f"{network.messages(model):.0f}",
        "everyone": f"{model.n_shared + model.n_routed:.0f}",
        "left": f"{claims.free_memory() / GB:.0f}",
    }
