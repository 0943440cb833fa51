"""Every model that can be asked for a decode step: the bound, the sources and their versions, and the sixth model."""

import inferlib  # whose papers are imported when they are asked
from inferlib import checks
from inferlib.system import Breakdown, Layout, System, Workload
from inferlib.transformer import Transformer
from tokenprice.decode import decode_step

SIXTH = "sixth"

__all__ = ["SIXTH", "ask", "keys", "label"]


def keys() -> list[str]:
    """The bound, every source followed by its versions, and the sixth model."""
    return [*inferlib.papers.answerers(), SIXTH]


def label(key: str) -> str:
    """What pictures and tables call one of :func:`keys`.

    Examples
    --------
    >>> label("sixth"), label("pope2022")
    ('sixth model', 'Pope et al. 2022')
    """
    return "sixth model" if checks.one_of("source", key, keys()) == SIXTH else inferlib.papers.label(key)


def ask(
    key: str, model: Transformer, system: System, workload: Workload, layout: Layout | None = None, *,
    constants: str = "own",
) -> Breakdown:  # fmt: skip
    """One decode step, as one of :func:`keys` sees it; arguments as for :func:`inferlib.papers.ask`."""
    checks.one_of("constants", constants, ("own", "same"))
    if checks.one_of("source", key, keys()) == SIXTH:
        return inferlib.papers.source.answered(SIXTH, decode_step, model, system, workload, layout)
    return inferlib.papers.ask(key, model, system, workload, layout, constants=constants)
