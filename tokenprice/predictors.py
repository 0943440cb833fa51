"""All models that predict a decode step (the bound, the sources with their versions, the kernel model), and common
names of their terms."""

import inferlib  # imports a paper when it is asked
from inferlib import validation
from inferlib.system import Breakdown, Layout, System, Workload
from inferlib.transformer import Transformer
from tokenprice.deployment import decode_step

KERNELS = "kernels"

__all__ = ["KERNELS", "ask", "common_name", "common_terms", "keys", "label", "vocabulary"]


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


def vocabulary():
    """``vocabulary.toml``: common names of terms, and common constants."""
    return validation.read_package_toml(__file__, "vocabulary.toml")


def common_name(source, term):
    """Return the common name of a source's term.

    Examples
    --------
    >>> common_name("liminal2025", "network"), common_name("mazurek2025", "attention arithmetic")
    ('collective latency', 'arithmetic')
    """
    exact = inferlib.papers.metadata(source).get("terms", {}) if source in inferlib.papers.sources() else {}
    if term in exact:
        return exact[term]
    return next((name for word, name in vocabulary()["rules"] if word in term.lower()), "other")


def common_terms(step: Breakdown) -> dict[str, float]:
    """Return the counted terms of a feasible answer by common name, in seconds; they add up to its total.

    Every common name is present, zero if the answer has no such term or a longer one hides it.
    """
    shares = dict.fromkeys(vocabulary()["common"], 0.0)
    for term, seconds in step.critical.items():
        shares[common_name(step.source, term)] += float(seconds)
    return shares
