"""Mazurek & Schreiber 2025: the numbers of its text and of Tables 1 and 2, recomputed."""

from book import stored
from book.audit.explanations import inputs, named
from book.audit.grading import WithNote, reproduces
from book.audit.published_rows import published
from book.frames import frame
from book.papers.mazurek2025.counts import GB, MB, active_parameters, outweighing, parameters
from book.papers.mazurek2025.systems import MODEL, best_overlap_gain
from inferlib import catalog
from inferlib.equation import untraced
from inferlib.papers.mazurek2025 import equations as eq
from inferlib.papers.mazurek2025.records import PRINTED, Assumptions, Deployment
from inferlib.units import factor


@reproduces("Introduction")
def _introduction():
    return {"parameters": parameters()["all"]}


@reproduces("Text 1")
def _text_1():
    ours = eq.cache_per_token(MODEL)
    qwen, llama = (_cache(catalog.load_model(name)) for name in ("Qwen3 32B", "Llama 3.1 405B"))
    qwen3 = catalog.load_model("Qwen3 32B")
    forty = qwen3.cache_bytes() * 40 / qwen3.n_layers
    active = active_parameters()
    return {
        "parameters one token activates": WithNote(
            active, "with the head, without the embedding table; with both or neither it is 1 up or down"
        ),
        "parameters a large batch may load": parameters()["all"],
        ("cache of one token", "DeepSeek V3"): ours,
        ("cache of one token", "Qwen3 32B"): WithNote(
            qwen, f"64 layers; {forty / factor('KB'):.2f} KB would be 40 layers of the same shape"
        ),
        ("cache of one token", "Llama 405B"): llama,
        "cache of other models over DeepSeek's": WithNote(
            (qwen / ours, llama / ours), f"Qwen3 32B to Llama 405B; {forty / ours:.1f} with the printed Qwen"
        ),
    }


def _cache(model):
    """Bytes of a token: keys and values of every layer."""
    (group,) = model.layers
    what = f"cache of a token of {model.name}, {group.count} layers of {group.attention.n_kv_heads} key/value heads"
    return named(what, model.cache_bytes(), "B", "its published configuration, two bytes a value")


@reproduces("Figure 5")
def _figure_5():
    shape = inputs(MODEL)
    return {
        "experts a token goes through": shape.n_active + shape.n_shared_active,
    }


@reproduces("Text 2.1")
def _text_2_1():
    parts = parameters()
    all_billions, attention = (round(parts["all"] / 1e9), round(parts["attention"] / 1e9, -1))
    said = all_billions - attention
    return {
        "parameters of expert layers": WithNote(
            parts["experts"], f"{all_billions} - {attention:.0f}, all but attention, is {said:.0f}"
        ),
        "share of expert layers": WithNote(
            parts["experts"] / parts["all"], f"{said:.0f} / {all_billions} is {said / all_billions:.1%}"
        ),
    }


@reproduces("Text 2.4")
def _text_2_4():
    def outweighs(read):
        most = untraced(outweighing)()
        attention = eq.attention_weights(MODEL)
        on = [eq.experts_on_gpu(MODEL, eq.held_experts(MODEL, Deployment(n))) for n in (most, most + 1)]
        return WithNote(
            most,
            f"experts on one of {most} GPUs weigh {on[0] / GB:.2f} GB, on one of {most + 1} {on[1] / GB:.2f}; "
            f"attention {attention / GB:.2f}",
        )

    return {
        "attention weights": WithNote(
            parameters()["attention"],
            f"approximately; {parameters()['attention'] / GB:.1f} GB in section 3.1.1",
        ),
        "GPUs beyond which attention outweighs experts": outweighs,
    }


@reproduces("Text 2.5")
def _text_2_5():
    tensor_parallel = 1
    gain, where = best_overlap_gain()
    return {
        "traffic over that of tensor parallelism": eq.messages(MODEL) / tensor_parallel,
        "overlap gains close to a factor": WithNote(gain, f"at best, on {where}, by the source's model"),
    }


@reproduces("Text 3")
def _text_3():
    parts = parameters()
    share = parts["experts"] / parts["all"]
    whole = (parts["experts"] + parts["dense"]) / parts["all"]
    return {"share of expert weights": WithNote(share, f"{whole:.2%} with the dense blocks")}


@reproduces("Text 3.1.1")
def _text_3_1_1():
    rounded = sum(round(matrix(MODEL) / MB, 1) for matrix in eq.ATTENTION.values())
    return {
        **{(name, ""): matrix(MODEL) for name, matrix in eq.ATTENTION.items()},
        "attention weights of one layer": WithNote(
            eq.layer_attention_weights(MODEL), f"the eight rounded sizes add up to {rounded:.1f}"
        ),
        "attention weights of all layers": eq.attention_weights(MODEL),
        "cache of one token": eq.cache_per_token(MODEL),
        "activations of one sequence": eq.attention_activations(MODEL, 1),
    }


@reproduces("Text 3.1.2")
def _text_3_1_2(assumptions=PRINTED):
    one, activations = eq.expert_matrix(MODEL), eq.all_expert_activations(MODEL, 1, assumptions)
    attention = eq.attention_activations(MODEL, 1)
    rounded = activations / attention * round(attention / MB, 1)
    once = 1 / eq.selection_probability(MODEL)
    return {
        "activations of one sequence": WithNote(
            activations, f"1.5 times the rounded 0.9 MB of section 3.1.1 is {rounded:.2f}"
        ),
        ("one matrix of an expert", "W_1 and W_2"): one,
        ("one matrix of an expert", "W_Gate"): one,
        "one expert": WithNote(
            eq.expert_weights(MODEL), f"3 times the 15 that 14.7 rounds to is {3 * round(one / MB)}"
        ),
        ("one matrix of a dense layer", "W_1 and W_2"): eq.dense_matrix(MODEL),
        ("one matrix of a dense layer", "W_Gate"): eq.dense_matrix(MODEL),
        "a dense layer": eq.dense_layer_weights(MODEL),
        "dense layers": eq.dense_weights(MODEL),
        "tokens over which an expert is chosen once": once,
        "tokens of 32 that miss an expert": once * eq.never_selected(MODEL, 1),
    }


@reproduces("Text 3.1.3")
def _text_3_1_3():
    return {"both embedding matrices": eq.embedding_weights(MODEL)}


@reproduces("Text 3.3")
def _text_3_3(read, assumptions=PRINTED):
    two, share = eq.two_experts_traffic(MODEL, 8), eq.link_traffic(MODEL, Deployment(8), 8)
    fullest = eq.held_experts(MODEL.replace(n_routed=8, n_shared=1), Deployment(8))
    return {
        "devices of the base model": inputs(MODEL).n_routed + inputs(MODEL).n_shared,
        "messages of a token and layer": eq.messages(MODEL, assumptions),
        "bytes of both ways": lambda read: read("dispatched") + read("combined"),
        "traffic of one sequence": WithNote(
            eq.tokens_traffic(MODEL, 1, assumptions),
            f"{eq.tokens_traffic(MODEL, 1, Assumptions.corrected()) / GB:.4f} with 58 layers and 8 messages",
        ),
        ("9 experts on 8 GPUs", "experts on the fullest"): fullest,
        ("9 experts on 8 GPUs", "nearly double"): two / share,
    }


@reproduces("Table 2")
def _table_2(read):
    row = "CX7, fully connected"
    return {
        (row, "bandwidth"): lambda read: read(row, "Gbit/s of a port") * factor("GB/s") / 8,
        ("NVLink H100/H200", "bandwidth"): catalog.load_chip("H100 SXM").scale_up_bandwidth,
        ("NVLink B200", "bandwidth"): catalog.load_chip("B200").scale_up_bandwidth,
    }


@reproduces("Text 3.4")
def _text_3_4(read):
    row = "2x8 H100, shared expert on one GPU"
    n = int(read(row, "nodes") * read(row, "GPUs of a node"))
    load, share = eq.shared_expert_load_corrected(MODEL, n), MODEL.n_active / n
    note = (
        f"over the mean GPU; over any other GPU {1 + 1 / share:.1f}. The fraction in our copy, which is damaged there, "
        f"gives {eq.shared_expert_load(MODEL, n):.2f}"
    )
    return {
        (row, "routed experts beside it"): inputs(MODEL).n_routed / n,
        (row, "activations over the others'"): WithNote(load, note),
        (row, "traffic over the others'"): WithNote(load, note),
        "balancedness of a balanced system": eq.expert_balancedness(3.0, 3.0),
    }


@reproduces("Text 4")
def _text_4(read):
    row = "32,768 tokens on 4x8 H100"

    def largest(read):
        free = read(row, "memory for the cache of one GPU") * read(row, "nodes") * read(row, "GPUs of a node")
        exact = eq.cache_per_token(MODEL)
        found = free / (read(row, "cache of one token") * read(row, "context"))
        return WithNote(found, f"{free / (exact * read(row, 'context')):.1f} with the exact cache of a token")

    return {(row, "largest batch"): largest}


@frame("Symbol", "Size", "Name", "Name in Config", "in Figure 4", "here")
def table_1():
    """Table 1 under its own headings, beside Figure 4 and the catalogue's model."""
    rows = published("mazurek2025")
    # symbol, name as printed, name in the public configuration, our field
    listed = stored.rows("papers/mazurek2025/table_1.tsv", sep="\t", keep_default_na=False)
    for one in listed.itertuples():
        configured = rows["Figure 4", one.key, ""].printed if one.key else ""
        here = f"{getattr(MODEL, one.field):.0f}"
        printed = rows["Table 1", one.symbol, ""].printed
        yield one.symbol, printed, one.name, one.key, configured, here
