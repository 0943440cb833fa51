"""Short questions that mark themselves in the page; every answer and every number in an option is computed."""

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from random import Random

import inferlib
import tokenprice
from book.problems.bank import Key, in_words, say
from book.problems.page import Marked, told_number
from book.serving import tables
from inferlib import checks, load_chip, load_model, principles
from inferlib.papers import erdil2025, liminal2025, mazurek2025, pope2022, steinhardt2022
from inferlib.units import factor
from tokenprice import energy as power, prompt

NEAR = 0.15  # an answer from the head may be so far off
TOPICS = ("memory", "arithmetic", "experts", "network", "prompts", "cost", "energy", "method")
QUESTIONS: list = []
LLAMA, DEEPSEEK, H100 = load_model("Llama 3 70B"), load_model("DeepSeek V3"), load_chip("H100 SXM")


@dataclass(frozen=True)
class Choice:
    """The right option, why it is right, and the wrong ones with what speaks against each."""

    right: str
    worked: str
    wrong: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """One question of the quiz: where the book teaches it, and a function that computes its answer."""

    topic: str
    words: str
    place: str  # page and anchor, such as "principles#the-roofline"
    unit: str | None  # of a number; None for a choice
    answer: Callable
    session: int | None = None  # of the course: the next one opens with it

    lines = ()

    @property
    def label(self):
        """What stands before the question."""
        return f"Session {self.session}." if self.session else ""

    @property
    def text(self):
        """The question, with what it takes from the running box."""
        return self.words.format(**_numbers()) if "{" in self.words else self.words

    @cached_property
    def key(self):
        """The computed answer: a Key, or a Choice."""
        return self.answer()

    @property
    def options(self):
        """The options of a choice in an order of their own, the same for everybody; of a number none."""
        if self.unit is not None:
            return ()
        options = [self.key.right, *self.key.wrong]
        return tuple(Random(self.text).sample(options, len(options)))

    @property
    def told(self):
        """What the page must know to mark the answer."""
        key = self.key
        if self.unit is not None:
            return told_number(key.value, self.unit, say(key.value, self.unit), NEAR, key.mistakes)
        hints = {key.right: "", **key.wrong}
        return {"right": self.options.index(key.right), "options": [hints[option] for option in self.options]}

    @property
    def plain(self):
        """The answer with its reason, as text."""
        answer = self.key.right if self.unit is None else say(self.key.value, self.unit)
        return f"{answer}. {self.key.worked}"

    @property
    def explained(self):
        """The same with a link to the paragraph that teaches it, as HTML."""
        page, _, anchor = self.place.partition("#")
        link = f'<a href="{page}.html#{anchor}">Where the book says it</a>'
        return f"<p>{html.escape(self.plain)} {link}.</p>"


def quiz(topic=None, session=None):
    """The questions, or those on one topic or one session of the course, as a list that marks itself in the page.

    ``topic``: one of :data:`TOPICS`. ``session``: the session that has just been held: the next one opens
    with these.

    Examples
    --------
    >>> print(quiz("energy"))  # doctest: +ELLIPSIS
    1. ...
    """
    if topic is not None:
        checks.one_of("topic", topic, TOPICS)
    return Marked(q for q in QUESTIONS if topic in (None, q.topic) and session in (None, q.session))


def asked(topic, place, unit=None, session=None):
    """Enter a function into the quiz: its docstring asks, and it returns a Key (a number in ``unit``) or a Choice."""

    def enter(function):
        QUESTIONS.append(Question(topic, in_words(function), place, unit, function, session))
        return function

    return enter


memory, arithmetic, experts, network, prompts, cost, energy, method = (partial(asked, t) for t in TOPICS)


@cache
def _request():
    return tables.asked()


@cache
def _numbers():
    """What questions say of the running box, and of LIMINAL's chips."""
    r, one = _request(), liminal2025.collective_latency(128)
    each = liminal2025.collectives(liminal2025.load_model("Llama3-70B"), 128)
    return {
        "prompt": say(r.prompt.total, "ms"), "price": say(r.per_million["output"], "usd"),
        "collectives": f"{each:.0f}", "collective": say(one, "us"),
    }  # fmt: skip


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


@memory("principles#bytes-the-weights-once-a-step", "ms", session=1)
def weights_read():
    """How long do eight H100s need at the least to read all of the 16-bit weights of Llama 3 70B once, the input
    embedding too?"""
    data = sum(LLAMA.weight_bytes("bf16").values())
    time = principles.memory_time(H100, data, 8)
    mistakes = {
        "that is one chip alone; all eight read at the same time": 8 * time,
        "a weight of 16 bits has two bytes": time / 2,
    }
    return Key(time, f"{say(data, 'GB')} over eight times {say(H100.memory_bandwidth, 'TB/s')}.", mistakes)


@memory("principles#p-cache", session=2)
def cache_of_token():
    """How much cache does one token of context take in Llama 3 70B at 16 bits?"""
    model = LLAMA
    each, heads = model.cache_bytes(), model.n_heads / model.n_kv_heads
    return Choice(
        say(each, "KiB"),
        f"{model.n_layers} layers keep a key and a value for each of {model.n_kv_heads} heads of width "
        f"{model.head_dim}, two bytes each.",
        {
            say(each * heads, "KiB"): "eight query heads share a key and a value here",
            say(each / 2, "KiB"): "there are a key and a value",
            say(each / model.n_layers, "KiB"): "every layer keeps its own",
        },
    )


@memory("principles#p-cache")
def latent_cache():
    """How many values does DeepSeek V3 keep for a token of context?"""
    model = DEEPSEEK
    kept, attention = model.cache_values(), model.layers[0].attention
    whole = attention.n_heads * (attention.nope_dim + attention.rope_dim + attention.value_dim)
    worked = (
        f"One latent and one rotary key for all heads of a layer; Llama 3 70B keeps {LLAMA.cache_values():,}."
    )
    wrong = {
        say(
            model.n_layers * whole, "1"
        ): "keys and values of the heads are computed from the latent, not kept",
        say(kept + model.n_layers * attention.kv_rank, "1"): "keys and values come from the same latent",
        say(model.n_layers * attention.kv_rank, "1"): "the rotary key is kept beside the latent",
    }
    return Choice(say(kept, "1"), worked, wrong)


@memory("principles#p-cache", session=2)
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


@memory("principles#what-fits", "1")
def sequences_that_fit():
    """How many sequences of 4,096 tokens fit beside the 16-bit weights of Llama 3 70B on eight H100s?"""
    model, box = LLAMA, inferlib.System(H100, 8)
    batch = principles.largest_batch(model, box, inferlib.Workload(1, 4096))
    return Key(
        batch,
        f"{say(box.memory - sum(model.weight_bytes().values()), 'GB')} are left, "
        f"{say(model.cache_bytes(4096), 'GB')} each. An engine keeps a reserve and lets in fewer.",
        {
            "the weights lie there too": box.memory / model.cache_bytes(4096),
            "query heads share keys and values here": batch * model.n_kv_heads / model.n_heads,
        },
    )


@arithmetic("principles#the-roofline", "FLOP/B", session=1)
def balance():
    """For how many FLOP for each byte is an H100 built, at 16 bits?"""
    ridge = principles.ridge_point(H100)
    return Key(
        ridge,
        "Dense peak over bandwidth. A dense step does one FLOP a byte for each sequence, so that is also "
        "the critical batch.",
        {
            "the peak with sparsity does not hold here": 2 * ridge,
            "you halved a peak that was dense already": ridge / 2,
        },
    )


@arithmetic("principles#the-critical-batch-and-what-the-cache-does-to-it")
def eight_bits():
    """Weights and arithmetic both go from 16 to 8 bits on an H100. What happens to the critical batch?"""
    sixteen = principles.critical_batch(H100, principles.profile_of(LLAMA))
    eight = principles.critical_batch(H100.at("fp8"), principles.profile_of(LLAMA, "fp8"))
    worked = f"Half the bytes to read, but twice the peak: a factor of {eight / sixteen:.2g}."
    wrong = {
        f"It changes by a factor of {eight / sixteen / 2:.2g}": "the peak doubles as well",
        f"It changes by a factor of {2 * eight / sixteen:.2g}": "the bytes halve as well",
        f"It changes by a factor of {4 * eight / sixteen:.2g}": "the two changes work against each other",
    }
    return Choice("It stays", worked, wrong)


@arithmetic("notation#units")
def sparsity():
    """A data sheet of the H100 prints its 16-bit peak 'with sparsity'. How much of that can Llama 3 70B use?"""
    dense = H100.flops
    return Choice(
        say(dense, "TFLOP/s"),
        f"The page prints {say(2 * dense, 'TFLOP/s')}, for weights half of which are zero in a fixed "
        "pattern; these are not.",
        {
            say(2 * dense, "TFLOP/s"): "that is the number on the page, for weights half of which are zero",
            say(dense / 2, "TFLOP/s"): "sparsity doubles the peak once",
            say(4 * dense, "TFLOP/s"): "the dense peak is the lower one",
        },
    )


@arithmetic("principles#arithmetic-two-operations-for-every-weight", "GFLOP", session=1)
def flop_of_token():
    """How many GFLOP does one token of Llama 3 70B take, at a short context?"""
    work = sum(LLAMA.flops(0).values())
    worked = f"{work / 2e9:.1f} billion weights are met (the input embedding is looked up), two FLOP each."
    mistakes = {
        "a multiplication and an addition are two FLOP": work / 2,
        "six for each weight is training": 3 * work,
    }
    return Key(work, worked, mistakes)


@arithmetic("principles#the-critical-batch-and-what-the-cache-does-to-it")
def long_context():
    """How many FLOP for each byte does Llama 3 70B do at a very long context, in 16 bits, at any batch?"""
    profile = principles.profile_of(LLAMA)
    least, ridge = principles.decode_intensity(profile, 1, 1e12), principles.ridge_point(H100)
    return Choice(
        say(least, "FLOP/B"),
        "2g/a, where g = 8 query heads share a key and a value has a = 2 bytes: only the cache is left, and "
        "no batch shares it.",
        {
            say(
                principles.decode_intensity(profile, 1, 1), "FLOP/B"
            ): "that is the weights' ratio for one sequence",
            say(least * LLAMA.n_kv_heads, "FLOP/B"): "only eight query heads share a key, not all of them",
            say(ridge, "FLOP/B"): "that is what the chip wants, and what it will never get here",
        },
    )


@experts("principles#bytes-the-weights-once-a-step", "1", session=2)
def experts_touched():
    """A token goes to 8 of the 256 routed experts of a layer of DeepSeek V3. How many does a batch of 32 touch on
    average, if all are equally popular?"""
    block = DEEPSEEK.layers[-1].feed_forward
    return Key(
        block.touched(32),
        f"256 less the {256 - block.touched(32):.0f} that all 32 miss: batching saves far less reading than in a dense "
        "model.",
        {
            "tokens meet at the same experts": min(32 * block.n_active, block.n_experts),
            "that is one token's": block.n_active,
        },
    )


@experts("mazurek2025#two-tokens-sixteen-experts", "1")
def experts_awake():
    """From which batch on is, on average, less than one of the 256 routed experts of a layer of DeepSeek V3 idle,
    if a token goes to 8 of them?"""
    model = mazurek2025.model_of("DeepSeek V3")
    batch = next(b for b in range(1, 10_000) if model.n_routed - mazurek2025.active_experts(model, b) < 1)
    worked = f"A token misses one with probability {1 - model.n_active / model.n_routed:.3f}."
    mistakes = {"that many would do if no two tokens chose the same": model.n_routed / model.n_active}
    return Key(batch, worked, mistakes)


@experts("mazurek2025#the-wire")
def fullest_gpu():
    """Experts are spread over 72 GPUs, and popular ones are copied. How many times the mean is the load of the
    fullest GPU, by Mazurek and Schreiber?"""
    share = mazurek2025.records.balancedness(72)
    plain = mazurek2025.records.balancedness(72, balanced=False)
    worked = f"Balancedness is {share:.3f} with copies of popular experts, and everybody waits for the fullest GPU."
    wrong = {
        "1 times: each token goes to as many experts": "as many, but not the same: some experts are popular",
        f"{share:.2f} times": "the fullest has more than the mean: divide",
        f"{1 / plain:.2f} times": "that would be without copies of popular experts",
    }
    return Choice(f"{1 / share:.2f} times", worked, wrong)


@experts("mazurek2025#mz-whole")
def two_half_batches():
    """Why may two half batches that overlap be slower than one whole batch?"""
    block = DEEPSEEK.layers[-1].feed_forward
    return Choice(
        "Each half touches nearly all experts and reads them again",
        f"Of 256 experts 128 tokens touch {block.touched(128):.0f} and 64 tokens {block.touched(64):.0f}: "
        "what is hidden on the network must be worth reading weights twice.",
        {
            "The network is slower with small messages": "bandwidth is what counts for messages of this size",
            "Two halves need two copies of all experts in memory, one for each": "both read the same ones",
            "Half a batch cannot be balanced": "balance changes little; the weights are read twice",
        },
    )


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


@network("steinhardt2022#how-fine-can-one-cut")
def more_arithmetic():
    """Arithmetic gets twice as fast, network and memory stay. How does Steinhardt's fully used multiply change,
    where the network is slow?"""
    slow = steinhardt2022.load_chip()
    slow = slow.replace(network_bandwidth=slow.network_bandwidth / 100)
    times = steinhardt2022.network_limited_time(slow.replace(flops=2 * slow.flops)) / (
        steinhardt2022.network_limited_time(slow)
    )
    return Choice(
        f"It takes {times:.2g} times as long",
        "A faster chip needs a larger block to be kept busy, and a larger block takes longer: the square "
        "of the peak.",
        {
            f"It takes {1 / 2:.2g} times as long": "only if the block stayed as it is, and then the chip would idle",
            "It takes as long as before": "the block that keeps it busy grows",
            f"It takes {2:.2g} times as long": "both sides of the block grow",
        },
    )


@network("erdil2025_toy#how-many-gpus-make-one-token-fastest", "1", session=3)
def best_size():
    """How many H100s make a token of Llama 3 70B fastest in Erdil's toy model, at a microsecond a hop?"""
    model, chip = erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"]
    best = erdil2025.optimal_n_gpu(model, chip, 1e-6)
    ratio = erdil2025.weight_time(model, chip, 1) / erdil2025.network_time(model, 1e-6)
    worked = (
        "Reading falls as 1/N, waiting grows as the root of N: the best size is their ratio to the power 2/3."
    )
    mistakes = {"take the ratio to the power 2/3": ratio, "that is the root; the power is 2/3": ratio**0.5}
    return Key(best, worked, mistakes)


@network("erdil2025_toy#what-matters-and-how-much", session=3)
def bandwidth_or_hop():
    """Twice the memory bandwidth or half the time of a hop: which makes the fastest token faster?"""
    model, chip = erdil2025.models["Llama 3 70B"], erdil2025.chips["H100"]
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
    model = pope2022.load_model("PaLM 540B", padded=True)
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
    switch = pope2022.switch_to_x(pope2022.load_model("PaLM 540B", padded=True), pope2022.load_mesh(64))
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
    """How many times the least possible is the cache on each of 64 chips, if that of Llama 3 70B is cut over heads?"""
    model = pope2022.model_of(LLAMA)
    times = pope2022.cache_over_heads(model, 64, 64, 4096) / pope2022.cache_over_batch(model, 64, 64, 4096)
    return Key(
        times,
        f"{model.kv_heads} heads can be told apart, all other chips hold copies; cut over 64 sequences "
        f"there are none.",
        {"only key/value heads have a cache": 1.0, "that many chips hold the same": 64.0},
    )


@network("liminal2025#faster-memory-a-ceiling", "1/s", session=3)
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


@network("erdil2025_model#launches-and-peaks-that-nobody-reaches", "ms")
def launches():
    """How long are the kernel launches of one token of Llama 3 70B, in Erdil's complete model?"""
    seconds = erdil2025.launches(erdil2025.models["Llama 3 70B"].shape, erdil2025.Assumptions())
    worked = "Four launches of 4 µs in each of 80 layers, on any number of GPUs: it counts layers, not bytes."
    mistakes = {
        "there are four launches in a layer": seconds / 4,
        "more GPUs launch at the same time": seconds / 8,
    }
    return Key(seconds, worked, mistakes)


@prompts("price#when-does-the-first-token-come", session=5)
def first_token():
    """Of the time to a first token on a busy machine, what is most?"""
    r = _request()
    return Choice(
        "The prompts that are ahead, and one's own",
        f"Of {say(r.first_token, 'ms')} on the running box one's own prompt is {say(r.prompt.total, 'ms')} "
        f"and a step {say(r.step.total, 'ms')}.",
        {
            "Making the first token": f"a step takes {say(r.step.total, 'ms')} only",
            "Reading the weights from disk for the first time": "they are in memory already, and a prompt "
            "is bound by arithmetic",
            "Sending the prompt over the network": "a prompt is a few kilobytes of text",
        },
    )


@prompts("sixth_model#other-people-s-prompts", "ms", session=5)
def prompts_of_others():
    """How long does a token of the running box wait for prompts of the 31 others, if answers have 512 tokens and
    reading a prompt takes {prompt}?"""
    r = _request()
    wait = prompt.others_time(r.users, r.output_tokens, r.prompt.total)
    return Key(
        wait,
        f"31 prompts of {say(r.prompt.total, 'ms')} are read while a user gets 512 tokens: nearly as long "
        "as the step itself.",
        {
            "that is for a whole answer": wait * r.output_tokens,
            "each of the 31 sends a prompt": wait / (r.users - 1),
        },
    )


@prompts("principles#why-a-prompt-is-different")
def why_prompts_differ():
    """Why is reading a prompt limited by arithmetic and writing an answer by memory?"""
    need = principles.critical_batch(H100, principles.profile_of(LLAMA))
    return Choice(
        "Its tokens share one reading of the weights",
        f"From {need:.0f} tokens on, an H100 calculates longer than it reads; an answer is made a token at a time.",
        {
            "A prompt needs no cache": "it writes one, and reads it",
            "Attention over a prompt grows with the square": "it does, but at usual lengths the weights take most",
            "Prompts are read in 8 bits": "whatever the format, a reading is shared by all tokens",
        },
    )


@prompts("price#rent")
def cached_prompt():
    """An agent sends 29,100 of 30,000 tokens of prompt again. Why is the turn so much cheaper when they are in the
    cache?"""

    def cents(cached):
        box = inferlib.System(H100, 8)
        return (
            100
            * tokenprice.ask(LLAMA, box, prompt=30000, output=300, users=16, cached=cached).request.dollars
        )

    return Choice(
        "Their arithmetic is done already",
        f"Only new tokens look at them: the turn costs {cents(29100):.2f} instead of {cents(0):.2f} cents. "
        f"What is left to pay is the answer, and the room of the cache.",
        {
            "The cache is smaller than the text that it stands for": "it is far larger: hundreds of "
            "kilobytes a token",
            "A cached token needs no memory": "memory is just what it needs",
            "Attention skips cached tokens": "every new token attends to all of them",
        },
    )


@cost("principles#what-a-token-costs", "usd")
def price_alone():
    """What do a million tokens of Llama 3 70B cost one user alone on eight H100s, in 16 bits, at the catalogue's
    price and at the least?"""
    seconds = principles.roofline_time(H100, 0, principles.weight_data(principles.profile_of(LLAMA), 1), 8)
    dollars = principles.cost_per_million(seconds, 1, 8, H100.price)
    return Key(
        dollars,
        f"{say(seconds, 'ms')} of eight chips at ${H100.price:g} an hour: alone, one pays for all of the reading.",
        {"all eight chips are paid for": dollars / 8, "a weight of 16 bits has two bytes": dollars / 2},
    )


@cost("price#rent", session=5)
def answer_over_question():
    """On the running box (32 users, prompts of 3,840 tokens), how many times as expensive is a token of answer as
    one of question?"""
    paid = _request().per_million
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


@cost("price#what-a-target-costs", "usd", session=5)
def idle_hours():
    """Answers cost {price} a million on a machine that is always busy. It is busy in 40 % of the hours that are
    paid for. What do they cost?"""
    full = _request().per_million["output"]
    worked = f"{say(full, 'usd')} over 0.4: idle hours are paid for too, and providers do not publish them."
    mistakes = {
        "idle hours make it cost more": 0.4 * full,
        "divide by the busy part, not by the idle one": full / 0.6,
    }
    return Key(full / 0.4, worked, mistakes)


@cost("price#a-price-list-explained")
def price_list():
    """DeepSeek's price list of February 2025 asked how many times what an answer cost it, by its own published
    speed?"""
    row = tables.price_list().set_index(tables.price_list().columns[0]).loc["output"]
    times, ratio = row.iloc[0] / row.iloc[1], row.iloc[0] / row.iloc[2]
    return Choice(
        f"{times:.0f} times",
        f"${row.iloc[0]:g} on the list against ${row.iloc[1]:.2f}: a list price is cost, idle hours, and "
        "what the market bears.",
        {
            f"{1:.0f} times": "a list price is not a cost",
            f"{times * 10:.0f} times": "look at the place of the point",
            f"{ratio / 3:.0f} times": "that is nearer to the ratio of two prices on the list",
        },
    )


@energy("price#energy", "W*s")
def joules_of_answer():
    """The running box draws what its eight chips need for a step of 32 users. How many joules is a token of answer?"""
    r = _request()
    return Key(
        r.joules,
        f"{say(r.step.total, 'ms')} of eight chips at some "
        f"{say(r.joules * r.users / r.step.total / 8, 'W')}, over 32 tokens.",
        {
            "32 users share the step": r.joules * r.users,
            "all eight chips draw power": r.joules / 8,
            "that is a token of the prompt": r.prompt_joules,
        },
    )


@energy("price#energy")
def rent_over_electricity():
    """Renting the chips for an answer costs how many times their electricity, at ten cents a kilowatt-hour?"""
    r = _request()
    electricity = 1e6 * r.joules / factor("kW*h", "W*s") * 0.10
    times = r.per_million["output"] / electricity
    part = power.draw().awake
    return Choice(
        f"About {times:.0f} times",
        f"${r.per_million['output']:.2f} a million tokens against {100 * electricity:.0f} cents, which is "
        "why no price list mentions electricity.",
        {
            f"About {times / 10:.0f} times": "a kilowatt-hour is 3.6 MJ, and a token some two joules",
            "About as much": "chips are expensive, electricity is not",
            f"About {times * part:.0f} times": "that is if the chips drew only what they draw while they "
            "wait, and more",
        },
    )


@method("liminal2025#and-a-real-server")
def overhead():
    """By LIMINAL's equation 8, how much of a step of the running question is overhead?"""
    box, work = inferlib.System(H100, 8), inferlib.Workload(batch=32, context=4096)
    step = liminal2025.decode_step(LLAMA, box, work, assumptions=liminal2025.Assumptions.fitted())
    over, total = step.terms["overhead"], step.total
    worked = "80 layers of 114 µs, whatever the chips and the batch."
    wrong = {
        f"{1e3 * (total - over):.1f} of {1e3 * total:.1f} ms": "that is the reading",
        f"{1e3 * over / 80:.2f} of {1e3 * total:.1f} ms": "each layer has its own",
        f"{8e3 * over / 80:.1f} of {1e3 * total:.1f} ms": "it counts layers, not chips",
    }
    return Choice(f"{1e3 * over:.1f} of {1e3 * total:.1f} ms", worked, wrong)


@method("erdil2025_model#em-speculation")
def yield_of_round():
    """Five drafts a round, each accepted with probability 0.8 if those before it are: how many tokens does a round
    yield, with the one that the verification adds?"""
    made = erdil2025.expected_tokens(0.8, 6)
    worked = f"{made - 1:.2f} accepted and one more; never above {1 / (1 - 0.8):.0f}, however long the round."
    wrong = {
        f"{made - 1:.2f}": "the verification adds a token of its own",
        f"{erdil2025.expected_tokens(0.8, 5):.2f}": "that is the yield of four drafts and one more",
        f"{5 * 0.8 + 1:.2f}": "a draft counts only if all before it were accepted",
    }
    return Choice(f"{made:.2f}", worked, wrong)


@method("principles#p-bounds")
def below_the_bound():
    """A model of inference predicts a time below bytes over bandwidth. What is wrong?"""
    worked = "A cache, a head, experts that were touched: no step is faster than its reading."
    wrong = {
        "Nothing: a good engine caches weights on the chip": "gigabytes do not fit there",
        "Nothing: it counts a large batch": "a batch shares the reading, but the step still takes it",
        "It leaves the network out": "that would make it too fast, but not below the reading",
    }
    return Choice("It leaves bytes out, or counts a link both ways", worked, wrong)


@method("sixth_model#the-running-question", "ms")
def sixth_model():
    """What does the sixth model say of a step of the running question?"""
    box, work = inferlib.System(H100, 8), inferlib.Workload(batch=32, context=4096)
    found = tokenprice.ask(LLAMA, box, batch=32, context=4096)
    bound = principles.decode_step(LLAMA, box, work).total
    return Key(
        found.seconds,
        f"Against {say(bound, 'ms')} of the bound: shares of the peaks, launches of kernels, exchanges and "
        "the engine take the rest.",
        {"that is the bound of first principles; real steps take longer": bound},
    )


@method("sixth_model#how-far-off")
def publishers():
    """Why is a fit judged on publishers that it has not seen, and not on rows?"""
    worked = "A row left out is hardly unseen if its neighbours stay in: count publishers, not rows."
    wrong = {
        "There are too few rows to leave any of them out by chance": "there are more rows than publishers",
        "Publishers may have made rows up": "that is another question, and leaving rows out would not answer it",
        "It makes the error smaller": "it makes it larger, and more honest",
    }
    return Choice("Rows of one publisher share hardware, software and habits", worked, wrong)


@method("measurements#meas-mistakes")
def own_formula():
    """A prediction is checked against a number that the same formula made. What has been shown?"""
    worked = "Only a measurement, or print that somebody else computed, can contradict a model."
    wrong = {
        "That the model is right within its tolerance": "it would agree with itself if it were wrong",
        "That the source made no error": "an error in the formula would be in both",
        "That two methods agree": "they are one method",
    }
    return Choice("That the formula was typed in correctly", worked, wrong)
