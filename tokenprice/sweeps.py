"""Ask the kernel model, the sources or all of them one question at every point of a grid."""

import math
from collections.abc import Iterable, Mapping
from itertools import product

from inferlib import validation
from inferlib.optional_imports import np, xarray as xr
from inferlib.papers import metadata, source_of, sources
from inferlib.system import System
from tokenprice import aliases, predictors
from tokenprice.ask import ask
from tokenprice.formatting import align, format_number, format_time
from tokenprice.parsing import parse_int, parse_machine, parse_seconds
from tokenprice.progress import progress
from tokenprice.question import Question, merge_options, parse_options
from tokenprice.uncertainty import ratio_factor

# Quantities to minimise, and how they are printed.
LEAST = {
    **dict.fromkeys(("seconds", "ttft"), format_time),
    **dict.fromkeys(("usd_per_million", "usd_per_request"), lambda usd: f"${format_number(usd)}"),
    "joules_per_token": format_number,
}
SAID = LEAST | {"lead": "{:.0%}".format}
COMPARED = ("seconds", "high", "ttft_high", "chip")  # columns that say which values tie
NONE = "none"  # no value of the axis has an answer or meets the limit
WORDS = ("status", "reason", "bottleneck", "chip")  # columns that hold no numbers
NO_COLOUR = "0.2"  # colour of models other than the sources


class Sweep(xr.Dataset):
    """Answers over named axes: an ``xarray.Dataset`` with a :meth:`plot`, and the :meth:`best` value of an axis.

    ``seconds`` is the time of a step, NaN where ``status`` is not ``"ok"``; ``reason`` says why. ``terms`` are the
    seconds of each common term, ``bottleneck`` is the largest. The axis ``by`` holds the models that were asked.
    """

    __slots__ = ()

    def plot(self, of="seconds", ax=None):
        """Draw ``of``: a line per model over one axis, or a map of one model over two; infeasible points stay empty.

        Raises
        ------
        ValueError
            If there are more axes: select a point of the others first.
        """
        import matplotlib.pyplot as plt

        ax = ax or plt.subplots()[1]
        names = [name for name in self[of].dims if name != "by" and self.sizes[name] > 1]
        table = self[of].squeeze()
        if len(names) == 1:
            for key in np.atleast_1d(self["by"].values):
                line = table.sel(by=key) if "by" in table.dims else table
                ax.plot(
                    self[names[0]].values,
                    line.values.astype(float),
                    marker="o",
                    label=str(key),
                    color=_colour(key),
                )
            ax.set(xlabel=names[0], ylabel=of)
            ax.legend()
        elif len(names) == 2 and "by" not in table.dims:
            shown = table.transpose(*names).values.astype(float)
            drawn = ax.imshow(shown, origin="lower", aspect="auto", cmap="viridis_r")
            for axis, name in ((ax.yaxis, names[0]), (ax.xaxis, names[1])):
                axis.set_ticks(range(self.sizes[name]), [str(value) for value in self[name].values])
                axis.set_label_text(name)
            ax.figure.colorbar(drawn, ax=ax, label=of)
        else:
            raise ValueError(
                f"plot draws one axis, or two of one model, not {', '.join(table.dims)}: select a point first, "
                f"such as .sel(by={str(np.ravel(self['by'])[0])!r})"
            )
        return ax

    def best(self, axis=None, of="seconds", tpot=None) -> "Best":
        """Find the value of an axis where ``of`` is least, at every other point, and the values that tie with it.

        Two answers about one chip tie if their ratio is within the factor that holds 80 % of measured pairs
        (:func:`tokenprice.uncertainty.ratio_factor`); about different chips, if their intervals overlap. First
        tokens, of which no pairs were counted, tie if their intervals overlap.

        Parameters
        ----------
        axis : str, optional
            The axis to choose from; the first of the sweep when not given.
        of : str
            ``"seconds"`` of a token, ``"ttft"``, ``"usd_per_million"``, ``"usd_per_request"`` or
            ``"joules_per_token"``.
        tpot : float or str, optional
            Seconds of a token at most, or words such as ``"50 tokens/s"``: only answers that keep this are chosen from.

        Returns
        -------
        Best
            A DataArray of values of the axis, ``"none"`` where there is no answer. Coordinates: ``seconds`` and ``of``
            of the best; ``lead``, how much more the second best takes (0.1 is 10 %); ``tie``, the values that tie, or
            nothing; ``sure``, the best value if all answers lie at the slow end of their intervals, which differs
            where ``tpot`` is then missed; and ``reason``, why no value was chosen, or nothing.
        """
        axis = next(name for name in self.dims if name not in ("by", "term")) if axis is None else axis
        validation.one_of("axis", axis, [name for name in self.dims if name != "term"])
        validation.one_of("of", of, LEAST)
        tpot = tpot if tpot is None else parse_seconds("tpot", tpot)
        asked = self.status.transpose(axis, ...)
        empty = xr.full_like(asked, math.nan, float)  # no point has an answer or a price
        columns = {
            name: self[name].transpose(axis, ...) if name in self else empty for name in (of, *COMPARED)
        }
        table = columns[of]
        reasons = self.reason.transpose(axis, ...).values
        names = [str(value) for value in self[axis].values]
        shape = table.shape[1:]
        found, tied, sure, why = (np.full(shape, NONE, object) for _ in range(4))
        numbers = {name: np.full(shape, math.nan) for name in ("lead", "seconds", of)}
        for place in np.ndindex(shape):
            column = {name: one.values[(slice(None), *place)] for name, one in columns.items()}
            found[place], numbers["lead"][place], tied[place], sure[place] = _choose(names, column, of, tpot)
            why[place] = (
                "" if found[place] != NONE else _why(names, reasons[(slice(None), *place)], column, tpot)
            )
            for name in {"seconds", of} if found[place] != NONE else ():
                numbers[name][place] = column[name][names.index(str(found[place]))]
        dims = table.dims[1:]
        told = numbers | {"tie": tied, "sure": sure, "reason": why}
        coords = {name: self[name] for name in dims} | {name: (dims, value) for name, value in told.items()}
        return Best(xr.DataArray(found, coords, dims, axis))


def _colour(key):
    return metadata(source_of(str(key)))["colour"] if source_of(str(key)) in sources() else NO_COLOUR


class Best(xr.DataArray):
    """The best value of an axis at every point of the others, with its numbers, ``lead``, ``tie`` and ``sure``.

    Examples
    --------
    >>> boxes = sweep("Llama 3 70B", over={"machine": ["8x H100", "8x B200"], "batch": [1, 64]}).best()
    >>> print(boxes)  # doctest: +ELLIPSIS
    batch  machine  seconds  lead  tie                 slow end
    1      8x B200  ... ms  ...%   8x B200 or 8x H100  8x B200
    64     8x B200  ... ms  ...%   8x B200 or 8x H100  8x B200
    >>> len(boxes.to_dict()["best"]), boxes.to_dict(data=False)["name"]
    (2, 'machine')
    """

    __slots__ = ()

    @property
    def feasible(self) -> bool:
        """Whether any point has a best value."""
        return bool((self.values != NONE).any())

    def rows(self) -> list:
        """Return a dict per point: other axes, the best value, its numbers, ties, the slow end's best, and reason."""
        found = []
        numbers = [name for name in SAID if name in self.coords]
        for place in np.ndindex(self.shape):
            one = self[place]
            at = {name: one[name].item() for name in self.dims if name != "by" or self.sizes[name] > 1}
            said = {name: one[name].item() for name in numbers}
            said = {name: None if math.isnan(value) else value for name, value in said.items()}
            found.append(
                {**at, self.name: one.item(), **said}
                | {name: one[name].item() for name in ("tie", "sure", "reason")}
            )
        return found

    def to_dict(self, *how, **more):
        """Return the points as plain values, as ``--json`` prints them; xarray's options are accepted."""
        return super().to_dict(*how, **more) if how or more else {"best": self.rows()}

    def __str__(self):
        rows = self.rows()
        lines = [
            ["slow end" if name == "sure" else name for name in row if name != "reason"] for row in rows[:1]
        ]
        for row in rows:
            cells = row | {name: said(row[name]) for name, said in SAID.items() if row.get(name) is not None}
            lines.append(["" if one is None else str(one) for one in cells.values()])
        return align(lines)


def _why(names, reasons, column, tpot):
    """Say why no value was chosen: none has an answer, none keeps ``tpot``, or none has the quantity."""
    if all(reasons):
        return "; ".join(f"{name}: {reason}" for name, reason in zip(names, reasons, strict=True))
    fastest = np.nanmin(column["seconds"].astype(float))
    if tpot and fastest > tpot:
        return f"TPOT is at least {format_time(fastest)}"
    return f"no answer has {next(iter(column))}"


def choose(answers, of="seconds", tpot=None) -> dict:
    """Return the best of some answers by name, as :meth:`Sweep.best` does at one point: ``best, lead, tie, sure``."""
    found = [_found(answer) for answer in answers.values()]
    column = {name: np.array([one.get(name, math.nan) for one in found], object) for name in (of, *COMPARED)}
    return dict(zip(("best", "lead", "tie", "sure"), _choose(list(answers), column, of, tpot), strict=True))


def _choose(names, column, of, tpot):
    """Return the best of one column, its lead, its ties, and the best at the slow ends.

    Examples
    --------
    Intervals of 10 % either way; of two chips they overlap up to a ratio of 1.1 * 1.1:

    >>> seconds = np.array([1.0, 1.2, 1.25])
    >>> column = {"seconds": seconds, "high": seconds * 1.1, "chip": np.array([*"ABC"], object)}
    >>> best, lead, tie, sure = _choose("abc", column, "seconds", None)
    >>> best, f"{lead:.0%}", tie, sure
    ('a', '20%', 'a or b', 'a')

    The cheapest is the slowest; a time equal to the limit keeps it, and at the slow end only a faster one does:

    >>> column["usd"] = np.array([9.0, 6.0, 4.0])
    >>> [[str(word) for word in _choose("abc", column, "usd", limit)] for limit in (1.25, 1.1, 0.9)]
    [['c', '0.5', '', 'a'], ['a', 'nan', '', 'a'], ['none', 'nan', '', 'none']]

    Without intervals nothing ties:

    >>> one = np.array([1.0, 1.0])
    >>> _choose("ab", {"seconds": one, "high": one * math.nan, "chip": "AA"}, "seconds", None)[2]
    ''

    First tokens tie by their own intervals:

    >>> column |= {"ttft": seconds, "ttft_high": seconds * 1.01}
    >>> _choose("abc", column, "ttft", None)[2]
    ''
    """
    value, seconds, high = (column[name].astype(float) for name in (of, "seconds", "high"))

    def least(times):
        kept = np.where(times <= tpot, value, math.nan) if tpot else value
        return None if np.isnan(kept).all() else int(np.nanargmin(kept))

    best = least(seconds)
    if best is None:
        return NONE, math.nan, "", NONE
    kept = [k for k in range(len(names)) if k != best and (seconds[k] <= tpot if tpot else seconds[k] > 0)]
    lead = min((value[k] for k in kept), default=math.nan) / value[best] - 1
    rivals = [names[k] for k in kept if value[k] / value[best] < _margin(column, of, best, k)]
    slow = least(high) if tpot else best
    tie = " or ".join([names[best], *rivals]) if rivals else ""
    return names[best], lead, tie, NONE if slow is None else names[slow]


def _margin(column, of, best, other):
    """Return the ratio beyond which another value does not tie with the best."""
    first = of == "ttft"
    middle, end = ("ttft", "ttft_high") if first else ("seconds", "high")
    spread = [column[end][k] / column[middle][k] for k in (best, other)]
    if not all(one >= 1 for one in spread):  # a source without an interval
        return 1.0
    same = column["chip"][best] == column["chip"][other] and not first
    return ratio_factor(*spread) if same else spread[0] * spread[1]


def sweep(question, machine=None, /, *, over, by=predictors.KERNELS, chips=None, **options) -> Sweep:
    """Ask a question over axes: any option of :func:`ask`, numbers of chips, or named choices.

    Parameters
    ----------
    question, machine, chips, **options
        As for :func:`ask`.
    over : Mapping
        Values by name of the axis: any field of :class:`Question` in its words, such as ``"batch"``, ``"weights"``,
        ``"machine"`` or ``"layout"``, or ``"chips"``, how many of the machine's chip. An axis of any other name is a
        choice: a Mapping of names to the fields that each changes, or to a function of the question.
    by : str or sequence of str
        Which model answers, as for :func:`ask`; ``"all"`` for all of them.

    Returns
    -------
    Sweep
        An ``xarray.Dataset``: ``seconds`` between two tokens (NaN where there is no answer, with ``status`` and
        ``reason``), ``low`` and ``high`` of its interval, ``usd_per_million``, ``joules_per_token``, ``bottleneck``
        and ``terms``; of requests also ``ttft``, the slow end ``ttft_high`` of its interval, and ``usd_per_request``.

    Raises
    ------
    LookupError, ValueError, TypeError
        As :func:`ask` does for words that it does not understand, at whatever point.

    Examples
    --------
    How many times the rent of an H100 may a B200 cost? At equal rents, the ratio of the prices of a token:

    >>> asked = {"weights": "fp8", "context": "4k"}
    >>> boxes = {"machine": ["8x H100", "8x B200"], "batch": [8, 128]}
    >>> price = sweep("Llama 3.3 70B", **asked, price=1, over=boxes).usd_per_million.squeeze()
    >>> (price.sel(machine="8x H100") / price.sel(machine="8x B200")).round(1).values.tolist()
    [1.2, 1.4]

    How many tokens must a step with four drafts yield so that it pays? The ratio of a step with them to one without:

    >>> drafts, batch = {"draft_tokens": 4, "acceptance_length": 1}, {"batch": [1, 32, 128]}
    >>> times = [sweep("Llama 3.3 70B", "4x H100", **asked, **more, over=batch).seconds for more in (drafts, {})]
    >>> (times[0] / times[1]).squeeze().round(1).values.tolist()
    [1.1, 1.3, 2.1]

    Fields that depend on one another, such as both lengths of a request:

    >>> sweep("Llama 3 70B", "8x H100", output_tokens=100, over={"prompt_tokens": [1000, 2000]}).ttft.shape
    (1, 2)

    Choices of your own, and which is best:

    >>> boxes = {"one of 8": {}, "one of 16": {"machine": "16x H100"}}
    >>> sweep("Llama 3 70B", "8x H100", over={"boxes": boxes, "batch": [1, 64]}).best().squeeze().values.tolist()
    ['one of 8', 'one of 8']
    """
    over = aliases.resolve(validation.instance("over", over, Mapping))
    choices = {name: values for name, values in over.items() if isinstance(values, Mapping)}
    axes = _axes(over, [*Question.names(), "chips", *choices])
    if isinstance(question, Question):
        asked = question
        if machine is not None or options:
            raise ValueError("a Question has its machine and options: leave out the other arguments")
    else:  # fields that depend on each other are parsed together
        first = {name: axes[name][0] for name in axes if name in Question.names() and name not in choices}
        options = merge_options({"model": question, "machine": machine}, options)
        for name in first.keys() & options.keys():
            raise ValueError(
                f"{name} is {validation.shown(options[name])}, but over gives it too: leave one out"
            )
        fields, *_ = parse_options(options | first, chips)
        asked = Question(**fields)
    validation.instance("by", by, (str, Iterable))
    keys = predictors.keys() if by == "all" else [by] if isinstance(by, str) else list(by)

    def answer(point):
        fields = {name: value for name, value in point.items() if name not in choices}
        if isinstance(fields.get("machine"), str):
            fields["machine"] = parse_machine("machine", fields["machine"], chips)
        if (count := fields.pop("chips", None)) is not None:
            chip = (fields.get("machine") or asked.needs_machine()).chip
            fields["machine"] = System(chip, parse_int("chips", count))
        here = asked.replace(**fields)
        for name, values in choices.items():
            change = values[point[name]]
            if not callable(change):
                validation.instance(f"over[{name!r}][{point[name]!r}]", change, Mapping)
            here = change(here) if callable(change) else here.replace(**change)
        return {key: _found(ask(here, by=key)) for key in keys}

    return _tabulated(axes, keys, answer)


def _axes(over, known):
    """Return the values of each axis as a list; the names are ``known`` ones."""
    axes = {}
    for name, values in over.items():
        validation.one_of("axis", name, known)
        if isinstance(values, str) or not isinstance(values, Iterable):
            said = validation.shown(values)
            raise TypeError(f"over[{name!r}] is {said}, but must list the values of an axis: [{said}]")
        axes[name] = list(values)
    if not axes or not all(axes.values()):
        raise ValueError(f"over is {over!r}, but must name at least one axis and its values")
    return axes


def _tabulated(over, keys, answer) -> Sweep:
    """Build the data set of ``answer(point)`` (key to values) at every point of ``over``."""
    points = [dict(zip(over, values, strict=True)) for values in product(*over.values())]
    rows = [answer(point) for point in progress(points, "points")]
    names = sorted({"seconds"}.union(*(one for row in rows for one in row.values())) - {"terms"})
    shape = (len(keys), *map(len, over.values()))
    dims = ("by", *over)
    variables = {}
    for name in names:
        kind, empty = (object, "") if name in WORDS else (float, math.nan)
        values = np.array([[row[key].get(name, empty) for row in rows] for key in keys], kind)
        variables[name] = (dims, values.reshape(shape))
    common = predictors.vocabulary()["common"]
    seconds = [
        [[row[key].get("terms", {}).get(term, math.nan) for row in rows] for key in keys] for term in common
    ]
    variables["terms"] = (("term", *dims), np.array(seconds).reshape(len(common), *shape))
    coords = {name: [getattr(value, "name", value) for value in values] for name, values in over.items()}
    return Sweep(variables, coords={**coords, "by": keys, "term": list(common)})


def _found(answer):
    """Return the values of an answer that a sweep stores; an unknown price or interval is NaN."""
    if not answer.feasible:
        return {"status": answer.status, "reason": answer.reason}
    more = {"low": answer.low, "high": answer.high}
    more |= {"usd_per_million": answer.usd_per_million, "joules_per_token": answer.joules}
    if (request := answer.request) is not None:
        more |= {"ttft": request.ttft, "ttft_high": request.ttft_interval[1]}
        more |= {"usd_per_request": request.dollars if request.priced else None}
    seconds = {"seconds": answer.seconds, "bottleneck": answer.bottleneck, "chip": answer.machine.chip.name}
    counted = {"status": "ok", "reason": "", "terms": predictors.common_terms(answer.step)}
    return counted | seconds | {name: value for name, value in more.items() if value is not None}
