"""Prompts, cost, energy, speculation and method: from a step to a request, and to a claim about it."""

from functools import partial

import inferlib
import tokenprice
from book.problems import choices as c
from book.problems.bank import Key, in_sums as say, problem
from inferlib import System, Workload, principles
from inferlib.papers import erdil2025
from inferlib.principles import profile_of
from inferlib.units import factor
from tokenprice import energy as power, prompt, request
from tokenprice.decode import decode_step
from tokenprice.speculation import acceptance, drafted_step, drafted_token_time

prompts, cost, energy, speculation, method = (
    partial(problem, topic) for topic in ("prompts", "cost", "energy", "speculation", "method")
)
USERS = (8, 16, 32, 64)
STEPS = (12e-3, 16e-3, 20e-3, 25e-3)
READS = (0.08, 0.12, 0.2, 0.3)


def has_room(model, chip, count, users, tokens, answer):
    """Whether caches fit beside 16-bit weights with a quarter to spare."""
    return 1.25 * model.bytes_held(users, tokens + answer) < count * chip.memory_capacity


def served(model, chip, count, users, tokens, answer):
    """What the sixth model says of such requests, with weights in 16 bits."""
    work = {"prompt": tokens, "output": answer, "users": users, "weights": "bf16"}
    return tokenprice.ask(model, System(chip, count), **work).request


SERVED = {
    "model": ("Llama 3 70B", "Qwen2.5 72B", "Qwen3 32B"), "chip": ("H100 SXM", "H200", "B200"), "count": (4, 8),
    "users": (8, 16, 32), "tokens": (2000, 4000), "answer": (300, 500), "where": has_room,
}  # fmt: skip
HOUR = factor("h", "s")


@prompts("one line", "TFLOP", model=c.DENSE, tokens=c.PROMPTS)
def flop_of_prompt(model, tokens):
    """How many TFLOP does reading a prompt of {tokens} tokens take with {model}, attention left out and the head
    asked for the last token only?"""
    parts = model.prefill_flops(tokens)
    work = sum(parts.values()) - parts["scores"] - parts["values"]
    return Key(
        work,
        "Two FLOP for each weight of the layers and each token, and the head once: 2 FLOP × "
        f"{(work - parts['head']) / 2e9 / tokens:.4g} billion × {tokens:,} + {say(parts['head'], 'GFLOP')}",
        {
            "each weight takes a multiplication and an addition": work / 2,
            "six for each weight is training": 3 * work,
            "all tokens of the prompt meet the weights": work / tokens,
        },
    )


@prompts("one line", "1", chip=c.CHIPS, weights=c.FORMATS)
def critical_prompt(chip, weights):
    """How many tokens must a prompt have so that one {chip} at its 16-bit peak calculates as long as it reads the
    weights of a dense model in {weights}?"""
    profile = profile_of(inferlib.load_model("Llama 3 70B"), weights)
    tokens, ridge = principles.critical_batch(chip, profile), principles.ridge_point(chip)
    return Key(
        tokens,
        f"All tokens share one reading, as a batch does: {say(ridge, 'FLOP/B')} × {c.bits(weights) / 8:g} B / 2 FLOP",
        {
            "a weight takes two FLOP": 2 * tokens,
            "count the bytes of a weight": {"fp8": ridge, "bf16": 0}.get(weights, ridge / 2),
        },
    )


@prompts(
    "short", "s", model=c.DENSE, chip=c.CHIPS, count=(4, 8), tokens=c.PROMPTS, share=(50, 60, 70),
    where=c.weights_fit,
)  # fmt: skip
def time_of_prompt(model, chip, count, tokens, share):
    """{count} × {chip} read a prompt of {tokens} tokens with {model} at {share} % of their 16-bit peak. How long
    does the arithmetic take, attention included (each position sees those before it), the head asked for the last
    token only?"""
    work = sum(model.prefill_flops(tokens).values())
    peak = principles.arithmetic_time(chip, work, count)
    time = 100 * peak / share
    mistakes = {
        "a share of the peak is reached: divide by it": peak,
        "the time gets longer with a share below one, not shorter": peak * share / 100,
        "a multiplication and an addition are two FLOP; the peak is the dense one": time / 2,
        "the chips share the work": count * time,
    }
    return Key(time, f"{say(work, 'TFLOP')} / ({share} % × {count} × {say(chip.flops, 'TFLOP/s')})", mistakes)


@prompts("short", "ms", users=USERS, answer=c.ANSWERS, reading=READS)
def prompts_of_others(users, answer, reading):
    """{users} users share a machine; each asks again as soon as an answer of {answer} tokens is done. Reading a
    prompt takes {reading:ms}, during which nobody gets a token. How much does a token wait for prompts of others,
    on average?"""
    wait = prompt.others_time(users, answer, reading)
    mistakes = {
        "your own prompt is not one of the others'": wait * users / (users - 1),
        "that is the wait of a whole answer": wait * answer,
        "each of the others sends a prompt": wait / (users - 1),
    }
    return Key(wait, f"{users - 1} × {say(reading, 'ms')} / {answer:,}", mistakes)


@prompts("short", "TFLOP", model=c.SMALL, tokens=(64000, 100000), cached=(48000, 32000, 56000))
def cached_prompt(model, tokens, cached):
    """Of a prompt of {tokens} tokens the first {cached} are in the cache already. How many TFLOP does {model} still
    have to do (the head for the last token only)?"""

    def whole(n):
        return sum(model.prefill_flops(n).values())

    head, every, kept = model.prefill_flops(1)["head"], whole(tokens), whole(cached)
    mistakes = {
        "new tokens also look at those in the cache": whole(tokens - cached),
        "what is in the cache need not be computed again": every,
        "attention grows with the square: do not take a share of the whole": every * (1 - cached / tokens),
    }
    parts = f"{say(every, 'TFLOP')} - {say(kept, 'TFLOP')} + {say(head, 'GFLOP')}"
    worked = f"The whole prompt less what is cached, and the head once more: {parts}"
    return Key(every - kept + head, worked, mistakes)


@prompts("study", "s", **SERVED)
def first_token(model, chip, count, users, tokens, answer):
    """{users} users share {count} × {chip} with {model} in 16 bits; prompts of {tokens} tokens, answers of
    {answer}. How long does the first token take by the sixth model?"""
    asked = served(model, chip, count, users, tokens, answer)
    return Key(
        asked.first_token,
        f"The prompt alone takes {say(asked.prompt.total, 's')}, a step {say(asked.step.total, 's')}; those "
        f"that come together, a second step and the way in and out make it {say(asked.first_token, 's')}.",
        {
            "other prompts are ahead of yours": asked.prompt.total + asked.step.total,
            "if everybody had to wait for everybody else": users * asked.prompt.total,
            "that is the time between tokens, not before the first": asked.token,
        },
    )


@cost("one line", "usd", chip=c.CHIPS, count=(4, 8), batch=c.BATCHES, seconds=STEPS)
def price_of_step(chip, count, batch, seconds):
    """A step takes {seconds:ms} on {count} × {chip} and makes one token for each of {batch} users. What do a
    million tokens cost at the catalogue's price?"""
    dollars = principles.cost_per_million(seconds, batch, count, chip.price)
    worked = f"{count} × ${chip.price:g} / 3,600 s × {say(seconds, 'ms')} / {batch} × 1,000,000"
    mistakes = {
        "the users share the step": batch * dollars,
        "all chips are paid for": dollars / count,
        "an hour has 3,600 seconds, not 60": 60 * dollars,
    }
    return Key(dollars, worked, mistakes)


@cost("one line", "usd", full=(0.4, 1.2, 2.5, 3.8), share=(25, 30, 40, 60))
def idle_hours(full, share):
    """Answers cost {full:usd} a million tokens on a machine that is always busy. What do they cost if it is busy in
    {share} % of the hours that are paid for?"""
    dollars = request.rent(1, 1, full, share / 100)
    mistakes = {
        "idle hours make a token cost more: divide": full * share / 100,
        "divide by the part that is used, not by the idle part": full / (1 - share / 100),
    }
    return Key(dollars, f"{say(full, 'usd')} / {share} %", mistakes)


@cost(
    "short", "usd", model=c.DENSE, chip=c.CHIPS, count=(4, 8), batch=c.BATCHES, context=(1024, 4096, 16384),
    where=c.all_fits,
)  # fmt: skip
def least_price(model, chip, count, batch, context):
    """What do a million tokens of {model} in 16 bits cost at the least on {count} × {chip}, at the catalogue's
    price, with {batch} users at {context} tokens of context? (First principles: reading and calculating overlap.)"""
    step = c.bound(model, chip, count, batch, context)
    t, total = step.terms, say(step.total, "ms")

    def price(seconds):
        return principles.cost_per_million(seconds, batch, count, chip.price)

    mistakes = {
        "the batch shares the weights, so a step makes many tokens": batch * price(step.total),
        "every sequence also reads its cache": price(max(t["weights"], t["arithmetic"])),
        "all chips are paid for": price(step.total) / count,
        "a batch shares weights, not caches": price(t["weights"] + t["cache"] / batch),
    }
    worked = f"A step takes {total}: {count} × ${chip.price:g} / 3,600 s × {total} / {batch} × 1,000,000"
    return Key(price(step.total), worked, mistakes)


@cost("short", "usd", chip=c.CHIPS, count=(4, 8), tokens=c.PROMPTS[:3], reading=READS)
def price_of_question(chip, count, tokens, reading):
    """Reading a prompt of {tokens} tokens takes {reading:ms} of a machine of {count} × {chip}, which does nothing
    else meanwhile. What does a million tokens of question cost at the catalogue's price?"""
    dollars = principles.cost_per_million(reading, tokens, count, chip.price)
    worked = f"{count} × ${chip.price:g} / 3,600 s × {say(reading, 'ms')} / {tokens:,} × 1,000,000"
    mistakes = {"all chips are paid for": dollars / count, "an hour has 3,600 seconds": 60 * dollars}
    return Key(dollars, worked, mistakes)


@cost(
    "short", "cent", chip=c.CHIPS, count=(4, 8), reading=READS, answer=c.ANSWERS, step=STEPS, users=USERS,
    share=(40, 50, 70),
)  # fmt: skip
def price_of_request(chip, count, reading, answer, step, users, share):
    """A request's prompt takes {reading:ms} of {count} × {chip} alone; its answer of {answer} tokens takes steps of
    {step:ms} that {users} users share. The machine is used in {share} % of the hours paid for. What does the
    request cost?"""

    def dollars(seconds, used=share / 100):
        return request.rent(seconds, count, chip.price / HOUR, used)

    seconds = request.machine_time(reading, answer, step, users)
    return Key(
        dollars(seconds),
        f"The machine is taken for {say(reading, 'ms')} + {answer} × {say(step, 'ms')} / {users} = "
        f"{say(seconds, 'ms')}, and that costs {count} × ${chip.price:g} / 3,600 s × {say(seconds, 'ms')} / "
        f"{share} % = {say(dollars(seconds), 'cent')}.",
        {
            "users share the steps of an answer": dollars(reading + answer * step),
            "a prompt has the machine for itself": dollars((reading + answer * step) / users),
            "idle hours are paid for too": dollars(seconds, 1),
            "a price an hour is not a price a minute": 60 * dollars(seconds),
        },
    )


@cost("study", "usd", **SERVED)
def price_of_answer(model, chip, count, users, tokens, answer):
    """By the sixth model, what does a million tokens of answer cost: {model} in 16 bits on {count} × {chip} at the
    catalogue's price, {users} users, prompts of {tokens} tokens, answers of {answer}, the machine always busy?"""
    asked = served(model, chip, count, users, tokens, answer)
    dollars, total = asked.per_million["output"], say(asked.step.total, "ms")
    bound = c.bound(model, chip, count, users, tokens + answer / 2)
    waiting, least = (
        principles.cost_per_million(time, users, count, chip.price) for time in (asked.token, bound.total)
    )
    mistakes = {
        "that is a million tokens of question": asked.per_million["input"],
        "the wait for prompts of others is paid with those prompts": waiting,
        "that is the bound; kernels, engine and network take their time": least,
        "users share a step": users * dollars,
    }
    worked = f"A step takes {total}: {count} × ${chip.price:g} / 3,600 s × {total} / {users} × 1,000,000"
    return Key(dollars, worked, mistakes)


@energy("one line", "W*s", count=(4, 8), watts=(400, 500, 600, 800), batch=c.BATCHES, seconds=STEPS)
def joules_of_step(count, watts, batch, seconds):
    """{count} chips draw {watts} W each and make a token for each of {batch} users in {seconds:ms}. How many joules
    is that a token?"""
    joules = power.token_energy(count, watts, seconds, batch)
    mistakes = {"the users share the step": batch * joules, "all chips draw power": joules / count}
    return Key(joules, f"{count} × {watts} W × {say(seconds, 'ms')} / {batch}", mistakes)


@energy("one line", "cent", joules=(0.8, 1.5, 2.5, 4.0), price=(8, 10, 15, 20))
def electricity(joules, price):
    """A token takes {joules} J. What does the electricity of a million tokens cost at {price} cents a
    kilowatt-hour?"""
    hours = power.token_energy(1, joules, 1, 1) * 1e6 / factor("kW*h", "W*s")
    cents = hours * price * factor("cent")
    worked = f"A kilowatt-hour is 3.6 MJ: 1,000,000 × {joules:g} J / 3,600,000 J × {price} cent"
    mistakes = {
        "a kilowatt-hour is 3.6 MJ, not 1 MJ": 3.6 * cents,
        "a kilowatt-hour is 3.6 MJ: a thousand watts, 3,600 seconds": cents * 1000,
    }
    return Key(cents, worked, mistakes)


@energy(
    "short", "W", chip=("H100 SXM", "H200", "B200"), memory=(40, 50, 60), arithmetic=(10, 20, 30),
    told=lambda: {"parts": _parts()},
)  # fmt: skip
def power_of_chip(chip, memory, arithmetic):
    """How much power does one {chip} draw by the fitted parts ({parts}), if its memory is busy {memory} % of the
    time and its arithmetic {arithmetic} %?"""
    parts = _draw()
    drawn = power.chip_draw(parts, chip.power, memory / 100, arithmetic / 100)
    mistakes = {
        "a serving chip draws power while it waits": drawn - parts.awake * chip.power,
        "it draws its rated power only when everything is busy": chip.power,
        "arithmetic draws power too": power.chip_draw(parts, chip.power, memory / 100, 0),
    }
    busy = f"{parts.awake:g} + {parts.reading:g} × {memory} % + {parts.calculating:g} × {arithmetic} %"
    return Key(drawn, f"({busy}) × {chip.power:g} W", mistakes)


@energy(
    "short", "W*s", model=c.DENSE, chip=("H100 SXM", "H200", "B200"), count=(4, 8), batch=(8, 16, 32, 64),
    where=c.weights_fit, told=lambda: {"parts": _parts()},
)  # fmt: skip
def joules_at_the_bound(model, chip, count, batch):
    """{count} × {chip} with {model} in 16 bits run at the bound of first principles, {batch} users with short
    contexts: memory is always busy, arithmetic as long as it takes. By the fitted parts ({parts}), how many joules
    is a token?"""
    step = c.bound(model, chip, count, batch, 0)
    parts, busy = _draw(), step.terms["arithmetic"] / step.total
    drawn = power.chip_draw(parts, chip.power, 1, busy)
    joules, awake = power.token_energy(count, drawn, step.total, batch), parts.awake * chip.power
    return Key(
        joules,
        f"Arithmetic is busy {100 * busy:.4g} % of a step of {say(step.total, 'ms')}, so a chip draws "
        f"({parts.awake:g} + {parts.reading:g} + {parts.calculating:g} × {100 * busy:.4g} %) × "
        f"{chip.power:g} W = {say(drawn, 'W')}, and a token takes {count} × {say(drawn, 'W')} × "
        f"{say(step.total, 'ms')} / {batch} = {say(joules, 'W*s')}.",
        {
            "the users share the step": batch * joules,
            "all chips draw power": joules / count,
            "the chip draws less than its rated power": joules * chip.power / drawn,
            "a serving chip also draws power only for being awake": joules * (1 - awake / drawn),
        },
    )


@energy("study", "W*s", **SERVED)
def joules_of_answer(model, chip, count, users, tokens, answer):
    """By the sixth model, how many joules of the chips does a token of answer take: {model} in 16 bits on {count} ×
    {chip}, {users} users, prompts of {tokens} tokens, answers of {answer}?"""
    asked = served(model, chip, count, users, tokens, answer)
    joules, rated = asked.joules, power.token_energy(count, chip.power, asked.step.total, users)
    return Key(
        joules,
        f"A step takes {say(asked.step.total, 'ms')}; so long {count} chips draw what their memory and "
        f"arithmetic are busy for, and {users} tokens share it: {say(joules, 'W*s')}.",
        {
            "users share a step": users * joules,
            "chips do not draw their rated power here": rated,
            "that is a token of the prompt": asked.prompt_joules,
            "all chips draw power": joules / count,
        },
    )


def _draw():
    """The fitted parts with the digits that the text prints, so that its sums add up."""
    p = power.draw()
    return power.Draw(*(round(part, 2) for part in (p.awake, p.reading, p.calculating)))


def _parts():
    parts = _draw()
    return (
        f"{parts.awake:g} of the rated power always, {parts.reading:g} while memory is busy, "
        f"{parts.calculating:g} while arithmetic is"
    )


@speculation("one line", "1", drafts=(2, 3, 4, 5), chance=(0.6, 0.7, 0.8))
def yield_of_round(drafts, chance):
    """A round drafts {drafts} tokens, each accepted with probability {chance} if those before it are. How many
    tokens does it yield on average, with the one that the verification itself adds?"""
    made = erdil2025.expected_tokens(chance, drafts + 1)
    worked = " + ".join(["1", f"{chance}", *(f"{chance}^{k}" for k in range(2, drafts + 1))])
    mistakes = {
        "the verification adds a token of its own": made - 1,
        "a draft counts only if those before it were accepted": drafts * chance + 1,
        "not all drafts are accepted": drafts + 1,
    }
    return Key(made, worked, mistakes)


@speculation("one line", "1", percent=(50, 60, 70, 75, 80, 85, 90))
def most_of_round(percent):
    """If each draft is accepted with probability {percent} %, how many tokens can a round yield at the very most,
    on average, however many are drafted?"""
    most = erdil2025.expected_tokens(percent / 100, 10_000)
    mistakes = {
        "the verification adds a token of its own": most - 1,
        "that is one over the probability to be accepted": 100 / percent,
    }
    return Key(most, f"The series ends at 1 / (1 - {percent} %)", mistakes)


@speculation(
    "short", "ms", drafts=(2, 3, 4), draft=(0.0005, 0.001, 0.002), verify=(0.01, 0.014, 0.02),
    length=(1.9, 2.4, 2.8),
)  # fmt: skip
def drafting(drafts, draft, verify, length):
    """A head drafts {drafts} tokens one after another, {draft:ms} each; verifying all of them takes {verify:ms}. A
    step yields {length} tokens. How long is it from token to token?"""
    time = drafted_token_time(verify, drafts, draft, length)
    mistakes = {
        "drafts are made one after another": drafted_token_time(verify, 1, draft, length),
        "not every draft is accepted": drafted_token_time(verify, drafts, draft, drafts + 1),
        "drafting takes time too": drafted_token_time(verify, 0, draft, length),
        "all drafts are verified in one step": (drafts * (verify + draft)) / length,
    }
    return Key(time, f"({say(verify, 'ms')} + {drafts} × {say(draft, 'ms')}) / {length}", mistakes)


@speculation(
    "short", "1", step=(0.01, 0.015, 0.025), drafts=(2, 3, 4, 5), draft=(0.0005, 0.001, 0.002),
    chance=(0.6, 0.7, 0.8),
)  # fmt: skip
def gain(step, drafts, draft, chance):
    """A step takes {step:ms} without drafting. With {drafts} drafts of {draft:ms} each, accepted with probability
    {chance}, verification takes a tenth longer than a step. How many times as fast are tokens?"""

    def gain(length, verify=1.1 * step):
        return step / drafted_token_time(verify, drafts, draft, length)

    made = erdil2025.expected_tokens(chance, drafts + 1)
    return Key(
        gain(made),
        f"A round yields {say(made, '1')} tokens, so it is {say(step, 'ms')} × {say(made, '1')} / (1.1 × "
        f"{say(step, 'ms')} + {drafts} × {say(draft, 'ms')}) = {say(gain(made), '1')} times as fast.",
        {
            "drafting and verifying take time": made,
            "the verification adds a token of its own": gain(made - 1),
            "not all drafts are accepted": gain(drafts + 1),
            "the verification takes longer than a step": gain(made, step),
        },
    )


@speculation("short", "%", percent=(2, 4, 6, 10), chance=(0.6, 0.7, 0.8, 0.9))
def best_drafts(percent, chance):
    """Each draft takes {percent} % of a step and is accepted with probability {chance}; verifying takes one step.
    With the best number of drafts a round, how long is a token, in per cent of a step?"""

    def time(drafts, own=1):
        made = erdil2025.expected_tokens(chance, drafts + own)
        return drafted_token_time(1, drafts, percent / 100, made)

    best = min(range(1, 60), key=time)
    made, many = erdil2025.expected_tokens(chance, best + 1), time(round(100 / percent))
    return Key(
        time(best),
        f"It is {best} drafts, which yield {say(made, '1')} tokens: (1 + {best} × {percent} %) / {say(made, '1')} "
        f"= {say(time(best), '%')}. With one draft more it is {say(time(best + 1), '%')}.",
        {
            "the verification adds a token of its own": time(best, 0),
            "a later draft is accepted only if all before it are: more is not better": many,
            "one draft a round is not the best": time(1),
        },
    )


@speculation(
    "study", "1", chip=("B200",), count=(8,), users=(1, 4, 16, 64), drafts=(1, 2, 3), facts=False,
    told=lambda drafts: {"length": acceptance("DeepSeek R1, MTP", drafts)},
)  # fmt: skip
def measured_drafts(chip, count, users, drafts):
    """By the sixth model, how many times as fast is DeepSeek V3 if its own head drafts {drafts} a step, as measured
    for DeepSeek R1 ({length} tokens a step), on {count} × {chip} with {users} users at 2,000 tokens of context?
    Weights fp4, cache fp8, attention in bf16."""
    model, keep = inferlib.load_model("DeepSeek V3"), {"attention": "bf16"}
    at = model, System(chip, count), Workload(users, 2000, "fp4", "fp8")
    plain = decode_step(*at, keep=keep).total
    length = acceptance("DeepSeek R1, MTP", drafts)
    drafted, most = (
        drafted_step(*at, drafted=drafts, length=made, keep=keep).total for made in (length, drafts + 1)
    )
    mistakes = {
        "drafting and verifying take time": length,
        "that many only if every draft were accepted": plain / most,
    }
    return Key(plain / drafted, f"{say(plain, 'ms')} / {say(drafted, 'ms')}", mistakes)


@method("one line", "%", seconds=(0.006, 0.007, 0.008), measured=(0.011, 0.013, 0.016))
def too_fast(seconds, measured):
    """A model says {seconds:ms} for a step that was measured at {measured:ms}. By how many per cent of the
    measurement is the model too fast?"""
    short = 1 - seconds / measured
    mistakes = {
        "of the measurement, not of the prediction": measured / seconds - 1,
        "that is what the model has; how much is missing?": seconds / measured,
    }
    return Key(short, f"({say(measured, 'ms')} - {say(seconds, 'ms')}) / {say(measured, 'ms')}", mistakes)


@method("one line", "ms", made=(800, 1500, 2400, 4000), batch=(8, 16, 32, 64, 128))
def whose_tokens(made, batch):
    """A system prints {made} tokens a second for {batch} users together. How long does one of them wait from token
    to token?"""
    time = batch / made
    mistakes = {"that counts the tokens of all users as one's": time / batch}
    return Key(time, f"{batch} / {made:,} tokens/s", mistakes)


@method(
    "short", "%", model=c.DENSE, chip=c.CHIPS, count=(4, 8), batch=(4, 8, 16, 32, 64),
    context=(4096, 8192, 16384), measured=(0.015, 0.02, 0.03, 0.04),
    where=lambda model, chip, count, batch, context, measured: c.all_fits(model, chip, count, batch,
        context) and 0.25 < c.bound(model, chip, count, batch, context).total / measured < 0.9,
)  # fmt: skip
def share_of_bandwidth(model, chip, count, batch, context, measured):
    """{count} × {chip} decode {batch} sequences of {context} tokens with {model} in 16 bits, and a step is measured
    at {measured:ms}. Which share of the memory bandwidth is that?"""
    t = c.bound(model, chip, count, batch, context).terms
    reading = t["weights"] + t["cache"]
    worked = f"({say(t['weights'], 'ms')} + {say(t['cache'], 'ms')}) / {say(measured, 'ms')}"
    mistakes = {
        "caches are read as well": t["weights"] / measured,
        "the weights are read as well": t["cache"] / measured,
        "that is above what was measured, over what is possible: turn it round": measured / reading,
        "a cache is kept for each key/value head": (t["weights"] + c.groups(model) * t["cache"]) / measured,
    }
    return Key(reading / measured, worked, mistakes)


@method(
    "short", "ms", least=(0.003, 0.005, 0.007, 0.012), layers=(32, 64, 80, 126), count=(4, 8), share=(70, 87),
    layer=(26e-6, 46e-6), wait=(3e-6, 3.6e-6),
)  # fmt: skip
def parts_of_step(least, layers, count, share, layer, wait):
    """How long does a step take whose least time is {least:ms}, for a model of {layers} layers on {count} chips?
    (Its kernels reach {share} % of the bandwidth; the kernels of a layer start in {layer:us} together; an
    all-reduce takes {wait:us}, and a layer has two.)"""
    busy, starts, waits = 100 * least / share, layers * layer, 2 * layers * wait
    layered = f"{layers} × {say(layer, 'us')} + 2 × {layers} × {say(wait, 'us')}"
    mistakes = {
        "only a share of the bandwidth is reached": least + starts + waits,
        "the least time counts all chips already": busy / count + starts + waits,
        "kernels also take time to start": busy + waits,
        "chips also wait for one another": busy + starts,
    }
    return Key(busy + starts + waits, f"{say(least, 'ms')} / {share} % + {layered}", mistakes)


@method(
    "short", "1",
    what=("the memory bandwidth is doubled", "the number of chips is doubled", "weights go from 16 bits to 8"),
    context=(1024, 4096, 16384), model=("Llama 3 70B",), chip=("H100 SXM",),
)  # fmt: skip
def what_if(what, context, model, chip):
    """In the running question (Llama 3 70B in 16 bits on eight H100s, 32 users), with {context} tokens of context,
    {what}. By the bound of first principles, how many times as fast is a step?"""
    chip = chip.replace(memory_capacity=None)
    wide = chip.replace(memory_bandwidth=2 * chip.memory_bandwidth)
    at, n = wide if "bandwidth" in what else chip, 16 if "chips" in what else 8
    changed = c.bound(model, at, n, 32, context, "fp8" if "bits" in what else "bf16").total
    before = c.bound(model, chip, 8, 32, context).total
    mistakes = {
        "weights are halved, caches are not": 2 if "bits" in what else 0,
        "nothing else binds then": 0 if "bits" in what else 1,
    }
    return Key(before / changed, f"{say(before, 'ms')} / {say(changed, 'ms')}", mistakes)


@method(
    "study", "%", model=("Llama 3 70B", "Qwen2.5 72B"), chip=("H100 SXM", "H200"), count=(4, 8),
    batch=(8, 16, 32), context=(1000, 2000, 4000), measured=(0.024, 0.028, 0.032),
    where=lambda model, chip, count, batch, context: 1.25 * model.bytes_held(batch, context) < count *
        chip.memory_capacity,
)  # fmt: skip
def sixth_model(model, chip, count, batch, context, measured):
    """A measurement of {model} in 16 bits on {count} × {chip} says {measured:ms} a step, {batch} users at {context}
    tokens of context. By how many per cent of the measurement is the sixth model below it?"""
    found = tokenprice.ask(model, System(chip, count), batch=batch, context=context, weights="bf16").seconds
    bound = c.bound(model, chip, count, batch, context).total
    worked = f"({say(measured, 'ms')} - {say(found, 'ms')}) / {say(measured, 'ms')}"
    mistakes = {
        "that is the bound of first principles": 1 - bound / measured,
        "of the measurement, not of the prediction": measured / found - 1,
        "that is what the model has; how much is missing?": found / measured,
    }
    return Key(1 - found / measured, worked, mistakes)
