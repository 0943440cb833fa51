"""Prompts and cost: from a step to a request."""

from functools import partial

from book.teaching.problems import choices as c
from book.teaching.problems.bank import Key, in_sums as say, problem
from inferlib import principles
from inferlib.units import factor
from tokenprice import prefill, request

prompts, cost = (partial(problem, topic) for topic in ("prompts", "cost"))


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


@cost("one line", "usd")
def price_of_step(chip, count, batch, seconds):
    """A step takes {seconds:ms} on {count} × {chip} and makes one token for each of {batch} users. What do a
    million tokens cost at the price of an hour?"""
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
    """What do a million tokens of {model} in 16 bits cost at the least on {count} × {chip}, at the price of
    an hour, with {batch} users at {context} tokens of context? (First principles: reading and calculating overlap.)"""
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
    else meanwhile. What does a million tokens of question cost at the price of an hour?"""
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
