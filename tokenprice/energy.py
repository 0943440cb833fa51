"""Energy: what part of its rated power a chip draws while it reads, calculates and waits."""

from functools import cache, partial

from inferlib import validation
from inferlib.equation import Record, equation, frozen, quantity
from inferlib.ops import minimum

equation = partial(equation, "serving", chapter="price")


@frozen
class Draw(Record):
    """Parts of a chip's rated power, fitted to measured watts (``energy.toml``)."""

    awake: float = quantity("part of the rated power that a serving chip draws at any moment", maximum=1)
    reading: float = quantity("further part while its memory is busy", zero=True)
    calculating: float = quantity("further part while its arithmetic is busy", zero=True)


@equation(unit="W", power="W")
def chip_draw(draw: Draw, power, memory_share, arithmetic_share):
    """Power that one chip draws, from the parts of the time in which memory and arithmetic are busy."""
    busy = draw.reading * memory_share + draw.calculating * arithmetic_share
    return power * minimum(draw.awake + busy, 1)


@equation(unit="W*s", drawn="W", seconds="s", tokens="1 > 0")
def token_energy(n_chips, drawn, seconds, tokens):
    """Energy of one token: what all chips draw in the time that ``tokens`` tokens take."""
    return n_chips * drawn * seconds / tokens


@equation(unit="W*s", power="W", tokens="1/s > 0")
def idle_energy(draw: Draw, power, chips, tokens):
    """Energy of each of so many ``tokens`` a second for the ``chips`` that are awake and wait, in the mean."""
    return draw.awake * power * chips / tokens


@cache
def load_energy():
    """``energy.toml``, read."""
    return validation.read_package_toml(__file__, "energy.toml")


def draw():
    """The fitted parts."""
    return Draw(**{name: value[0] for name, value in load_energy()["draw"].items()})


def of_token(system, step, tokens):
    """Joules of the chips for each of the tokens that a step makes."""
    drawn = chip_draw(draw(), system.chip.power, *busy(step, step.total))
    return token_energy(system.count, drawn, step.total, tokens)


def busy(step, seconds):
    """Parts of ``seconds`` in which the memory and the arithmetic of the chips of a step are busy."""
    read = sum(t for name, t in step.terms.items() if name in ("weights", "cache", "expert weights"))
    work = sum(t for name, t in step.terms.items() if "arithmetic" in name)
    return minimum(read / seconds, 1.0), minimum(work / seconds, 1.0)
