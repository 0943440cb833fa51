"""Warm-up questions without paper: four on each session of the course, with which the next one begins."""

import functools
from dataclasses import replace
from functools import partial

from book.serving import tables
from book.teaching.problems.bank import BANK, Choice, Key, enter, problem, say
from inferlib import load_chip, load_model, principles
from inferlib.papers import erdil2025, liminal2025, pope2022
from tokenprice import prefill

LLAMA, DEEPSEEK, H100 = load_model("Llama 3 70B"), load_model("DeepSeek V3"), load_chip("H100 SXM")


def recalled(topic, place, unit=None, **also):
    """Register a question that is the same for all students; ``place``: page and anchor that teach it."""
    return problem(topic, "in the head", unit, place=place, **also)


def again(name, place, session, **numbers):
    """Register a problem of the bank again, with numbers that are the same for all students."""
    drawn = BANK[name]
    same = {parameter: (value,) for parameter, value in numbers.items()}
    enter(replace(drawn, level="in the head", choices=same, place=place, session=session))


memory, cache, experts, network, prompts, cost = (
    partial(recalled, topic) for topic in ("memory", "cache", "experts", "network", "prompts", "cost")
)

BYTES = "principles#bytes-the-weights-once-a-step"
BOX = {"model": LLAMA.name, "chip": H100.name, "count": 8, "weights": "bf16"}
again("memory-2", BYTES, 1, **BOX)
again("arithmetic-1", "principles#arithmetic-two-operations-for-every-weight", 1, model=LLAMA.name)
again("arithmetic-2", "principles#the-roofline", 1, peak=1979, bandwidth=3.35)
again("cache-1", "principles#p-cache", 2, model=LLAMA.name)
again("experts-1", BYTES, 2, model=DEEPSEEK.name, batch=32)

again(
    "network-4",
    "erdil2025_toy#how-many-gpus-make-one-token-fastest",
    3,
    model=LLAMA.name,
    chip=H100.name,
    hop=1e-6,
)
again("cost-2", "price#what-a-target-costs", 5, full=1.2, share=40)


@functools.cache
def running():
    """The request of the running box."""
    return tables.asked()


def told_of_collectives():
    """Return the number of collectives per token of Llama 3 70B on LIMINAL's 128 chips, and the time of one."""
    each = liminal2025.collectives(liminal2025.load_model("Llama3-70B"), 128)
    return {"collectives": f"{each:.0f}", "collective": say(liminal2025.collective_latency(128), "us")}


@memory("principles#the-roofline", session=1)
def idle_arithmetic():
    """Why does decoding for one user leave the arithmetic of an H100 almost idle?"""
    busy = principles.decode_intensity(principles.profile_of(LLAMA), 1, 1) / principles.ridge_point(H100)
    return Choice(
        "Every weight is read to be used just once",
        "One multiplication and one addition for two bytes are a FLOP a byte, where the chip could do three "
        f"hundred: {100 * busy:.1f} % of its arithmetic is at work.",
        {
            "The next token cannot be computed before the last one": "that makes a user wait, but not "
            "arithmetic idle",
            "Attention over the context cannot run in parallel": "its heads and positions can, and it is a "
            "small part here",
            "The network between the chips is too slow": "on a single chip it is idle just the same",
        },
    )


@cache("principles#p-cache", session=2)
def batch_and_cache():
    """Does a larger batch make reading the cache cheaper for each token?"""
    worked = "Only the weights are shared by a batch; the caches grow with it."
    wrong = {
        "Yes: what is read for one sequence serves all": "that is so for weights; nobody else attends "
        "to your context",
        "Yes, as long as the batch stays below the critical one": "the critical batch is about weights",
        "No: each sequence reads the caches of the others, too": "nobody attends to the context of another user",
    }
    return Choice("No: every sequence reads a cache of its own", worked, wrong)


@experts("principles#what-fits", session=2)
def experts_held():
    """How much memory do the weights of DeepSeek V3 need in 8 bits?"""
    return Choice(
        f"{DEEPSEEK.n_params / 1e9:.0f} GB",
        f"All experts are kept, although a token goes through {DEEPSEEK.n_active / 1e9:.1f} billion weights "
        f"only, {(DEEPSEEK.n_active - DEEPSEEK.vocab_size * DEEPSEEK.d_model) / 1e9:.1f} but for the input embedding.",
        {
            f"{DEEPSEEK.n_active / 1e9:.0f} GB": "those are the active ones; any other may be asked for next",
            f"{2 * DEEPSEEK.n_params / 1e9:,.0f} GB": "a weight of 8 bits is one byte",
            f"{DEEPSEEK.n_params / 8e9:.0f} GB": "a byte is 8 bits, and so is a weight here",
        },
    )


@network("erdil2025_toy#what-matters-and-how-much", session=3)
def bandwidth_or_hop():
    """Twice the memory bandwidth or half the time of a hop: which makes the fastest token faster?"""
    model, chip = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")
    before = erdil2025.minimum_latency(model, chip, 1e-6)
    hop = before / erdil2025.minimum_latency(model, chip, 5e-7)
    wide = chip.replace(memory_bandwidth=2 * chip.memory_bandwidth)
    read = before / erdil2025.minimum_latency(model, wide, 1e-6)
    worked = "Hop latency enters with the power 2/3, bandwidth with 1/3."
    wrong = {
        f"The bandwidth: {hop:.2f} times faster, against {read:.2f}": "the powers are the other way round",
        "Both by the same factor": "waiting has the larger power at the best size",
        f"The bandwidth: {2:.2f} times faster": "the best size changes with it, and waiting stays",
    }
    return Choice(f"The hop: {hop:.2f} times faster, against {read:.2f}", worked, wrong)


@network("erdil2025_toy#many-gpus-and-a-network-that-only-has-latency", session=3)
def deep_or_wide():
    """Why do two models of the same size, one deep and one wide, differ in their fastest token?"""
    worked = "Waiting counts layers, reading counts weights: the wide model waits less."
    wrong = {
        "A deep model has more weights to read": "they are of the same size",
        "A wide model needs more memory bandwidth": "reading the same bytes takes the same time",
        "A deep model has the larger cache, and so waits": "a user with a short context waits just as long",
    }
    return Choice("Every layer waits for its own exchanges", worked, wrong)


@network("pope2022#or-let-the-weights-travel", session=4)
def weights_gathered():
    """From how many tokens on should PaLM 540B gather weights rather than activations, on 64 chips?"""
    model = pope2022.load_model()
    tokens = pope2022.switch_to_x(model, pope2022.load_mesh(64))
    worked = "Its width E, where both have two bytes, in the paper's count: prompts and very large batches."
    wrong = {
        say(64, "1"): "that is the number of chips; at this batch activations are small",
        say(model.d_ff, "1"): "that is the width of the feed-forward block",
        say(tokens / 64, "1"): "the chips cancel out",
    }
    return Choice(say(tokens, "1"), worked, wrong)


@network("pope2022#cut-it-both-ways", session=4)
def cut_both_ways():
    """A layer is cut both ways, in squares. Four times as many chips share it: how do the activations that pass
    through each chip change?"""
    model = pope2022.load_model("PaLM 540B")
    chip = pope2022.load_chip()
    few, many = (pope2022.best_ws2d_time(model, chip, chips, 512) for chips in (64, 256))
    worked = "The edges of a block fall with the root of its area: one over the root of the chips."
    wrong = {
        "They stay as they were": "so it is for strips: however thin, each takes in the whole vector of a token",
        f"They fall to {(many / few) ** 2:.2g} of what they were": "so does the area, which is the weights",
        f"They grow to {few / many:.2g} times what they were": "finer blocks have shorter edges",
    }
    return Choice(f"They fall to {many / few:.2g} of what they were", worked, wrong)


@network("pope2022#or-let-the-weights-travel", session=4)
def who_gathers():
    """On 64 chips PaLM 540B decodes for 512 users and reads prompts of a million tokens. Which of the two gathers
    weights?"""
    switch = pope2022.switch_to_x(pope2022.load_model("PaLM 540B"), pope2022.load_mesh(64))
    said = {(False, True): "Only the prompts", (True, True): "Both", (True, False): "Only the decoding",
            (False, False): "Neither"}  # fmt: skip
    right = said.pop(tuple(tokens > switch for tokens in (512, 1e6)))
    return Choice(
        right,
        f"Weights travel from {say(switch, '1')} tokens in flight on: then tokens are the larger load.",
        dict.fromkeys(said.values(), "compare the tokens in flight with the width of the model"),
    )


@network("pope2022#po-attention", "1", session=4)
def copies_of_cache():
    """The cache of Llama 3 70B is cut over heads on 64 chips. How many times as large is each chip's part as
    it would be without copies?"""
    model = pope2022.load_model(LLAMA)
    times = pope2022.cache_over_heads(model, 64, 64, 4096) / pope2022.cache_over_batch(model, 64, 64, 4096)
    return Key(
        times,
        f"{model.kv_heads} heads are distinct, all other chips hold copies; cut over 64 sequences there are no copies.",
        {"only key/value heads have a cache": 1.0, "that many chips hold the same": 64.0},
    )


@network("liminal2025#faster-memory-a-ceiling", "1/s", session=3, told=told_of_collectives)
def ceiling():
    """On LIMINAL's 128 chips each of {collectives} collectives of Llama 3 70B takes {collective}. If memory and
    arithmetic cost nothing, how fast is it for one user?"""
    app = liminal2025.load_model("Llama3-70B")
    each, one = liminal2025.collectives(app, 128), liminal2025.collective_latency(128)
    worked = f"{each:.0f} collectives of {say(one, 'us')}, which no bandwidth shortens."
    mistakes = {
        "each layer has four collectives on so many chips": each / app.layers / (each * one),
        "on so many chips attention has three collectives, not one": 2 / (each * one),
        f"that is with the ideal of {say(liminal2025.IDEAL, 'ns')}": 1 / (each * liminal2025.IDEAL),
    }
    return Key(1 / (each * one), worked, mistakes)


@prompts("price#when-does-the-first-token-come", session=5)
def first_token():
    """Of the time to a first token on a busy machine, what is most?"""
    r = running()
    return Choice(
        "The prompts that are ahead, and one's own",
        f"Of {say(r.ttft, 'ms')} on the running box one's own prompt is {say(r.prompt.total, 'ms')} "
        f"and a step {say(r.step.total, 'ms')}.",
        {
            "Making the first token": f"a step takes {say(r.step.total, 'ms')} only",
            "Reading the weights from disk for the first time": "they are in memory already, and a prompt "
            "is bound by arithmetic",
            "Sending the prompt over the network": "a prompt is a few kilobytes of text",
        },
    )


@prompts(
    "kernel_model#other-people-s-prompts", "ms", session=5,
    told=lambda: {"prompt": say(running().prompt.total, "ms")},
)  # fmt: skip
def prompts_of_others():
    """How long does a token of the running box wait for prompts of the 31 others, if answers have 512 tokens and
    reading a prompt takes {prompt}?"""
    r = running()
    wait = prefill.prefill_interference(r.concurrency, r.output_tokens, r.prompt.total)
    return Key(
        wait,
        f"31 prompts of {say(r.prompt.total, 'ms')} are read while a user gets 512 tokens: nearly as long "
        "as the step itself.",
        {
            "that is for a whole answer": wait * r.output_tokens,
            "each of the 31 sends a prompt": wait / (r.concurrency - 1),
        },
    )


@cost("price#rent", session=5)
def answer_over_question():
    """On the running box (32 users, prompts of 3,840 tokens), how many times as expensive is a token of answer as
    one of question?"""
    paid = running().per_million
    times = paid["output"] / paid["input"]
    return Choice(
        f"{times:.1f} times",
        f"${paid['output']:.2f} against ${paid['input']:.2f} a million: a step is shared by 32 tokens, the "
        "reading of a prompt by thousands.",
        {
            f"{1:.1f} times": "both meet the same weights, but share the reading with unequal company",
            f"{1 / times:.1f} times": "a prompt reads thousands of tokens at once: those are the cheap ones",
            f"{32 * times:.0f} times": "so it would be for a single user",
        },
    )
