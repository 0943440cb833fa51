"""Drafted tokens as they are served: a head of one layer drafts, the model verifies all drafts in one step.

What counts is how many tokens a step yields, and that is measured (``acceptance.toml``), not assumed.
"""

import tomllib
from functools import cache, partial
from importlib.resources import files

from inferlib import checks
from inferlib.equation import equation
from inferlib.serving.decode import decode_step

equation = partial(equation, "serving", chapter="price")


@equation(unit="s", verify="s", drafted="1", draft="s", length="1 > 0")
def drafted_token_time(verify, drafted, draft, length):
    """Time between tokens when ``drafted`` tokens are proposed one after another and verified together.

    Examples
    --------
    >>> round(drafted_token_time(verify=12e-3, drafted=3, draft=0.5e-3, length=2.7), 6)
    0.005
    """
    return (verify + drafted * draft) / length


@cache
def measured():
    """``acceptance.toml``, read: who measured how many tokens a step yields, by tokens drafted."""
    return tomllib.loads((files("inferlib.serving") / "acceptance.toml").read_text("utf-8"))


def acceptance(curve, drafted):
    """Tokens that a step yields by a measured curve.

    Raises
    ------
    LookupError
        If there is no such curve.
    ValueError
        If nobody measured so many drafts.

    Examples
    --------
    >>> acceptance("DeepSeek R1, MTP", 3)
    2.82
    """
    lengths = measured()[checks.one_of("curve", curve, measured())]["length"]
    return lengths[int(checks.number("drafted", drafted, minimum=1, maximum=len(lengths))) - 1]


def with_drafts(model, system, workload, layout=None, *, drafted, length, engine=None, keep=None):
    """Seconds between tokens with drafting by a head of one layer (MTP, EAGLE).

    Parameters
    ----------
    model, system, workload, layout, engine, keep
        As in :func:`inferlib.serving.decode_step`.
    drafted : int
        Tokens proposed in each step.
    length : float
        Tokens a step yields, see :func:`acceptance`.

    Returns
    -------
    float
    """
    checks.number("length", length, minimum=1, maximum=drafted + 1)
    asked = {"engine": engine, "keep": keep}
    verify = decode_step(model, system, workload, layout, tokens=drafted + 1, **asked).total
    last = model.layers[-1].replace(count=1)
    head = model.replace(layers=(last,))
    draft = decode_step(head, system, workload, layout, **asked).total
    return drafted_token_time(verify, drafted, draft, length)
