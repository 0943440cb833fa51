"""Speculative decoding as it is served: a one-layer head drafts, and the model verifies all drafts in one step.

The acceptance length decides the gain; it is measured (``acceptance.toml``), not assumed.
"""

from functools import partial

from inferlib import validation
from inferlib.equation import equation
from inferlib.ops import maximum
from tokenprice.operators import gemm

equation = partial(equation, "serving", chapter="price")


@equation(unit="s", verify="s", draft="s", length="1 > 0")
def drafted_token_time(verify, drafted, draft, length):
    """TPOT when ``drafted`` tokens are proposed one after another and verified together.

    Examples
    --------
    >>> round(drafted_token_time(verify=12e-3, drafted=3, draft=0.5e-3, length=2.7), 6)
    0.005
    """
    return (verify + drafted * draft) / length


def measured_curves():
    """``acceptance.toml``: measured acceptance lengths by number of drafted tokens, with their sources."""
    return validation.read_package_toml(__file__, "acceptance.toml")


def acceptance(length, drafted):
    """Return an acceptance length: a number as it is, of a measured curve that for this many drafts.

    Examples
    --------
    >>> acceptance("DeepSeek R1, MTP", 3), acceptance(2.5, 3)
    (2.82, 2.5)
    """
    if not isinstance(length, str):
        return length
    lengths = measured_curves()[validation.one_of("curve", length, measured_curves())]["length"]
    return lengths[int(validation.number("draft_tokens", drafted, minimum=1, maximum=len(lengths))) - 1]


def drafting(model):
    """Return the layers of a model, and one more of its last, the head that drafts."""
    return (*model.layers, model.layers[-1].replace(count=1))


def with_head(model):
    """Parameters by part of a model and its draft head, whose first product merges two streams into one."""
    found = model.replace(layers=drafting(model)).parameters()
    return found | {"attention": found["attention"] + 2 * model.d_model**2}


def with_draft(at):
    """Time of a draft head's first product, which merges the model's stream with the next token's, in seconds."""
    both = gemm(at, "attention", 2 * at.model.d_model, at.model.d_model / at.tp)
    start, read, work = both.terms(1).values()
    return start + maximum(read, work)
