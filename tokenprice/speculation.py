"""Drafted tokens as they are served: a head of one layer drafts, the model verifies all drafts in one step.

What counts is how many tokens a step yields, and that is measured (``acceptance.toml``), not assumed.
"""

from functools import cache, partial

from inferlib import validation
from inferlib.equation import equation
from inferlib.ops import maximum
from tokenprice.operators import gemm

equation = partial(equation, "serving", chapter="price")


@equation(unit="s", verify="s", draft="s", length="1 > 0")
def drafted_token_time(verify, drafted, draft, length):
    """Time between tokens when ``drafted`` tokens are proposed one after another and verified together.

    Examples
    --------
    >>> round(drafted_token_time(verify=12e-3, drafted=3, draft=0.5e-3, length=2.7), 6)
    0.005
    """
    return (verify + drafted * draft) / length


@cache
def measured_curves():
    """``acceptance.toml``, read: who measured how many tokens a step yields, by tokens drafted."""
    return validation.read_package_toml(__file__, "acceptance.toml")


def acceptance(curve, drafted):
    """Tokens that a step yields by a measured curve.

    Examples
    --------
    >>> acceptance("DeepSeek R1, MTP", 3)
    2.82
    """
    lengths = measured_curves()[validation.one_of("curve", curve, measured_curves())]["length"]
    return lengths[int(validation.number("draft_tokens", drafted, minimum=1, maximum=len(lengths))) - 1]


def with_draft(at):
    """Seconds of the product with which a head begins: the model's stream and the next token's become one."""
    both = gemm(at, "attention", 2 * at.model.d_model, at.model.d_model / at.tp)
    start, read, work = both.terms(1).values()
    return start + maximum(read, work)
