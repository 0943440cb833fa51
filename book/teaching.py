"""For teachers: a cheat sheet made from the register of equations, and questions with computed answers."""

import html
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files

from inferlib import checks, load_chip, load_model


def cheat_sheet():
    """The formulas worth remembering, each with its range of validity, as a Markdown list.

    Returns
    -------
    str
        The equations are typeset from the register, in the notation of their sources.
    """
    return "\n".join(
        f"- [{entry['says']}]{{.formula}} *({_source(entry)})* \n\n  ${_equation(entry).latex()}$ \n\n"
        f"  Holds: {_low(entry['holds'])}\n"
        for entry in formulas()
    )


def _low(sentence):
    """A sentence that goes on after a colon."""
    return sentence[0].lower() + sentence[1:]


def formulas():
    """The entries of the cheat sheet: source, name, says, holds."""
    return tomllib.loads((files("book") / "cheatsheet.toml").read_text("utf-8"))["formula"]


def _equation(entry):
    from inferlib.equation import EQUATIONS

    ours = {"principles": "inferlib.principles", "serving": "inferlib.serving.napkin"}
    import_module(ours.get(entry["source"], f"inferlib.papers.{entry['source']}"))
    return EQUATIONS[entry["source"], entry["name"]]


def _source(entry):
    number = _equation(entry).number
    return entry["source"] + (f", eq. {number}" if number and number.isdigit() else "")


@dataclass(frozen=True)
class Question:
    """One question of the quiz: its topic, and a function that computes and words the answer."""

    topic: str
    text: str
    answer: Callable


class Quiz(list):
    """Questions that show themselves as a numbered list, each answer folded."""

    def _repr_html_(self):
        items = "".join(
            f"<li>{html.escape(q.text)}<details><summary>Answer</summary>{html.escape(q.answer())}</details></li>"
            for q in self
        )
        return f'<ol class="quiz">{items}</ol>'

    def __repr__(self):
        return "\n".join(f"{i}. {q.text}\n   {q.answer()}" for i, q in enumerate(self, 1))


def quiz(topic=None):
    """The question bank, or the questions on one topic.

    Parameters
    ----------
    topic : str, optional
        One of :data:`TOPICS`.

    Examples
    --------
    >>> print(quiz("memory"))  # doctest: +ELLIPSIS
    1. Why ...
    """
    if topic is not None:
        checks.one_of("topic", topic, TOPICS)
    return Quiz(q for q in QUESTIONS if topic in (None, q.topic))


def _llama():
    return load_model("Llama 3 70B")


def _h100():
    return load_chip("H100 SXM")


def _read_weights():
    seconds = sum(_llama().weight_bytes("bf16").values()) / _h100().memory_bandwidth
    return f"{1e3 * seconds:.0f} ms: all weights, once, over the bandwidth of one chip (they would not fit, either)."


def _cache_of_a_token():
    model = _llama()
    return (
        f"{model.cache_bytes() / 1024:.0f} KiB: {model.n_layers} layers keep a key and a value for each of "
        f"{model.n_kv_heads} heads of width {model.head_dim}, 2 bytes each."
    )


def _ridge():
    from inferlib.principles import ridge_point

    return (
        f"About {ridge_point(_h100()):.0f}: peak over bandwidth. A dense decode step does one FLOP for each byte "
        "of 16-bit weights and sequence of the batch, so that is also the critical batch."
    )


def _eight_bits():
    from inferlib.principles import critical_batch, profile_of

    sixteen = critical_batch(_h100(), profile_of(_llama()))
    eight = critical_batch(_h100().at("fp8"), profile_of(_llama(), "fp8"))
    return f"By a factor of {eight / sixteen:.2f}: half the bytes to read, but twice the peak."


def _sparse_trap():
    return "By a factor of two: it holds only for weights of which half are zero in a fixed pattern."


def _touched():
    block = load_model("DeepSeek V3").layers[-1].feed_forward
    return (
        f"{block.touched(32):.0f} of {block.n_experts} in each layer, although a token goes to {block.n_active}: "
        "batching saves far less reading than in a dense model."
    )


def _mla():
    latent = load_model("DeepSeek V3").cache_values()
    return f"{latent:,} values against {_llama().cache_values():,}: one latent for all heads of a layer."


def _double():
    return (
        "Four times, in the second branch: with C squared. A faster chip needs a larger block to be kept busy, "
        "and a larger block takes longer."
    )


def _k():
    from inferlib.papers.steinhardt2022 import latency_waste, load_chip

    return f"At k = {latency_waste(load_chip()):.1f} half of the time is latency already."


def _optimum():
    from inferlib.papers import erdil2025

    n = erdil2025.optimal_n_gpu(erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"], 1e-6)
    return f"{n:.0f}: reading falls as 1/N, waiting grows as the root of N, so there is a best size."


def _hop():
    from inferlib.papers import erdil2025

    model, chip = erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"]
    gain = erdil2025.minimum_latency(model, chip, 1e-6) / erdil2025.minimum_latency(model, chip, 5e-7)
    twice = chip.replace(memory_bandwidth=2 * chip.memory_bandwidth)
    other = erdil2025.minimum_latency(model, chip, 1e-6) / erdil2025.minimum_latency(model, twice, 1e-6)
    return f"The hops: {gain:.2f} times faster, against {other:.2f} times for the bandwidth."


def _cost_bound():
    from inferlib.principles import cost_per_million, roofline_time

    model, chip = _llama(), _h100()
    data = sum(model.weight_bytes("bf16").values())
    seconds = roofline_time(chip, work=0, data=data, n_chips=8)
    dollars = cost_per_million(seconds, batch=1, n_chips=8, price=chip.price)
    return f"${dollars:.0f} for the weights alone at the catalogue's price: a batch of one pays for all of the reading."


def _switch():
    from inferlib.papers import pope2022

    tokens = pope2022.switch_to_x(pope2022.load_model(), pope2022.load_mesh(64))
    return f"From {tokens:,.0f} tokens on, in the paper's count: its width E, where both have two bytes."


def _copies():
    from inferlib.papers.pope2022 import cache_over_batch, cache_over_heads, model_of

    model = model_of(_llama())
    times = cache_over_heads(model, 64, 64, 4096) / cache_over_batch(model, 64, 64, 4096)
    return f"{times:.0f} times: {model.kv_heads} heads can be told apart, and all other chips hold copies."


def _drafts():
    from inferlib.papers.erdil2025 import expected_tokens

    return (
        f"{expected_tokens(0.8, 6):.2f}: {expected_tokens(0.8, 6) - 1:.2f} accepted and one more; never above "
        f"{1 / (1 - 0.8):.0f}, however long the round."
    )


def _launches():
    from inferlib.papers import erdil2025

    seconds = erdil2025.launches(erdil2025.models["Llama 3 70B"].shape, erdil2025.Assumptions())
    return f"{1e3 * seconds:.2f} ms in Erdil's complete model, on any number of GPUs: it counts layers, not bytes."


def _ceiling():
    from inferlib.papers import liminal2025 as room

    app = room.load_model("Llama3-70B")
    waiting = room.collectives(app, 128) * room.collective_latency(128)
    return f"About {1 / waiting:,.0f}: the collectives alone take {1e6 * waiting:.0f} µs, which no bandwidth shortens."


def _layer_overhead():
    import inferlib
    from inferlib.papers import liminal2025 as room

    box, work = inferlib.System(_h100(), 8), inferlib.Workload(batch=32, context=4096)
    step = room.decode_step(_llama(), box, work, assumptions=room.Assumptions.fitted())
    return (
        f"{1e3 * step.terms['overhead']:.1f} of {1e3 * step.total:.1f} ms: 80 layers of 114 µs, whatever the chips and "
        "the batch."
    )


def _balance():
    from inferlib.papers.mazurek2025.records import balancedness

    return f"To {1 / balancedness(72):.2f} times its mean: everybody waits for the fullest GPU."


def _idle():
    from inferlib.papers import mazurek2025 as room

    model = room.model_of("DeepSeek V3")
    idle = next(b for b in range(1, 10_000) if model.n_routed - room.active_experts(model, b) < 1)
    return f"{idle}: a token misses one with probability {1 - model.n_active / model.n_routed:.3f}."


def _sixth():
    import inferlib

    box = inferlib.System(_h100(), 8)
    found = inferlib.estimate(_llama(), box, inferlib.Workload(batch=32, context=4096))
    bound = inferlib.principles.decode_step(_llama(), box, inferlib.Workload(batch=32, context=4096)).total
    return (
        f"{1e3 * found.seconds:.0f} ms against {1e3 * bound:.1f} ms: shares of the peaks, starts of kernels, "
        "agreeing and the engine take the rest."
    )


QUESTIONS = (
    Question("memory", "Why does decoding for one user leave an H100's arithmetic almost idle?",
             lambda: "Every step reads all weights and uses each for one multiplication and one addition."),
    Question("memory", "How long does one H100 need to read the weights of Llama 3 70B at 16 bits?", _read_weights),
    Question("memory", "How much cache does one token of context take in Llama 3 70B at 16 bits?", _cache_of_a_token),
    Question("memory", "How many values does DeepSeek V3 keep for a token, against Llama 3 70B?", _mla),
    Question("memory", "Does a larger batch make reading the cache cheaper for each token?",
             lambda: "No: every sequence has a cache of its own. Only the weights are shared."),
    Question("arithmetic", "How many FLOP per byte does an H100 want at 16 bits?", _ridge),
    Question("arithmetic", "Weights and arithmetic both go from 16 to 8 bits. How does the critical batch change?",
             _eight_bits),
    Question("arithmetic", "A data sheet states a peak with sparsity. By how much is it too high here?", _sparse_trap),
    Question("experts", "How many experts of a layer of DeepSeek V3 does a batch of 32 touch?", _touched),
    Question("network", "Arithmetic gets twice as fast, network and memory stay. How does Steinhardt's fully used "
             "multiply change on a slow network?", _double),
    Question("network", "How far can utilisation be given up for speed before latency takes half of the time?", _k),
    Question("network", "How many H100s make a token of Llama 3 70B fastest, at one microsecond a hop?", _optimum),
    Question("network", "Twice the memory bandwidth or half the time of a hop: which makes the fastest token faster?",
             _hop),
    Question("network", "Why do two models of the same size, one deep and one wide, differ in their fastest token?",
             lambda: "Every layer waits for its own all-reduces: waiting counts layers, reading counts weights."),
    Question("network", "From how many tokens on should PaLM 540B gather weights rather than activations?", _switch),
    Question("network", "By how much does a cache cut over heads exceed one cut over the batch, for Llama 3 70B on 64 "
             "chips?", _copies),
    Question("network", "If memory and arithmetic cost nothing, how fast is Llama 3 70B on LIMINAL's 128 chips?",
             _ceiling),
    Question("network", "How long are the kernel launches of one token of Llama 3 70B?", _launches),
    Question("method", "By LIMINAL's equation 8, how much of the running question is overhead?", _layer_overhead),
    Question("experts", "From which batch on is less than one expert of a layer of DeepSeek V3 idle?", _idle),
    Question("experts", "Experts are spread over 72 GPUs. To how much of its mean does the fullest GPU's load rise?",
             _balance),
    Question("experts", "Why may two half batches that overlap be slower than one whole batch?",
             lambda: "Each half wakes nearly all experts and reads them again; the network must be worth hiding."),
    Question(
        "method",
        "Five drafts a round, each accepted with probability 0.8: how many tokens does the round yield, with the one "
        "that the verification adds?",
        _drafts,
    ),
    Question("cost", "What do a million tokens of Llama 3 70B cost on eight H100s, one user, at least?", _cost_bound),
    Question("cost", "Why is the cheapest token not the slowest one?",
             lambda: "Beyond the critical batch arithmetic is full: waiting longer makes no token cheaper."),
    Question("method", "A model of inference predicts a time below bytes over bandwidth. What is wrong?",
             lambda: "It leaves bytes out (a cache, a head, experts), or its bandwidth is of both directions."),
    Question("method", "What does the sixth model say of the running question, against the bound?", _sixth),
    Question("method", "Why is a fit judged on publishers that it has not seen, and not on rows?",
             lambda: "Rows of one publisher share hardware, software and habits: a row left out is hardly unseen."),
    Question("method", "A prediction is checked against a number that the same formula made. What has been shown?",
             lambda: "Nothing: only a measurement, or print that was computed by somebody else, can contradict it."),
)  # fmt: skip
TOPICS = tuple(dict.fromkeys(q.topic for q in QUESTIONS))
