"""Chains: for each session of the course five questions on one machine, where each uses what the last one found."""

from dataclasses import replace
from random import Random

from book.teaching.problems.bank import BANK, Found, drawn
from inferlib import validation

# What a student's machine and work are drawn from, unless the chain says otherwise.
USUAL = {
    "model": ("Llama 3 70B", "Qwen2.5 72B", "Mistral Large 2"),
    "chip": ("H100 SXM", "H200", "B200"),
    "count": (4, 8),
    "weights": ("bf16",),
}
DEEP = {"model": ("Llama 3 70B", "Llama 3.1 405B", "Mistral Large 2"), "count": (8,)}
# Problems of the bank in order, and what else is drawn.
CHAINS = {
    1: (
        ("memory-1", "memory-2", "arithmetic-1", "arithmetic-5", "arithmetic-6"),
        {"batch": (64, 128), "context": (1024, 2048)},
    ),
    2: (
        ("cache-1", "memory-3", "memory-5", "cache-4", "cache-5"),
        {"context": (4096, 8192), "batch": (8, 16)},
    ),
    3: (
        ("memory-2", "network-2", "network-3", "network-4", "network-5"),
        DEEP | {"latency": (3e-6, 5e-6), "hop": (0.5e-6, 1e-6, 2e-6)},
    ),
    4: (
        ("memory-2", "collectives-3", "pipeline-1", "pipeline-3", "pipeline-4"),
        DEEP | {
            "tokens": (256, 1024), "stages": (2, 4), "batch": (16, 32, 64), "latency": (5e-6, 10e-6),
            "context": (2048, 4096),
        },
    ),
    5: (
        ("prompts-1", "prompts-2", "prompts-3", "cost-4", "cost-5"),
        {
            "tokens": (2000, 4000), "share": (50, 70), "users": (16, 32), "answer": (300, 500),
            "step": (16e-3, 20e-3),
        },
    ),
    6: (
        ("arithmetic-6", "method-1", "method-3", "cost-3", "method-4"),
        {
            "model": ("Llama 3 70B", "Qwen2.5 72B"), "chip": ("H100 SXM", "H200"), "batch": (8, 16, 32),
            "context": (1024, 2048, 4096), "measured": (0.024, 0.028, 0.032),
        },
    ),
}  # fmt: skip
# What a later question is given is an earlier one's answer, and the text says which.
OTHER_PROMPTS = {"prompts-2": "reading", "arithmetic-6": "seconds"}
# A later answer is an earlier one times something else, or something else over it.
LEANS = {
    "arithmetic-5": ("arithmetic-1", 1), "cache-4": ("cache-1", 1), "cache-5": ("cache-1", -1),
    "network-3": ("network-2", -1), "pipeline-1": ("memory-2", 1), "method-3": ("arithmetic-6", 1),
    "cost-3": ("arithmetic-6", 1),
}  # fmt: skip


def chain(student, session):
    """Five linked problems of one student, all on the same machine.

    ``session``: of the course.

    Examples
    --------
    >>> [asked.entry for asked in chain("Ada", 1)][:2]
    ['memory-1', 'memory-2']
    """
    if session not in CHAINS:
        raise LookupError(f"session is {session!r}, but must be one of {', '.join(map(str, CHAINS))}")
    names, choices = CHAINS[session]
    random = Random(f"{student}/chain-{session}")
    for _ in range(1000):
        given, found = drawn(USUAL | choices, random), []
        for name in names:
            problem = BANK[name]
            own = {key: given[key] for key in problem.choices if key in given}
            place = f"chain-{session}.{1 + len(found)}"
            asked = replace(problem, given=own, within=place, also=_use(name, session))
            if len(own) < len(problem.choices) or not asked.sensible:
                break
            found.append(asked)
            if name in OTHER_PROMPTS:
                given[OTHER_PROMPTS[name]] = Found(asked.key.value, asked.name)
        if len(found) == len(names):
            return found
    raise LookupError(f"no parameters of chain {session} make sense for {student!r}")


def _place(name, session):
    """Where a problem of the bank stands in the chain of a session."""
    return f"chain-{session}.{1 + CHAINS[session][0].index(name)}"


def _use(name, session):
    """What a question says of the earlier one that it leans on."""
    return f" Use what you found in {_place(LEANS[name][0], session)}." if name in LEANS else ""


def followed(asked, links, answers):
    """The answer of who goes on rightly from an own earlier answer, which may be wrong; None where nothing leads on.

    ``asked``: a question of a chain. ``links``: all of its chain. ``answers``: own answers in SI by place.
    """
    own = {key: Found(answers[value.place], value.place) for key, value in asked.given.items()
           if isinstance(value, Found) and value.place in answers}  # fmt: skip
    if own:
        return asked.solve(**asked.given | own).value
    before, power = LEANS.get(asked.entry, ("", 0))
    for link in links:
        if link.entry == before and link.name in answers:
            return asked.key.value * (answers[link.name] / link.key.value) ** power
    return None


def find(student, name):
    """One problem of a student: of the bank, or of a chain, such as ``"chain-1.2"``."""
    links = {f"chain-{session}.{k}": (session, k - 1) for session in CHAINS for k in range(1, 6)}
    if name in links:
        session, at = links[name]
        return chain(student, session)[at]
    return BANK[validation.one_of("problem", name, [*BANK, *links])].asked(student)
