"""Drafted tokens as they are served: a head of one layer drafts, the model verifies all drafts in one step.

What counts is how many tokens a step yields, and that is measured (``acceptance.toml``), not assumed.
"""

from functools import cache, partial

from inferlib import validation
from inferlib.equation import equation
from inferlib.ops import maximum
from inferlib.system import System, decode_model
from tokenprice import calibration
from tokenprice.decode import ShardedModel, decode_step
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


@decode_model("kernels")
def drafted_step(
    model, system, workload, layout=None, *, drafted, length, engine=None, keep=None, share=None
):
    """A decode step a token, with drafts by a head of one layer (MTP, EAGLE), by named terms.

    One step verifies all drafts and yields ``length`` tokens; the terms are those of one token, and what drafting takes
    is a term of its own. Their sum is :func:`drafted_token_time`. Engines of 2026 run the head within the recorded
    graph of the step, so a draft takes what its kernels take and no time of the host: nothing is fitted.
    """
    validation.number("acceptance_length", length, minimum=1, maximum=drafted + 1)
    how = {"engine": engine, "keep": keep, "share": share}
    verify = decode_step(model, system, workload, layout, tokens=drafted + 1, **how)
    if not verify.feasible:
        return verify
    head = model.replace(layers=(model.layers[-1].replace(count=1),))
    # drafts are made within the step, on the last stage: what the engine takes once a step it takes once
    within, last = how | {"engine": calibration.engine(engine).replace(base=0, rank=0)}, system
    lies, part = layout, workload
    if layout is not None and layout.pp > 1:
        part = workload.replace(batch=ShardedModel(model, system, workload, layout).sequences)
        chip = system.chip.replace(memory_capacity=None)  # whether all fits, the whole step has said
        last, lies = System(chip, system.count // layout.pp), layout.replace(pp=1)
    draft = decode_step(head, last, part, lies, **within).total
    draft = draft + with_draft(ShardedModel(model, last, part, lies, keep))
    stages = tuple({name: t / length for name, t in stage.items()} for stage in verify.stages)
    stages += ({"drafting": drafted_token_time(0, drafted, draft, length)},)
    return stages
