"""A step on a napkin: the roofline at one share of the peaks, a time for a layer, a time for a further chip.

Three constants fitted to public measurements (``napkin.toml``, written by :mod:`book.synthesis.fit`): what the
sixth model's kernels, engines and links add up to, for the back of an envelope.
"""

import tomllib
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from inferlib.equation import Record, equation, quantity
from inferlib.ops import maximum

equation = partial(equation, "serving", chapter="sixth_model")


@dataclass(frozen=True, eq=False)
class Constants(Record):
    """What is fitted (share, layer, hop), and the two all-reduces that a tensor-parallel layer needs."""

    share: float = quantity("1", "share of the peaks that a decode step reaches")
    layer: float = quantity("s", "time of one layer that no bytes and no arithmetic explain", zero=True)
    hop: float = quantity("s", "time that every further chip adds to one all-reduce", zero=True)
    reductions: float = quantity("1", "all-reduces in one layer", default=2)


@equation(unit="s", peak_time="s")
def attained_time(constants: Constants, peak_time):
    """Time at the share of the peaks that is reached, from the time at the peaks; seconds."""
    return peak_time / constants.share


@equation(unit="s", n_layers="1")
def launch_time(constants: Constants, n_layers):
    """Time of all layers that neither bytes nor arithmetic explain: launching kernels, small kernels; seconds."""
    return n_layers * constants.layer


@equation(unit="s", n_layers="1", n_chips="1")
def waiting_time(constants: Constants, n_layers, n_chips):
    """Time of the all-reduces of all layers, on a ring of ``n_chips``; seconds, none on one chip."""
    return constants.reductions * n_layers * constants.hop * (n_chips - 1)


@equation(unit="s", memory="s", arithmetic="s", n_layers="1", n_chips="1")
def napkin_time(constants: Constants, memory, arithmetic, n_layers, n_chips):
    """Time from one token to the next on one tensor-parallel instance.

    Examples
    --------
    >>> three = Constants(share=0.7, layer=40e-6, hop=3e-6)
    >>> f"{1e3 * napkin_time(three, memory=7e-3, arithmetic=1e-3, n_layers=80, n_chips=8):.2f} ms"
    '16.56 ms'
    """
    longer = maximum(attained_time(constants, memory), attained_time(constants, arithmetic))
    return longer + launch_time(constants, n_layers) + waiting_time(constants, n_layers, n_chips)


@cache
def stated():
    """``napkin.toml``: the constants, how they were fitted, how far they can be trusted."""
    return tomllib.loads((files("inferlib.serving") / "napkin.toml").read_text("utf-8"))


def fitted():
    """The constants fitted to all usable measurements.

    Examples
    --------
    >>> 0.5 < fitted().share < 0.8
    True
    """
    return Constants(**stated()["constants"])
