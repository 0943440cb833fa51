"""Run an explorer's generated JavaScript, and compare it with Python."""

import json
from functools import cache

import numpy as np
import pytest
from py_mini_racer import MiniRacer

from book.explorer import Choice, Slider, StructureChoice


def run(shown, values):
    """Run the generated JavaScript on given inputs, and return its numbers."""
    state, numbers = shown.state(**values), []
    kinds = {i.name: state[i.name] for i in shown.inputs if isinstance(i, StructureChoice)}
    names, engine = compiled(shown, tuple(kinds.items()))
    for name in names:
        owner = next(
            i for i in shown.inputs if name == i.name or isinstance(i, Choice) and name in i.columns()
        )
        if isinstance(owner, Choice):
            numbers.append(owner.columns()[name][list(owner.options).index(state[owner.name])])
        else:
            numbers.append(owner.taken(state[owner.name]))
    return json.loads(engine.eval(f"JSON.stringify(f(...{json.dumps(numbers)}))"))


@cache
def compiled(shown, kinds):
    """Return the parameter names of the generated function for these kinds, and an engine in which it is ``f``."""
    engine = MiniRacer()
    engine.eval(f"const f = {shown.javascript(**dict(kinds))}")
    return shown.arguments(), engine


def assert_equal(page, library):
    """Assert equal numbers, except where Python refuses to compute, such as layouts that do not fit."""
    assert len(page) == len(library)
    assert any(number is not None for number in library)
    there = [number for number, known in zip(page, library, strict=True) if known is not None]
    assert there == pytest.approx([known for known in library if known is not None], rel=1e-9)


def random_inputs(shown, random):
    """Return random values of all inputs that are valid together."""
    while True:
        values = {}
        for i in shown.inputs:
            if isinstance(i, Slider):
                low, high = i.position(i.low), i.position(i.high)
                raw = float(random.uniform(low, high))
                values[i.name] = i.taken(min(max(10**raw if i.log else raw, i.low), i.high))
            else:
                values[i.name] = str(random.choice(list(i.options)))
        try:
            shown.raw(**values)
        except ValueError:  # not offered, or refused at the door of a record
            continue
        return values


def assert_equal_at_random(shown, draws, seed):
    random = np.random.default_rng(seed)
    for _ in range(draws):
        values = random_inputs(shown, random)
        assert_equal(run(shown, values), shown.raw(**values))
