"""Prompts, cost, energy, speculation and method: from a step to a request, and to a claim about it."""

from functools import partial

import inferlib
from book.problems import choices as c
from book.problems.bank import Key, problem, say
from inferlib import System, Workload, principles
from inferlib.papers import erdil2025
from inferlib.principles import profile_of
from inferlib.serving import energy as power, napkin, prompt, request
from inferlib.serving.speculation import acceptance, drafted_token_time, with_drafts
from inferlib.units import factor

prompts, cost, energy, speculation, method = (
    partial(problem, topic) for topic in ("prompts", "cost", "energy", "speculation", "method")
)
USERS = (8, 16, 32, 64)
STEPS = (12e-3, 16e-3, 20e-3, 25e-3)
READS = (0.08, 0.12, 0.2, 0.3)
SERVED = {
    "model": ("Llama 3 70B", "Qwen2.5 72B", "Qwen3 32B"),
    "chip": ("H100 SXM", "H200", "B200"),
    "count": (4, 8),
}
HOUR = factor("h", "s")


@prompts(
    "one line", "TFLOP",
    "How many TFLOP does reading a prompt of {tokens} tokens take with {model}, attention left out and "
    "the head asked for the last token only?",
    model=c.DENSE, tokens=c.PROMPTS,
)  # fmt: skip
def _(model, tokens):
    parts = model.prefill_flops(tokens)
    work = sum(parts.values()) - parts["scores"] - parts["values"]
    return Key(
        work,
        f"Two FLOP for each of {(work - parts['head']) / 2e9 / tokens:.1f} billion weights in the layers "
        f"and each of "
        f"{tokens:,} tokens, and the head once: {say(work, 'TFLOP')}.",
        {
            "each weight takes a multiplication and an addition": work / 2,
            "six for each weight is training": 3 * work,
            "all tokens of the prompt meet the weights": work / tokens,
        },
    )


@prompts(
    "one line", "1",
    "How many tokens must a prompt have so that one {chip} at its 16-bit peak calculates as long as it "
    "reads the weights of a dense model in {weights}?",
    chip=c.CHIPS, weights=c.FORMATS,
)  # fmt: skip
def _(chip, weights):
    profile = profile_of(inferlib.load_model("Llama 3 70B"), weights)
    tokens, ridge = principles.critical_batch(chip, profile), principles.ridge_point(chip)
    return Key(
        tokens,
        f"All tokens share one reading, as a batch does: {say(ridge, 'FLOP/B')} × {c.bits(weights) / 8:g} "
        f"B / 2 FLOP = "
        f"{tokens:.0f}.",
        {
            "a weight takes two FLOP": 2 * tokens,
            "count the bytes of a weight": ridge
            if weights == "fp8"
            else ridge / 2
            if weights != "bf16"
            else 0,
        },
    )


@prompts(
    "short", "s",
    "{count} × {chip} read a prompt of {tokens} tokens with {model} at {share} % of their 16-bit peak. "
    "How long does the arithmetic take, attention included (each position sees those before it)?",
    model=c.DENSE, chip=c.CHIPS, count=(4, 8), tokens=c.PROMPTS, share=(50, 60, 70),
    where=c.weights_fit,
)  # fmt: skip
def _(model, chip, count, tokens, share):
    work = sum(model.prefill_flops(tokens).values())
    peak = principles.arithmetic_time(chip, work, count)
    time = napkin.attained_time(napkin.Constants(share / 100, 0, 0), peak)
    return Key(
        time,
        f"{say(work, 'TFLOP')} at {share} % of {say(count * chip.flops, 'TFLOP/s')}: {say(time, 's')}.",
        {
            "a share of the peak is reached: divide by it": peak,
            "the time gets longer with a share below one, not shorter": peak * share / 100,
            "a multiplication and an addition are two FLOP; the peak is the dense one": time / 2,
            "the chips share the work": count * time,
        },
    )


@prompts(
    "short", "ms",
    "{users} users share a machine; each asks again as soon as an answer of {answer} tokens is done. "
    "Reading a prompt takes {reading:ms}, during which nobody gets a token. How much does a token wait "
    "for prompts of others, on average?",
    users=USERS, answer=c.ANSWERS, reading=READS,
)  # fmt: skip
def _(users, answer, reading):
    wait = prompt.others_time(users, answer, reading)
    return Key(
        wait,
        f"{users - 1} prompts are read among {answer} tokens: {users - 1} × {say(reading, 'ms')} / "
        f"{answer} = "
        f"{say(wait, 'ms')}.",
        {
            "your own prompt is not one of the others'": wait * users / (users - 1),
            "that is the wait of a whole answer": wait * answer,
            "each of the others sends a prompt": wait / (users - 1),
        },
    )


@prompts(
    "short", "TFLOP",
    "Of a prompt of {tokens} tokens the first {cached} are in the cache already. How many TFLOP does "
    "{model} still have to do (the head for the last token only)?",
    model=c.SMALL, tokens=(64000, 100000), cached=(48000, 32000, 56000),
)  # fmt: skip
def _(model, tokens, cached):
    def whole(n):
        return sum(model.prefill_flops(n).values())

    head = model.prefill_flops(1)["head"]
    work = whole(tokens) - whole(cached) + head
    alone = whole(tokens - cached)
    return Key(
        work,
        f"The whole prompt takes {say(whole(tokens), 'TFLOP')}, what is cached took "
        f"{say(whole(cached), 'TFLOP')}: "
        f"{say(work, 'TFLOP')} are left.",
        {
            "new tokens also look at those in the cache": alone,
            "what is in the cache need not be computed again": whole(tokens),
            "attention grows with the square: do not take a share of the whole": whole(tokens)
            * (1 - cached / tokens),
        },
    )


@prompts(
    "study", "s",
    "{users} users share {count} × {chip} with {model} in 16 bits; prompts of {tokens} tokens, answers of "
    "{answer}. How long does the first token take by the sixth model?",
    **SERVED, users=(8, 16, 32), tokens=(2000, 4000), answer=(300, 500),
    where=lambda model, chip, count, users, tokens, answer: 1.25 * model.bytes_held(users, tokens + answer)
        < count * chip.memory_capacity,
)  # fmt: skip
def _(model, chip, count, users, tokens, answer):
    asked = inferlib.estimate_request(model, System(chip, count), tokens, answer, users)
    return Key(
        asked.first_token,
        f"The prompt alone takes {say(asked.prompt.total, 's')}, a step {say(asked.step.total, 's')}; "
        f"those ahead in the "
        f"queue and the start of the layers make it {say(asked.first_token, 's')}.",
        {
            "other prompts are ahead of yours": asked.prompt.total + asked.step.total,
            "if everybody had to wait for everybody else": users * asked.prompt.total,
            "that is the time between tokens, not before the first": asked.token,
        },
    )


@cost(
    "one line", "usd",
    "A step takes {seconds:ms} on {count} × {chip} and makes one token for each of {batch} users. What do "
    "a million tokens cost at the catalogue's price?",
    chip=c.CHIPS, count=(4, 8), batch=c.BATCHES, seconds=STEPS,
)  # fmt: skip
def _(chip, count, batch, seconds):
    dollars = principles.cost_per_million(seconds, batch, count, chip.price)
    return Key(
        dollars,
        f"{count} × ${chip.price:g} an hour, {say(batch / seconds, '1/s')}: {say(dollars, 'usd')}.",
        {
            "the users share the step": batch * dollars,
            "all chips are paid for": dollars / count,
            "an hour has 3,600 seconds, not 60": 60 * dollars,
        },
    )


@cost(
    "one line", "usd",
    "Answers cost {full:usd} a million tokens on a machine that is always busy. What do they cost if it "
    "is busy in {share} % of the hours that are paid for?",
    full=(0.4, 1.2, 2.5, 3.8), share=(25, 30, 40, 60),
)  # fmt: skip
def _(full, share):
    dollars = request.rent(1, 1, full, share / 100)
    return Key(
        dollars,
        f"{say(full, 'usd')} over {share / 100:g}: {say(dollars, 'usd')}.",
        {
            "idle hours make a token dearer: divide": full * share / 100,
            "divide by the part that is used, not by the idle part": full / (1 - share / 100),
        },
    )


@cost(
    "short", "usd",
    "What do a million tokens of {model} in 16 bits cost at the least on {count} × {chip}, at the "
    "catalogue's price, with {batch} users at {context} tokens of context? (First principles: reading and "
    "calculating overlap.)",
    model=c.DENSE, chip=c.CHIPS, count=(4, 8), batch=c.BATCHES, context=(1024, 4096, 16384),
    where=c.all_fits,
)  # fmt: skip
def _(model, chip, count, batch, context):
    step = c.bound(model, chip, count, batch, context)

    def price(seconds):
        return principles.cost_per_million(seconds, batch, count, chip.price)

    return Key(
        price(step.total),
        f"A step takes {say(step.total, 'ms')} and makes {batch} tokens; {count} chips cost "
        f"${count * chip.price:g} an hour: "
        f"{say(price(step.total), 'usd')}.",
        {
            "the batch shares the weights, so a step makes many tokens": batch * price(step.total),
            "every sequence also reads its cache": price(
                max(step.terms["weights"], step.terms["arithmetic"])
            ),
            "all chips are paid for": price(step.total) / count,
            "a batch shares weights, not caches": price(step.terms["weights"] + step.terms["cache"] / batch),
        },
    )


@cost(
    "short", "usd",
    "Reading a prompt of {tokens} tokens takes {reading:ms} of a machine of {count} × {chip}, which does "
    "nothing else meanwhile. What does a million tokens of question cost at the catalogue's price?",
    chip=c.CHIPS, count=(4, 8), tokens=c.PROMPTS[:3], reading=READS,
)  # fmt: skip
def _(chip, count, tokens, reading):
    dollars = principles.cost_per_million(reading, tokens, count, chip.price)
    return Key(
        dollars,
        f"{count} × ${chip.price:g} an hour for {say(reading, 'ms')}, over {tokens:,} tokens, times a "
        f"million: "
        f"{say(dollars, 'usd')}.",
        {
            "all chips are paid for": dollars / count,
            "an hour has 3,600 seconds": 60 * dollars,
        },
    )


@cost(
    "short", "cent",
    "A request's prompt takes {reading:ms} of {count} × {chip} alone; its answer of {answer} tokens takes "
    "steps of {step:ms} that {users} users share. The machine is used in {share} % of the hours paid for. "
    "What does the request cost?",
    chip=c.CHIPS, count=(4, 8), reading=READS, answer=c.ANSWERS, step=STEPS, users=USERS,
    share=(40, 50, 70),
)  # fmt: skip
def _(chip, count, reading, answer, step, users, share):
    def dollars(seconds, used=share / 100):
        return request.rent(seconds, count, chip.price / HOUR, used)

    seconds = request.machine_time(reading, answer, step, users)
    return Key(
        dollars(seconds),
        f"{say(reading, 'ms')} and {answer} × {say(step, 'ms')} / {users}: {say(seconds, 'ms')} of the "
        f"machine, "
        f"{say(dollars(seconds), 'cent')}.",
        {
            "users share the steps of an answer": dollars(reading + answer * step),
            "a prompt has the machine for itself": dollars((reading + answer * step) / users),
            "idle hours are paid for too": dollars(seconds, 1),
            "a price an hour is not a price a minute": 60 * dollars(seconds),
        },
    )


@cost(
    "study", "usd",
    "By the sixth model, what does a million tokens of answer cost: {model} in 16 bits on {count} × "
    "{chip} at the catalogue's price, {users} users, prompts of {tokens} tokens, answers of {answer}, the "
    "machine always busy?",
    **SERVED, users=(8, 16, 32), tokens=(2000, 4000), answer=(300, 500),
    where=lambda model, chip, count, users, tokens, answer: 1.25 * model.bytes_held(users, tokens + answer)
        < count * chip.memory_capacity,
)  # fmt: skip
def _(model, chip, count, users, tokens, answer):
    asked = inferlib.estimate_request(model, System(chip, count), tokens, answer, users)
    dollars = asked.per_million["output"]
    return Key(
        dollars,
        f"A step takes {say(asked.step.total, 'ms')} and makes {users} tokens: {say(dollars, 'usd')}.",
        {
            "that is a million tokens of question": asked.per_million["input"],
            "the wait for prompts of others is paid with those prompts": principles.cost_per_million(
                asked.token, users, count, chip.price
            ),
            "that is the bound; kernels, engine and network take their time": principles.cost_per_million(
                c.bound(model, chip, count, users, tokens + answer / 2).total, users, count, chip.price
            ),
            "users share a step": users * dollars,
        },
    )


@energy(
    "one line", "W*s",
    "{count} chips draw {watts} W each and make a token for each of {batch} users in {seconds:ms}. How "
    "many joules is that a token?",
    count=(4, 8), watts=(400, 500, 600, 800), batch=c.BATCHES, seconds=STEPS,
)  # fmt: skip
def _(count, watts, batch, seconds):
    joules = power.token_energy(count, watts, seconds, batch)
    return Key(
        joules,
        f"{count} × {watts} W × {say(seconds, 'ms')} / {batch}: {say(joules, 'W*s')}.",
        {"the users share the step": batch * joules, "all chips draw power": joules / count},
    )


@energy(
    "one line", "cent",
    "A token takes {joules} J. What does the electricity of a million tokens cost at {price} cents a "
    "kilowatt-hour?",
    joules=(0.8, 1.5, 2.5, 4.0), price=(8, 10, 15, 20),
)  # fmt: skip
def _(joules, price):
    hours = power.token_energy(1, joules, 1, 1) * 1e6 / factor("kW*h", "W*s")
    cents = hours * price * factor("cent")
    return Key(
        cents,
        f"A million tokens take {joules:g} MJ, {hours:.3g} kWh: {say(cents, 'cent')}.",
        {
            "a kilowatt-hour is 3.6 MJ, not 1 MJ": 3.6 * cents,
            "a kilowatt-hour is 3.6 MJ: a thousand watts, 3,600 seconds": cents * 1000,
        },
    )


@energy(
    "short", "W",
    "How much power does one {chip} draw by the fitted parts ({parts}), if its memory is busy {memory} % "
    "of the time and its arithmetic {arithmetic} %?",
    chip=("H100 SXM", "H200", "B200"), memory=(40, 50, 60), arithmetic=(10, 20, 30),
    told=lambda: {"parts": _parts()},
)  # fmt: skip
def _(chip, memory, arithmetic):
    parts = power.draw()
    drawn = power.chip_draw(parts, chip.power, memory / 100, arithmetic / 100)
    return Key(
        drawn,
        f"{parts.awake:.2f} + {parts.reading:.2f} × {memory / 100:g} + {parts.calculating:.2f} × "
        f"{arithmetic / 100:g} of "
        f"{chip.power:g} W: {say(drawn, 'W')}.",
        {
            "a serving chip draws power while it waits": drawn - parts.awake * chip.power,
            "it draws its rated power only when everything is busy": chip.power,
            "arithmetic draws power too": power.chip_draw(parts, chip.power, memory / 100, 0),
        },
    )


@energy(
    "short", "W*s",
    "{count} × {chip} with {model} in 16 bits run at the bound of first principles, {batch} users with "
    "short contexts: memory is always busy, arithmetic as long as it takes. By the fitted parts "
    "({parts}), how many joules is a token?",
    model=c.DENSE, chip=("H100 SXM", "H200", "B200"), count=(4, 8), batch=(8, 16, 32, 64),
    where=c.weights_fit,
    told=lambda: {"parts": _parts()},
)  # fmt: skip
def _(model, chip, count, batch):
    step = c.bound(model, chip, count, batch, 0)
    busy = step.terms["arithmetic"] / step.total
    drawn = power.chip_draw(power.draw(), chip.power, 1, busy)
    joules = power.token_energy(count, drawn, step.total, batch)
    return Key(
        joules,
        f"A step takes {say(step.total, 'ms')}, arithmetic {100 * busy:.0f} % of it; a chip draws "
        f"{say(drawn, 'W')}: "
        f"{say(joules, 'W*s')}.",
        {
            "the users share the step": batch * joules,
            "all chips draw power": joules / count,
            "the chip draws less than its rated power": joules * chip.power / drawn,
            "a serving chip also draws power only for being awake": joules
            * (1 - power.draw().awake * chip.power / drawn),
        },
    )


@energy(
    "study", "W*s",
    "By the sixth model, how many joules of the chips does a token of answer take: {model} in 16 bits on "
    "{count} × {chip}, {users} users, prompts of {tokens} tokens, answers of {answer}?",
    **SERVED, users=(8, 16, 32), tokens=(2000, 4000), answer=(300, 500),
    where=lambda model, chip, count, users, tokens, answer: 1.25 * model.bytes_held(users, tokens + answer)
        < count * chip.memory_capacity,
)  # fmt: skip
def _(model, chip, count, users, tokens, answer):
    asked = inferlib.estimate_request(model, System(chip, count), tokens, answer, users)
    joules = asked.joules
    return Key(
        joules,
        f"A step takes {say(asked.step.total, 'ms')}; so long {count} chips draw what their memory and "
        f"arithmetic are busy "
        f"for, and {users} tokens share it: {say(joules, 'W*s')}.",
        {
            "users share a step": users * joules,
            "chips do not draw their rated power here": power.token_energy(
                count, chip.power, asked.step.total, users
            ),
            "that is a token of the prompt": asked.prompt_joules,
            "all chips draw power": joules / count,
        },
    )


def _parts():
    parts = power.draw()
    return (
        f"{parts.awake:.2f} of the rated power always, {parts.reading:.2f} while memory is busy, "
        f"{parts.calculating:.2f} while arithmetic is"
    )


@speculation(
    "one line", "1",
    "A round drafts {drafts} tokens, each accepted with probability {chance} if those before it are. How "
    "many tokens does it yield on average, with the one that the verification itself adds?",
    drafts=(2, 3, 4, 5), chance=(0.6, 0.7, 0.8),
)  # fmt: skip
def _(drafts, chance):
    made = erdil2025.expected_tokens(chance, drafts + 1)
    return Key(
        made,
        f"1 + {chance} + {chance}² + ... up to the power {drafts}: {made:.2f}.",
        {
            "the verification adds a token of its own": made - 1,
            "a draft counts only if those before it were accepted": drafts * chance + 1,
            "not all drafts are accepted": drafts + 1,
        },
    )


@speculation(
    "one line", "1",
    "If each draft is accepted with probability {percent} %, how many tokens can a round yield at the "
    "very most, on average, however many are drafted?",
    percent=(50, 60, 70, 75, 80, 85, 90),
)  # fmt: skip
def _(percent):
    most = erdil2025.expected_tokens(percent / 100, 10_000)
    return Key(
        most,
        f"The series ends at 1 / (1 - {percent / 100:g}): {most:.3g}.",
        {
            "the verification adds a token of its own": most - 1,
            "that is one over the probability to be accepted": 100 / percent,
        },
    )


@speculation(
    "short", "ms",
    "A head drafts {drafts} tokens one after another, {draft:ms} each; verifying all of them takes "
    "{verify:ms}. A step yields {length} tokens. How long is it from token to token?",
    drafts=(2, 3, 4), draft=(0.0005, 0.001, 0.002), verify=(0.01, 0.014, 0.02), length=(1.9, 2.4, 2.8),
)  # fmt: skip
def _(drafts, draft, verify, length):
    time = drafted_token_time(verify, drafts, draft, length)
    return Key(
        time,
        f"({say(verify, 'ms')} + {drafts} × {say(draft, 'ms')}) / {length}: {say(time, 'ms')}.",
        {
            "drafts are made one after another": drafted_token_time(verify, 1, draft, length),
            "not every draft is accepted": drafted_token_time(verify, drafts, draft, drafts + 1),
            "drafting takes time too": drafted_token_time(verify, 0, draft, length),
            "all drafts are verified in one step": (drafts * (verify + draft)) / length,
        },
    )


@speculation(
    "short", "1",
    "A step takes {step:ms} without drafting. With {drafts} drafts of {draft:ms} each, accepted with "
    "probability {chance}, verification takes a tenth longer than a step. How many times as fast are "
    "tokens?",
    step=(0.01, 0.015, 0.025), drafts=(2, 3, 4, 5), draft=(0.0005, 0.001, 0.002), chance=(0.6, 0.7, 0.8),
)  # fmt: skip
def _(step, drafts, draft, chance):
    def gain(length, verify=1.1 * step):
        return step / drafted_token_time(verify, drafts, draft, length)

    made = erdil2025.expected_tokens(chance, drafts + 1)
    return Key(
        gain(made),
        f"A round takes {say(1.1 * step + drafts * draft, 'ms')} and yields {made:.2f} tokens: "
        f"{gain(made):.2f} times.",
        {
            "drafting and verifying take time": made,
            "the verification adds a token of its own": gain(made - 1),
            "not all drafts are accepted": gain(drafts + 1),
            "the verification takes longer than a step": gain(made, step),
        },
    )


@speculation(
    "short", "1",
    "Each draft takes {percent} % of a step and is accepted with probability {chance}; verifying takes "
    "one step. With how many drafts a round are tokens fastest?",
    percent=(2, 4, 6, 10), chance=(0.6, 0.7, 0.8, 0.9),
)  # fmt: skip
def _(percent, chance):
    def time(drafts, own=1):
        made = erdil2025.expected_tokens(chance, drafts + own)
        return drafted_token_time(1, drafts, percent / 100, made)

    best = min(range(1, 60), key=time)
    return Key(
        best,
        f"With {best} drafts a token takes {time(best):.3f} of a step; with one more {time(best + 1):.3f}.",
        {
            "the verification adds a token of its own": min(range(1, 60), key=lambda drafts: time(drafts, 0)),
            "a later draft is accepted only if all before it are: more is not better": round(100 / percent),
        },
    )


@speculation(
    "study", "1",
    "By the sixth model, how many times as fast is DeepSeek V3 with {drafts} drafts of its own head, as "
    "measured for DeepSeek R1 ({length} tokens a step), on {count} × {chip} with {users} users at 2,000 "
    "tokens of context? Weights fp4, cache fp8, attention in bf16.",
    chip=("B200",), count=(8,), users=(1, 4, 16, 64), drafts=(1, 2, 3), facts=False,
    told=lambda drafts: {"length": acceptance("DeepSeek R1, MTP", drafts)},
)  # fmt: skip
def _(chip, count, users, drafts):
    model, keep = inferlib.load_model("DeepSeek V3"), {"attention": "bf16"}
    at = model, System(chip, count), Workload(users, 2000, "fp4", "fp8")
    plain = inferlib.serving.decode_step(*at, keep=keep).total
    length = acceptance("DeepSeek R1, MTP", drafts)
    drafted = with_drafts(*at, drafted=drafts, length=length, keep=keep)
    return Key(
        plain / drafted,
        f"{say(plain, 'ms')} a token without drafts, {say(drafted, 'ms')} with them: {plain / drafted:.2f} "
        f"times.",
        {
            "drafting and verifying take time": length,
            "that many only if every draft were accepted": plain
            / with_drafts(*at, drafted=drafts, length=drafts + 1, keep=keep),
        },
    )


@method(
    "one line", "%",
    "A model says {seconds:ms} for a step that was measured at {measured:ms}. By how many per cent of the "
    "measurement is the model too fast?",
    seconds=(0.006, 0.007, 0.008), measured=(0.011, 0.013, 0.016),
)  # fmt: skip
def _(seconds, measured):
    short = 1 - seconds / measured
    return Key(
        short,
        f"{say(measured - seconds, 'ms')} are missing of {say(measured, 'ms')}: {100 * short:.0f} %.",
        {
            "of the measurement, not of the prediction": measured / seconds - 1,
            "that is what the model has; how much is missing?": seconds / measured,
        },
    )


@method(
    "one line", "ms",
    "A system prints {made} tokens a second for {batch} users together. How long does one of them wait "
    "from token to token?",
    made=(800, 1500, 2400, 4000), batch=(8, 16, 32, 64, 128),
)  # fmt: skip
def _(made, batch):
    time = batch / made
    return Key(
        time,
        f"Each gets {made / batch:.3g} tokens a second: {say(time, 'ms')}.",
        {"that counts the tokens of all users as one's": time / batch},
    )


@method(
    "short", "%",
    "{count} × {chip} decode {batch} sequences of {context} tokens with {model} in 16 bits, and a step is "
    "measured at {measured:ms}. Which share of the memory bandwidth is that?",
    model=c.DENSE, chip=c.CHIPS, count=(4, 8), batch=(4, 8, 16, 32, 64), context=(4096, 8192, 16384),
    measured=(0.015, 0.02, 0.03, 0.04),
    where=lambda model, chip, count, batch, context, measured: c.all_fits(model, chip, count, batch,
        context) and 0.25 < c.bound(model, chip, count, batch, context).total / measured < 0.9,
)  # fmt: skip
def _(model, chip, count, batch, context, measured):
    t = c.bound(model, chip, count, batch, context).terms
    reading = t["weights"] + t["cache"]
    return Key(
        reading / measured,
        f"Weights and caches take {say(reading, 'ms')} at the full bandwidth: "
        f"{100 * reading / measured:.0f} %.",
        {
            "caches are read as well": t["weights"] / measured,
            "the weights are read as well": t["cache"] / measured,
            "that is above what was measured, over what is possible: turn it round": measured / reading,
            "a cache is kept for each key/value head": (t["weights"] + c.groups(model) * t["cache"])
            / measured,
        },
    )


@method(
    "short", "ms",
    "On a napkin, how long does a step take whose least time is {least:ms}, for a model of {layers} "
    "layers on {count} chips? (Share of the peaks {share}, {layer:us} a layer, {hop:us} for each further "
    "chip and all-reduce, two all-reduces a layer.)",
    least=(0.003, 0.005, 0.007, 0.012), layers=(32, 64, 80, 126), count=(2, 4, 8),
    told=lambda: {"share": f"{napkin.fitted().share:.3g}", "layer": napkin.fitted().layer, "hop":
        napkin.fitted().hop},
)  # fmt: skip
def _(least, layers, count):
    three = napkin.fitted()
    time = napkin.napkin_time(three, least, 0, layers, count)
    busy = napkin.attained_time(three, least)
    return Key(
        time,
        f"{say(busy, 'ms')} at the share that is reached, {say(napkin.launch_time(three, layers), 'ms')} "
        f"for the layers, "
        f"{say(napkin.waiting_time(three, layers, count), 'ms')} for all-reduces: {say(time, 'ms')}.",
        {
            "only a share of the peaks is reached": time - busy + least,
            "one chip waits for nobody: count the further ones": napkin.napkin_time(
                three, least, 0, layers, count + 1
            ),
            "layers also take time that no bytes explain": time - napkin.launch_time(three, layers),
            "chips also wait for one another": time - napkin.waiting_time(three, layers, count),
        },
    )


@method(
    "short", "1",
    "Of the running question (Llama 3 70B in 16 bits on eight H100s, 32 users) somebody doubles the "
    "{what}. By the bound of first principles, how many times as fast is a step of {context} tokens of "
    "context?",
    what=("memory bandwidth", "number of chips", "bits a weight saves, by going to 8"),
    context=(1024, 4096, 16384),
)  # fmt: skip
def _(what, context):
    model, chip = (
        inferlib.load_model("Llama 3 70B"),
        inferlib.load_chip("H100 SXM").replace(memory_capacity=None),
    )
    wide = chip.replace(memory_bandwidth=2 * chip.memory_bandwidth)
    changed = {
        "memory bandwidth": lambda: c.bound(model, wide, 8, 32, context),
        "number of chips": lambda: c.bound(model, chip, 16, 32, context),
    }.get(what, lambda: c.bound(model, chip, 8, 32, context, "fp8"))().total  # fmt: skip
    before = c.bound(model, chip, 8, 32, context).total
    return Key(
        before / changed,
        f"{say(before, 'ms')} before, {say(changed, 'ms')} after: {before / changed:.2f} times.",
        {
            "weights are halved, caches are not": 2 if "bits" in what else 0,
            "nothing else binds then": 0 if "bits" in what else 1,
        },
    )


@method(
    "study", "%",
    "A measurement of {model} in 16 bits on {count} × {chip} says {measured:ms} a step, {batch} users at "
    "{context} tokens of context. By how many per cent of the measurement is the sixth model below it?",
    model=("Llama 3 70B", "Qwen2.5 72B"), chip=("H100 SXM", "H200"), count=(4, 8), batch=(8, 16, 32),
    context=(1000, 2000, 4000), measured=(0.024, 0.028, 0.032),
    where=lambda model, chip, count, batch, context: 1.25 * model.bytes_held(batch, context) < count *
        chip.memory_capacity,
)  # fmt: skip
def _(model, chip, count, batch, context, measured):
    found = inferlib.estimate(model, System(chip, count), Workload(batch, context)).seconds
    bound = c.bound(model, chip, count, batch, context).total
    return Key(
        1 - found / measured,
        f"The sixth model says {say(found, 'ms')}: {100 * (1 - found / measured):.0f} % below.",
        {
            "that is the bound of first principles": 1 - bound / measured,
            "of the measurement, not of the prediction": measured / found - 1,
            "that is what the model has; how much is missing?": found / measured,
        },
    )
