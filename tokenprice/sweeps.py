"""One question asked at every point of a grid, of the kernel model, the sources or all of them."""

from inferlib import validation
from inferlib.papers.sweeps import Sweep, of_step, tabulate
from inferlib.system import System
from tokenprice import predictors
from tokenprice.ask import ask
from tokenprice.question import Question, read_record


def sweep(question, machine=None, /, *, over, by=predictors.KERNELS, chips=None, **options) -> Sweep:
    """Ask a question over axes: any option of :func:`ask`, and how many chips.

    Parameters
    ----------
    question, machine, chips, **options
        As for :func:`ask`.
    over : Mapping
        Values by name of the axis: any field of :class:`Question` in its words, such as ``"batch"``, ``"weights"``,
        ``"machine"`` or ``"layout"``, or ``"chips"``, how many of the machine's chip.
    by : str or sequence of str
        Who is asked, as for :func:`ask`; ``"all"`` for everybody.

    Returns
    -------
    Sweep
        An ``xarray.Dataset``: ``seconds`` between two tokens (NaN where there is no answer, with ``status`` and
        ``reason``), ``low`` and ``high`` of its interval, ``usd_per_million``, ``bottleneck`` and ``terms``.

    Raises
    ------
    LookupError, ValueError, TypeError
        As :func:`ask` does for words that it does not understand, at whatever point.

    Examples
    --------
    >>> found = sweep("Llama 3 70B", "8x H100", over={"batch": [1, 64], "weights": ["bf16", "fp8"]})
    >>> found.best("weights").squeeze().values.tolist()
    ['fp8', 'fp8']
    """
    asked = question if isinstance(question, Question) else None
    if asked is None:
        asked = read_record(Question, {"model": question, "machine": machine, **options}, chips)
    elif machine is not None or options:
        raise ValueError("a Question holds its machine and options: leave those beside it out")
    for name in over:
        validation.one_of("axis", name, [*Question.names(), "chips"])
    keys = predictors.keys() if by == "all" else [by] if isinstance(by, str) else list(by)

    def answer(point):
        point = dict(point)
        if (count := point.pop("chips", None)) is not None:
            point["machine"] = System(asked.needs_machine().chip, count)
        here = asked.replace(**point)
        return {key: _found(ask(here, by=key)) for key in keys}

    return tabulate(over, keys, answer)


def _found(answer):
    """What a sweep keeps of an answer; ``None`` where no price or interval is known becomes NaN."""
    if not answer.feasible:
        return {"status": answer.status, "reason": answer.reason}
    more = {"low": answer.low, "high": answer.high, "usd_per_million": answer.usd_per_million}
    seconds = {"seconds": answer.seconds, "bottleneck": answer.bottleneck}
    return of_step(answer.step) | seconds | {name: value for name, value in more.items() if value is not None}
