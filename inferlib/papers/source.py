"""Shared by all sources: finding them and asking them.

Sources are found by name at run time, so a new source needs no change here. A source that cannot answer returns n/a
with the reason.
"""

import os
import pkgutil
from functools import cache, partial
from importlib import import_module
from types import ModuleType

from inferlib import catalog, validation
from inferlib.equation import Record, load_source, quantity
from inferlib.optional_imports import is_array, np
from inferlib.system import Accelerator, Breakdown, Layout, NotDescribed, System, Workload
from inferlib.transformer import Transformer
from inferlib.units import parse

BOUND = "principles"


@cache
def sources() -> tuple[str, ...]:
    """Return the keys of all sources, oldest first; every package in this folder is one.

    Examples
    --------
    >>> sources()[0]
    'steinhardt2022'
    """
    found = [module.name for module in pkgutil.iter_modules([os.path.dirname(__file__)]) if module.ispkg]
    return tuple(sorted(found, key=lambda key: (metadata(key)["date"], key)))


@cache
def metadata(key: str) -> dict:
    """Return the table ``about`` of a source's ``source.toml``: label, question, date, colour, scope.

    ``scope`` maps each ingredient to ``"yes"``, ``"partly"`` or ``"no"``. Optional: ``terms`` (the source's terms to
    common names), ``chips`` (chips of the catalogue to the source's own) and ``versions`` (other readings of its
    assumptions: their label, and the method of ``Assumptions`` that makes them).
    """
    return load_source(key)["about"]


def versions(source: str | None = None) -> list[str]:
    """Return the versions of a source, or of all: ``key.name`` of each alternative reading in ``source.toml``.

    A version answers beside its source, and is never counted as another source.

    Examples
    --------
    >>> versions("liminal2025")
    ['liminal2025.eq8']
    """
    keys = sources() if source is None else [source]
    return [f"{key}.{name}" for key in keys for name in metadata(key).get("versions", {})]


def source_of(key):
    """Return the source of a key: the key itself, or the source of a version."""
    return key.split(".")[0]


def answerers() -> list[str]:
    """Return the keys of all models that answer: the bound, and every source followed by its versions."""
    return [BOUND, *(name for key in sources() for name in (key, *versions(key)))]


def label(key: str) -> str:
    """Return the name of a source, a version or the bound for figures and tables.

    Examples
    --------
    >>> label("pope2022")
    'Pope et al. 2022'
    """
    if validation.one_of("source", key, answerers()) == BOUND:
        return "bound of the peaks"
    return _version(key).get("label") or metadata(key)["label"]


def _version(key):
    """Return a version's entry in ``source.toml``; empty for any other key."""
    source, _, name = key.partition(".")
    return metadata(source)["versions"][name] if name else {}


def source_package(key):
    """Return the package of a source, or of a version's source."""
    return import_module(f"inferlib.papers.{validation.one_of('source', source_of(key), sources())}")


def ask(
    key: str,
    model: Transformer | str,
    system: System | str,
    workload: Workload | None = None,
    layout: Layout | None = None,
    *,
    assumptions: Record | None = None,
    **work,
) -> Breakdown:
    """Answer one decode step with a source's model.

    Parameters
    ----------
    key : str
        A source, a version of one, or ``"principles"`` (the bound).
    model : Transformer or str
    system : System or str
        Such as ``"8x H100"``. A source that states numbers of this chip takes its own.
    workload : Workload, optional
    layout : Layout, optional
        Each source chooses its own if none is given.
    assumptions : optional
        A record of the source's ``Assumptions``, in place of what the source or version prints.
    **work
        Fields of :class:`inferlib.Workload`, such as ``batch=32``; they override ``workload`` (default: one sequence).

    Returns
    -------
    Breakdown
        Its status is ``"n/a"``, with the reason, if the source has no answer or refuses the question.

    Raises
    ------
    TypeError
        If an argument is not of the class named above, or holds an axis: ``tokenprice.sweep`` takes axes.
    LookupError
        If there is no source or version of this name.

    Examples
    --------
    >>> step = ask("principles", "Llama 3 8B", "8x H100", batch=1, context=1024)
    >>> f"{1e3 * step.total:.2f} ms"
    '0.57 ms'
    """
    validation.one_of("source", key, answerers())
    model = catalog.load_model(model) if isinstance(model, str) else model
    system = catalog.load_system(system) if isinstance(system, str) else system
    workload = validation.instance("workload", workload or Workload(batch=1), Workload)
    _refuse_axes(**vars(workload) | work, chips=getattr(system, "count", None))
    workload = workload.replace(**work)
    answer = _answerer(key)
    if key != BOUND and isinstance(system, System):
        system = _on_own_chip(source_of(key), system)
    if assumptions is None:
        assumptions = version_assumptions(key)
    elif key == BOUND:
        raise TypeError(f"assumptions is {validation.shown(assumptions)}, but {BOUND} takes none")
    more = {} if assumptions is None else {"assumptions": assumptions}
    return run(key, answer, model, system, workload, layout, **more)


def _refuse_axes(**values):
    """Raise TypeError for arrays, since feasibility differs along an axis; only a sweep reports it for each point."""
    for name, value in values.items():
        if isinstance(value, (list, tuple)) or is_array(value) or hasattr(value, "dims"):
            raise TypeError(
                f"{name} is an axis of {np.size(value)} values, but one step is asked for: "
                f"tokenprice.sweep(model, machine, over={{{name!r}: [...]}}, by=...) answers each"
            )


def run(key, answer, model, system, workload, layout, **more):
    """Return the answer of a source's function; n/a with the reason if it raises ValueError or LookupError."""
    validation.instance("model", model, Transformer)
    try:
        return answer(model, system, workload, layout, **more)
    except (ValueError, LookupError) as refusal:
        return Breakdown(status="n/a", reason=f"refused: {refusal}", source=key)


def load(what, given, kind, own, view=None):
    """Load a ``"model"`` or ``"chip"`` as a source's own record ``kind``; every source's loader calls this.

    ``own`` has the source's records by name, or the tables of ``source.toml`` from which they are made; any other name
    is looked up in the catalogue. ``view`` converts a Transformer or an Accelerator to the source's record, if it
    has one of its own.
    """
    if isinstance(given, str) and given in own:
        entry = own[given]
        return entry if isinstance(entry, kind) else catalog.record(kind, entry, name=given)
    if isinstance(given, str):
        try:
            given = getattr(catalog, f"load_{what}")(given)
        except LookupError as error:
            known = f"; the source itself has {', '.join(own)}" if own else ""
            raise LookupError(f"{error}{known}") from None
    if isinstance(given, kind):
        return given
    return view(validation.instance(what, given, Transformer if what == "model" else Accelerator))


def needs(chip, *names):
    """Raise NotDescribed unless an Accelerator states all of these quantities."""
    for name in names:
        if getattr(chip, name) is None:
            raise NotDescribed(f"chip {chip.name or 'given'} states no {name}, which the source needs")


def stated_quantity(source, table, name, unit, meaning, **limits):
    """Declare a field of a record whose default is the value of this name in a table of ``source.toml``."""
    return quantity(meaning, unit, default=parse(load_source(source)[table][name], unit), **limits)


def public_names(package):
    """Return what ``import *`` takes from the globals of a source's package: what its own modules define."""
    own = package["__name__"]
    return sorted(
        name for name, value in package.items()
        if not (name.startswith("_") or isinstance(value, (ModuleType, partial)))
        and (getattr(value, "__module__", None) or own).startswith(own)
    )  # fmt: skip


def _answerer(key):
    if key == BOUND:
        return import_module("inferlib.principles").decode_step
    return source_package(key).decode_step


def version_assumptions(key):
    """Return the assumptions of a version of a source; None for any other key."""
    method = _version(key).get("assumptions")
    return method and getattr(source_package(key).Assumptions, method)()


def _on_own_chip(key, system):
    """Return the system with the source's own record of its chip, if it states one."""
    if system.chip.name not in metadata(key).get("chips", {}):
        return system
    return system.replace(chip=source_package(key).stated_chip(system.chip))
