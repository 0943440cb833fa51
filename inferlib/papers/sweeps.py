"""Ask several models at every point of a grid: a labelled data set of times, terms, and reasons for no answer."""

import math
from collections.abc import Iterable, Mapping
from itertools import product

from inferlib import catalog, validation
from inferlib.optional_imports import np, xarray as xr
from inferlib.papers.source import answerers, ask, common_terms, metadata, source_of, sources, vocabulary
from inferlib.progress import progress

NO_COLOUR = "0.2"  # colour of models other than the sources


class Sweep(xr.Dataset):
    """Answers over named axes: an ``xarray.Dataset`` with a :meth:`plot`.

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


def _colour(key):
    return metadata(source_of(str(key)))["colour"] if source_of(str(key)) in sources() else NO_COLOUR


def sweep(model, system, workload=None, layout=None, *, over, by="all", constants="own", **work) -> Sweep:
    """Ask the sources for one decode step at every point of a grid.

    It asks point by point, about two thousand points a second of a source, and three hundred of Erdil's, which
    searches the layouts of each point. An equation takes labelled axes itself (:func:`inferlib.axis`), lazy ones of
    dask too, and computes millions of points a second, feasible or not.

    Parameters
    ----------
    model, system, workload, layout, constants, **work
        As for :func:`inferlib.papers.ask`.
    over : Mapping
        Values by name of the axis: ``"model"``, ``"chip"`` (names or records), ``"chips"`` (how many), ``"batch"``,
        ``"context"``, ``"weights"`` or ``"cache"`` (formats).
    by : str or sequence of str
        A source, several, or ``"all"``: the bound and every source with its versions.

    Returns
    -------
    Sweep
        Each point is the answer of :func:`inferlib.papers.ask`; what does not fit is NaN with its reason.

    Examples
    --------
    >>> over = {"chips": [1, 8], "batch": [1, 64]}
    >>> found = sweep("Llama 3 70B", "8x H100", context=4096, over=over, by="principles")
    >>> (1e3 * found.seconds).round(2).values.tolist()
    [[[nan, nan], [5.24, 8.39]]]
    >>> found.reason.values[0, 0, 0]
    'needs 142 GB, but 1 × H100 SXM has 80 GB'
    """
    validation.instance("by", by, (str, Iterable))
    keys = answerers() if by == "all" else [by] if isinstance(by, str) else list(by)
    for key in keys:
        validation.one_of("source", key, answerers())

    model = catalog.load_model(model) if isinstance(model, str) else model
    system = catalog.load_system(system) if isinstance(system, str) else system

    def answer(point):
        chip = point.pop("chip", system.chip)
        chip = catalog.load_chip(chip) if isinstance(chip, str) else chip
        machine = type(system)(chip, point.pop("chips", system.count))
        shape = point.pop("model", model)
        return {
            key: of_step(ask(key, shape, machine, workload, layout, constants=constants, **work | point))
            for key in keys
        }

    known = ("model", "chip", "chips", "batch", "context", "weights", "cache")
    return tabulate(named_axes(over, known), keys, answer)


def named_axes(over, known, choices=()):
    """The values of each axis as a list; refuses other names than ``known`` ones and those of ``choices``."""
    axes = {}
    for name, values in validation.instance("over", over, Mapping).items():
        validation.one_of("axis", name, [*known, *choices])
        if isinstance(values, str) or not isinstance(values, Iterable):
            said = validation.shown(values)
            raise TypeError(f"over[{name!r}] is {said}, but must list the values of an axis: [{said}]")
        axes[name] = list(values)
    if not axes or not all(axes.values()):
        raise ValueError(f"over is {over!r}, but must name at least one axis and its values")
    return axes


def of_step(step):
    """Return the values of a breakdown that a sweep stores."""
    found = {"status": step.status, "reason": step.reason}
    if step.feasible:
        found |= {"seconds": float(step.total), "bottleneck": step.bottleneck, "terms": common_terms(step)}
    return found


def tabulate(over, keys, answer) -> Sweep:
    """Build the data set of ``answer(point)`` (key to values) at every point of ``over``."""
    points = [dict(zip(over, values, strict=True)) for values in product(*over.values())]
    rows = [answer(point) for point in progress(points, "points")]
    found = {name for row in rows for answer in row.values() for name in answer}
    names = sorted((found | {"seconds"}) - {"terms"})  # NaN where nothing answers
    shape = (len(keys), *map(len, over.values()))
    dims = ("by", *over)
    variables = {}
    for name in names:
        number = name not in ("status", "reason", "bottleneck", "chip")
        empty = math.nan if number else ""
        values = np.array(
            [[row[key].get(name, empty) for row in rows] for key in keys], float if number else object
        )
        variables[name] = (dims, values.reshape(shape))
    common = vocabulary()["common"]
    seconds = [
        [[row[key].get("terms", {}).get(term, math.nan) for row in rows] for key in keys] for term in common
    ]
    variables["terms"] = (("term", *dims), np.array(seconds).reshape(len(common), *shape))
    coords = {name: [getattr(value, "name", value) for value in values] for name, values in over.items()}
    return Sweep(variables, coords={**coords, "by": keys, "term": list(common)})
