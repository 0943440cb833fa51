"""Chains: for each session of the course five questions on one machine, each of which uses the previous answer."""

from dataclasses import replace
from math import prod
from random import Random

from book.teaching.problems.bank import BANK, COURSE, Found, drawn, evaluated

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
    names, gives = SESSIONS[session]["chain"], SESSIONS[session].get("gives", {})
    places = {name: f"chain-{session}.{number}" for number, name in enumerate(names, 1)}
    choices, random = COURSE["machine"] | SESSIONS[session]["draws"], Random(f"{student}/chain-{session}")
    for _ in range(1000):
        given, found = drawn(choices, random, draw), []
        for name in names:
            own = {key: given[key] for key in BANK[name].choices}
            also = "" if gives else _use(name, places)
            asked = replace(BANK[name], given=own, within=places[name], also=also)
            if not asked.sensible:
                break
            found.append(asked)
            if name in gives:
                given[gives[name]] = Found(asked.key.value, asked.name)
        if len(found) == len(names):
            return found
    raise LookupError(f"no parameters of chain {session} make sense for {student!r}")


def _use(name, places):
    """Say which earlier answers a question uses."""
    used = dict.fromkeys(
        places[entry] for sums in LEANS.get(name, ()) for _, powers in sums for entry in powers
    )
    return f" Use what you found in {' and '.join(used)}." if used else ""


def follows(asked, links):
    """Return how an answer follows from earlier ones of its chain, in SI: sums of terms, of which the largest counts.

    A term is a factor and earlier answers with their powers, such as ``[2.0, {"chain-1.2": 1}]``.
    """
    place = {link.entry: link.name for link in links}

    def term(formula, powers):
        return [
            float(evaluated(formula, asked.known)),
            {place[entry]: power for entry, power in powers.items()},
        ]

    return [[term(*each) for each in terms] for terms in LEANS.get(asked.entry, ())]


def followed(sums, answers):
    """Return the answer that follows from the student's own earlier answers, which may be wrong.

    ``sums``: from :func:`follows`. ``answers``: own answers in SI, by place.
    """
    return max(
        sum(factor * prod(answers[at] ** power for at, power in powers.items()) for factor, powers in terms)
        for terms in sums
    )
