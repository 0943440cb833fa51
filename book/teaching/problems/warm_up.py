"""Warm-up questions without paper: four on each session of the course, with which the next one begins.

Their texts are in ``warm_up.toml``; here is a function of the same name for each question with computed numbers. If its
answer is a number, too, that is ``answer``.
"""

from dataclasses import replace
from functools import cache, partial

from book import stored
from book.serving import tables
from book.teaching.problems.bank import BANK, Choice, Key, Problem, enter, with_numbers
from inferlib import load_chip, load_model, principles
from inferlib.papers import erdil2025, liminal2025, pope2022
from tokenprice import prefill

NUMBERS = {}


def numbers(function):
    """Register a function that returns the numbers in a question's texts by name."""
    NUMBERS[function.__name__] = cache(function)


@numbers
def idle_arithmetic():
    intensity = principles.decode_intensity(principles.profile_of(load_model("Llama 3 70B")), 1, 1)
    return {"busy": 100 * intensity / principles.ridge_point(load_chip("H100 SXM"))}


@numbers
def experts_held():
    model = load_model("DeepSeek V3")
    every, active, looked_up = (
        model.n_params / 1e9,
        model.n_active / 1e9,
        model.vocab_size * model.d_model / 1e9,
    )
    return {
        "all": every,
        "active": active,
        "met": active - looked_up,
        "twice": 2 * every,
        "eighth": every / 8,
    }


@numbers
def bandwidth_or_hop():
    model, chip = erdil2025.load_model("Llama 3 70B"), erdil2025.load_chip("H100")
    wide = chip.replace(memory_bandwidth=2 * chip.memory_bandwidth)
    before = erdil2025.minimum_latency(model, chip, 1e-6)
    return {
        "hop": before / erdil2025.minimum_latency(model, chip, 5e-7),
        "read": before / erdil2025.minimum_latency(model, wide, 1e-6),
    }


@numbers
def weights_gathered():
    model = pope2022.load_model()
    tokens = pope2022.switch_to_x(model, pope2022.load_mesh(64))
    return {"tokens": tokens, "hidden": model.d_ff, "share": tokens / 64}


@numbers
def cut_both_ways():
    model, chip = pope2022.load_model("PaLM 540B"), pope2022.load_chip()
    few, many = (pope2022.best_ws2d_time(model, chip, chips, 512) for chips in (64, 256))
    return {"falls": many / few, "area": (many / few) ** 2, "grows": few / many}


@numbers
def who_gathers():
    return {"tokens": pope2022.switch_to_x(pope2022.load_model("PaLM 540B"), pope2022.load_mesh(64))}


@numbers
def copies_of_cache():
    model = pope2022.load_model(load_model("Llama 3 70B"))
    times = pope2022.cache_over_heads(model, 64, 64, 4096) / pope2022.cache_over_batch(model, 64, 64, 4096)
    return {"answer": times, "heads": model.kv_heads, "one": 1.0, "chips": 64.0}


@numbers
def ceiling():
    model = liminal2025.load_model("Llama3-70B")
    each, one = liminal2025.collectives(model, 128), liminal2025.collective_latency(128)
    ideal, answer = liminal2025.IDEAL, 1 / (each * one)
    return {
        "answer": answer, "collectives": each, "collective": one, "once_a_layer": answer * each / model.layers,
        "two_a_layer": 2 * answer, "ideal": ideal, "ideally": 1 / (each * ideal),
    }  # fmt: skip


@numbers
def first_token():
    return {"request": tables.asked()}


@numbers
def prompts_of_others():
    request = tables.asked()
    prompt, tokens = request.prompt.total, request.output_tokens
    wait = prefill.prefill_interference(request.concurrency, tokens, prompt)
    return {
        "answer": wait,
        "prompt": prompt,
        "whole": wait * tokens,
        "single": wait / (request.concurrency - 1),
    }


@numbers
def answer_over_question():
    paid = tables.asked().per_million
    times = paid["output"] / paid["input"]
    return {"times": times, "inverse": 1 / times, "single": 32 * times, **paid}


def solved(question, numbers):
    """Return the key of a question with its numbers in the texts."""
    found = numbers()
    told = partial(with_numbers, **found)
    worked = told(question["worked"])
    if "unit" in question:
        mistakes = {told(hint): found[name] for hint, name in question["mistakes"].items()}
        return Key(found["answer"], worked, mistakes)
    wrong = {told(option): told(reason) for option, reason in question["wrong"].items()}
    return Choice(told(question["right"]), worked, wrong)


TEXTS = stored.toml("teaching/problems/warm_up.toml")
for again in TEXTS["again"]:
    same = {name: (value,) for name, value in again["given"].items()}
    place = {"place": again["place"], "session": again["session"]}
    enter(replace(BANK[again["problem"]], level="in the head", choices=same, **place))
for name, question in TEXTS["question"].items():
    found = NUMBERS.get(name, lambda: {})
    enter(
        Problem(
            "", question["topic"], "in the head", question.get("unit"), question["asks"], {},
            partial(solved, question, found), told=found, place=question["place"], session=question["session"],
        )
    )  # fmt: skip
