"""Chains: for each session of the course five questions on one machine, each of which uses the previous answer."""

from dataclasses import replace
from math import prod
from random import Random

from book.teaching.problems.bank import BANK, COURSE, Found, drawn
from book.teaching.problems.quantities import bound
from inferlib.papers import erdil2025

# The inputs of a later question are earlier answers, and the text says which.
OTHER_PROMPTS = {"prompts-2": "reading"}
LEANS = COURSE["leans"]
SESSIONS = {int(number): session for number, session in COURSE["session"].items()}


def chain(student, session, draw=None):
    """Five linked problems of one student, all on the same machine.

    ``session``: of the course. ``draw``: as :meth:`Problem.asked` takes it.

    Examples
    --------
    >>> [asked.entry for asked in chain("Ada", 1)][:2]
    ['memory-1', 'memory-2']
    """
    if session not in SESSIONS:
        raise LookupError(f"session is {session!r}, but must be one of {', '.join(map(str, SESSIONS))}")
    names, choices = SESSIONS[session]["chain"], COURSE["machine"] | SESSIONS[session]["draws"]
    random = Random(f"{student}/chain-{session}")
    for _ in range(1000):
        given, found = drawn(choices, random, draw), []
        for name in names:
            problem = BANK[name]
            own = {key: given[key] for key in problem.choices}
            place = f"chain-{session}.{1 + len(found)}"
            asked = replace(problem, given=own, within=place, also=_use(name, session))
            if not asked.sensible:
                break
            found.append(asked)
            if name in OTHER_PROMPTS:
                given[OTHER_PROMPTS[name]] = Found(asked.key.value, asked.name)
        if len(found) == len(names):
            return found
    raise LookupError(f"no parameters of chain {session} make sense for {student!r}")


def _use(name, session):
    """Say which earlier answers a question uses."""
    links = SESSIONS[session]["chain"]
    places = " and ".join(f"chain-{session}.{1 + links.index(before)}" for before in LEANS.get(name, ()))
    return f" Use what you found in {places}." if places else ""


def follows(asked, links):
    """Return how an answer follows from earlier ones of its chain, in SI: sums of terms, of which the largest counts.

    A term is a factor and earlier answers with their powers, such as ``[2.0, {"chain-1.2": 1}]``.
    """
    right = {link.entry: link.key.value for link in links}
    place = {link.entry: link.name for link in links}
    for name, value in asked.given.items():
        if isinstance(value, Found):
            once, twice = (asked.solve(**asked.given | {name: times * value}).value for times in (1, 2))
            return [[[(twice - once) / value, {value.place: 1}], [2 * once - twice, {}]]]
    if asked.entry == "arithmetic-5":
        t = bound(**asked.given).terms
        read, work = t["weights"] + t["cache"], t["arithmetic"]
        pairs = [("memory-2", read), ("arithmetic-4", work)]
        return [[[1, {place[name]: 1}], [all_of_it - right[name], {}]] for name, all_of_it in pairs]
    if asked.entry == "network-5":
        toy, at = erdil2025.load_model(asked.given["model"]), place["network-4"]
        reading = erdil2025.weight_time(toy, asked.given["chip"], 1)
        hops = 2 * erdil2025.network_time(toy, asked.given["hop"])
        return [[[reading, {at: -1}], [hops, {at: 0.5}], [-hops, {}]]]
    powers = LEANS.get(asked.entry, {})
    share = prod(right[name] ** power for name, power in powers.items())
    whole = share / asked.given["context"] if asked.entry == "memory-4" else asked.key.value
    return [[[whole / share, {place[name]: power for name, power in powers.items()}]]] if powers else []


def followed(sums, answers):
    """Return the answer that follows from the student's own earlier answers, which may be wrong.

    ``sums``: from :func:`follows`. ``answers``: own answers in SI, by place.
    """
    return max(
        sum(factor * prod(answers[at] ** power for at, power in powers.items()) for factor, powers in terms)
        for terms in sums
    )
