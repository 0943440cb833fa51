"""Every model that can be asked for a decode step: the bound, the sources and their versions, and the kernel model."""

import inferlib  # whose papers are imported when they are asked
from inferlib import validation
from inferlib.system import Breakdown, Layout, System, Workload
from inferlib.transformer import Transformer
from tokenprice.deployment import decode_step

KERNELS = "kernels"

__all__ = ["KERNELS", "ask", "keys", "label"]


def keys() -> list[str]:
    """The bound, every source followed by its versions, and the kernel model."""
    return [*inferlib.papers.answerers(), KERNELS]


def label(key: str) -> str:
    """What pictures and tables call one of :func:`keys`.

    Examples
    --------
    >>> label("kernels"), label("pope2022")
    ('kernel model', 'Pope et al. 2022')
    """
    return (
        "kernel model" if validation.one_of("source", key, keys()) == KERNELS else inferlib.papers.label(key)
    )


def ask(
    key: str, model: Transformer, system: System, workload: Workload, layout: Layout | None = None, *,
    constants: str = "own",
) -> Breakdown:  # fmt: skip
    """One decode step, as one of :func:`keys` sees it; arguments as for :func:`inferlib.papers.ask`."""
    validation.one_of("constants", constants, ("own", "same"))
    if validation.one_of("source", key, keys()) == KERNELS:
        return inferlib.papers.source.run(KERNELS, decode_step, model, system, workload, layout)
    return inferlib.papers.ask(key, model, system, workload, layout, constants=constants)
