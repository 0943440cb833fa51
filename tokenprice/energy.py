"""Energy: the share of its rated power that a chip draws while it reads, computes and waits."""

from functools import partial

from inferlib import validation
from inferlib.equation import Record, equation, quantity
from inferlib.ops import minimum

equation = partial(equation, "serving", chapter="price")


class Draw(Record):
    """Shares of a chip's rated power, fitted to measured watts (``energy.toml``).

    Examples
    --------
    A chip that always draws all of its power draws no more when busy:

    >>> chip_draw(Draw(1, 0, 0), 700, 1, 1)
    700
    """

    awake: float = quantity("part of the rated power that a serving chip draws at any moment", maximum=1)
    reading: float = quantity("further part while its memory is busy", zero=True)
    calculating: float = quantity("further part while its arithmetic is busy", zero=True)


@equation(unit="W", power="W")
def chip_draw(draw: Draw, power, memory_share, arithmetic_share):
    """Power that one chip draws, from the shares of the time in which memory and arithmetic are busy.

    Examples
    --------
    >>> chip_draw(Draw(0.25, 0.25, 0.5), 700, 0.5, 0.25), chip_draw(Draw(0.5, 0.25, 0.5), 700, 1, 1)
    (350.0, 700)
    """
    busy = draw.reading * memory_share + draw.calculating * arithmetic_share
    return power * minimum(draw.awake + busy, 1)


@equation(unit="W*s", drawn="W", seconds="s", tokens="1 > 0")
def token_energy(n_chips, drawn, seconds, tokens):
    """Energy of one token: the power of all chips over the time of ``tokens`` tokens."""
    return n_chips * drawn * seconds / tokens


@equation(unit="W*s", power="W", tokens="1/s > 0")
def idle_energy(draw: Draw, power, chips, tokens):
    """Mean energy per token of idle chips: ``chips`` of them, awake, at ``tokens`` tokens per second.

    Examples
    --------
    >>> idle_energy(Draw(0.5, 0, 0), 700, chips=2, tokens=100), token_energy(8, drawn=350, seconds=0.5, tokens=32)
    (7.0, 43.75)
    """
    return draw.awake * power * chips / tokens


def load_energy():
    """``energy.toml``, parsed."""
    return validation.read_package_toml(__file__, "energy.toml")


def draw():
    """Return the fitted shares."""
    return Draw(**{name: value[0] for name, value in load_energy()["draw"].items()})


def of_token(system, step, tokens):
    """Energy of the chips per token of a step, in joules."""
    drawn = chip_draw(draw(), system.chip.power, *busy(step, step.total))
    return token_energy(system.count, drawn, step.total, tokens)


def busy(step, seconds):
    """Shares of ``seconds`` in which the memory and the arithmetic of a step's chips are busy."""
    read = sum(t for name, t in step.terms.items() if name in ("weights", "cache", "expert weights"))
    work = sum(t for name, t in step.terms.items() if "arithmetic" in name)
    return minimum(read / seconds, 1.0), minimum(work / seconds, 1.0)
