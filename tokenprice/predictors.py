"""All models that predict a decode step: the bound, the sources with their versions, and the kernel model."""

import inferlib  # imports a paper when it is asked
from inferlib import validation
from inferlib.system import Breakdown, Layout, System, Workload
from inferlib.transformer import Transformer
from tokenprice.deployment import decode_step

KERNELS = "kernels"

__all__ = ["KERNELS", "ask", "keys", "label"]


def keys() -> list[str]:
    """Return the keys of all models: the bound, every source followed by its versions, and the kernel model."""
    return [*inferlib.papers.answerers(), KERNELS]


def label(key: str) -> str:
    """Return the name of a model for figures and tables.

    Examples
    --------
    >>> label("kernels"), label("pope2022")
    ('kernel model', 'Pope et al. 2022')
    """
    return (
        "kernel model" if validation.one_of("source", key, keys()) == KERNELS else inferlib.papers.label(key)
    )


def ask(
    key: str, model: Transformer, system: System, workload: Workload, layout: Layout | None = None
) -> Breakdown:
    """Predict one decode step with the model of this key; arguments as for :func:`inferlib.papers.ask`."""
    if validation.one_of("source", key, keys()) == KERNELS:
        return inferlib.papers.source.run(KERNELS, decode_step, model, system, workload, layout)
    return inferlib.papers.ask(key, model, system, workload, layout)


def step_of(question, key: str) -> Breakdown:
    """Predict the decode step of a question with a source or the bound, which describe neither requests nor drafts."""
    more = "requests" if question.is_request else "drafts" if question.draft_tokens else ""
    if more:
        reason = f"{label(key)} does not describe {more}: give batch and context, without drafts"
        return Breakdown(status="n/a", reason=reason, source=key)
    return ask(key, question.model, question.machine, question.workload, question.layout)
