"""Prompts, cost and method: from a step to a request, and to a claim about it."""

from functools import partial

import tokenprice
from book.teaching.problems import choices as c
from book.teaching.problems.bank import Key, in_sums as say, problem
from inferlib import System, principles
from inferlib.units import factor
from tokenprice import prefill, request

prompts, cost, method = (partial(problem, topic) for topic in ("prompts", "cost", "method"))


def has_room(model, chip, count, users, tokens, answer):
    """Whether caches fit beside 16-bit weights with a quarter to spare."""
    return c.all_fits(model, chip, count, users, tokens + answer, spare=1.25)


def served(model, chip, count, users, tokens, answer):
    """What the kernel model says of such requests, with weights in 16 bits."""
    work = {"prompt": tokens, "output": answer, "users": users, "weights": "bf16"}
    return tokenprice.ask(model, System(chip, count), **work).request


SERVED = {
    "model": ("Llama 3 70B", "Qwen2.5 72B", "Qwen3 32B"), "chip": ("H100 SXM", "H200", "B200"), "count": (4, 8),
    "users": (8, 16, 32), "tokens": (2000, 4000), "answer": (300, 500), "where": has_room,
}  # fmt: skip
HOUR = factor("h", "s")


@prompts("one line", "TFLOP")
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


@prompts("short", "s", share=(50, 60, 70), where=c.weights_fit)
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


@prompts("short", "ms")
def prompts_of_others(users, answer, reading):
    """{users} users share a machine; each asks again as soon as an answer of {answer} tokens is done. Reading a
    prompt takes {reading:ms}, during which nobody gets a token. How much does a token wait for prompts of others,
    on average?"""
    wait = prefill.prefill_interference(users, answer, reading)
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
    {answer}. How long does the first token take by the kernel model?"""
    asked = served(model, chip, count, users, tokens, answer)
    return Key(
        asked.ttft,
        f"The prompt alone takes {say(asked.prompt.total, 's')}, a step {say(asked.step.total, 's')}; those "
        f"that come together, a second step and the way in and out make it {say(asked.ttft, 's')}.",
        {
            "other prompts are ahead of yours": asked.prompt.total + asked.step.total,
            "if everybody had to wait for everybody else": users * asked.prompt.total,
            "that is the time between tokens, not before the first": asked.tpot,
        },
    )


@cost("one line", "usd")
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
    dollars = request.machine_cost(1, 1, full, share / 100)
    mistakes = {
        "idle hours make a token cost more: divide": full * share / 100,
        "divide by the part that is used, not by the idle part": full / (1 - share / 100),
    }
    return Key(dollars, f"{say(full, 'usd')} / {share} %", mistakes)


@cost("short", "usd", context=(1024, 4096, 16384), where=c.all_fits)
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


@cost("short", "usd", tokens=(2000, 4000, 8000))
def price_of_question(chip, count, tokens, reading):
    """Reading a prompt of {tokens} tokens takes {reading:ms} of a machine of {count} × {chip}, which does nothing
    else meanwhile. What does a million tokens of question cost at the catalogue's price?"""
    dollars = principles.cost_per_million(reading, tokens, count, chip.price)
    worked = f"{count} × ${chip.price:g} / 3,600 s × {say(reading, 'ms')} / {tokens:,} × 1,000,000"
    mistakes = {"all chips are paid for": dollars / count, "an hour has 3,600 seconds": 60 * dollars}
    return Key(dollars, worked, mistakes)


@cost("short", "cent", share=(40, 50, 70))
def price_of_request(chip, count, reading, answer, step, users, share):
    """A request's prompt takes {reading:ms} of {count} × {chip} alone; its answer of {answer} tokens takes steps of
    {step:ms} that {users} users share. The machine is used in {share} % of the hours paid for. What does the
    request cost?"""

    def dollars(seconds, used=share / 100):
        return request.machine_cost(seconds, count, chip.price / HOUR, used)

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
    """By the kernel model, what does a million tokens of answer cost: {model} in 16 bits on {count} × {chip} at the
    catalogue's price, {users} users, prompts of {tokens} tokens, answers of {answer}, the machine always busy?"""
    asked = served(model, chip, count, users, tokens, answer)
    dollars, total = asked.per_million["output"], say(asked.step.total, "ms")
    bound = c.bound(model, chip, count, users, tokens + answer / 2)
    waiting, least = (
        principles.cost_per_million(time, users, count, chip.price) for time in (asked.tpot, bound.total)
    )
    mistakes = {
        "that is a million tokens of question": asked.per_million["input"],
        "the wait for prompts of others is paid with those prompts": waiting,
        "that is the bound; kernels, engine and network take their time": least,
        "users share a step": users * dollars,
    }
    worked = f"A step takes {total}: {count} × ${chip.price:g} / 3,600 s × {total} / {users} × 1,000,000"
    return Key(dollars, worked, mistakes)


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
    "short",
    "%",
    batch=(4, 8, 16, 32, 64),
    context=(4096, 8192, 16384),
    measured=(0.015, 0.02, 0.03, 0.04),
    where=lambda model, chip, count, batch, context, measured: (
        c.all_fits(model, chip, count, batch, context)
        and 0.25 < c.bound(model, chip, count, batch, context).total / measured < 0.9
    ),
)
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
    "study",
    "%",
    model=("Llama 3 70B", "Qwen2.5 72B"),
    chip=("H100 SXM", "H200"),
    batch=(8, 16, 32),
    context=(1000, 2000, 4000),
    measured=(0.024, 0.028, 0.032),
    where=partial(c.all_fits, spare=1.25),
)
def kernel_model(model, chip, count, batch, context, measured):
    """A measurement of {model} in 16 bits on {count} × {chip} says {measured:ms} a step, {batch} users at {context}
    tokens of context. By how many per cent of the measurement is the kernel model below it?"""
    found = tokenprice.ask(model, System(chip, count), batch=batch, context=context, weights="bf16").seconds
    bound = c.bound(model, chip, count, batch, context).total
    worked = f"({say(measured, 'ms')} - {say(found, 'ms')}) / {say(measured, 'ms')}"
    mistakes = {
        "that is the bound of first principles": 1 - bound / measured,
        "of the measurement, not of the prediction": measured / found - 1,
        "that is what the model has; how much is missing?": found / measured,
    }
    return Key(1 - found / measured, worked, mistakes)
