"""What all sources share: where they are found, how they are asked, and the common names of their terms.

A source is found by name when it is asked, so that nothing here changes when one is added. One that cannot answer, or
refuses the question, says n/a with the reason.
"""

import dataclasses
import inspect
import os
import pkgutil
from functools import cache, partial
from importlib import import_module
from types import ModuleType

from inferlib import catalog, validation
from inferlib.equation import Record, load_source
from inferlib.optional_imports import is_array, np
from inferlib.system import Accelerator, Breakdown, Layout, System, Workload
from inferlib.transformer import Transformer

BOUND = "principles"


def sources() -> list[str]:
    """The keys of all sources, oldest first: every folder beside this file is one.

    Examples
    --------
    >>> sources()[0]
    'steinhardt2022'
    """
    return list(_sources())


@cache
def _sources():
    found = [module.name for module in pkgutil.iter_modules([os.path.dirname(__file__)]) if module.ispkg]
    return tuple(sorted(found, key=lambda key: (metadata(key)["date"], key)))


@cache
def metadata(key: str) -> dict:
    """What a room says of its source (``about`` in ``source.toml``): label, question, date, colour, scope.

    ``scope`` maps each ingredient to ``"yes"``, ``"partly"`` or ``"no"``; ``terms`` (terms of its answer to
    common names), ``chips`` (chips of the catalogue to its own) and ``versions`` (further readings of its
    assumptions: their label, and the method of its ``Assumptions`` that makes them) where it has some.
    """
    return load_source(key)["about"]


def versions(source: str | None = None) -> list[str]:
    """Further versions of a source, or of all: ``key.name`` of each reading that its ``source.toml`` names.

    A version answers beside its source, and is never counted as another source.

    Examples
    --------
    >>> versions("liminal2025")
    ['liminal2025.eq8']
    """
    keys = sources() if source is None else [source]
    return [f"{key}.{name}" for key in keys for name in metadata(key).get("versions", {})]


def source_of(key):
    """The source of a key: the key itself, or the source of a version."""
    return key.split(".")[0]


def answerers() -> list[str]:
    """Keys of all models that can be asked: the bound, and every source followed by its versions."""
    return [BOUND, *(name for key in sources() for name in (key, *versions(key)))]


def label(key: str) -> str:
    """The name of a source, a version or the bound in pictures and tables.

    Examples
    --------
    >>> label("pope2022")
    'Pope et al. 2022'
    """
    if validation.one_of("source", key, answerers()) == BOUND:
        return "bound of the peaks"
    return _version(key).get("label") or metadata(key)["label"]


def _version(key):
    """What ``source.toml`` says of a version; nothing for any other."""
    source, _, name = key.partition(".")
    return metadata(source)["versions"][name] if name else {}


def source_package(key):
    """The module of the room of a source, or of the source of a version."""
    return import_module(f"inferlib.papers.{validation.one_of('source', source_of(key), sources())}")


def ask(
    key: str,
    model: Transformer | str,
    system: System | str,
    workload: Workload | None = None,
    layout: Layout | None = None,
    *,
    constants: str = "own",
    **work,
) -> Breakdown:
    """One decode step, as a source sees it.

    Parameters
    ----------
    key : str
        A source, a version of one, or ``"principles"`` (the bound).
    model : Transformer or str
    system : System or str
        Such as ``"8x H100"``.
    workload : Workload, optional
    layout : Layout, optional
        Each chooses its own when none is given.
    constants : {"own", "same"}
        A source's own chip and latencies where it states them, or for all the catalogue's chip and the latencies
        of ``vocabulary.toml``.
    **work
        Fields of :class:`inferlib.Workload`, such as ``batch=32``: of the one given, or of one sequence.

    Returns
    -------
    Breakdown
        Its status is ``"n/a"``, with the reason, where there is no answer or the room refuses the question.

    Raises
    ------
    TypeError
        If an argument is not of the class named above, or holds an axis: :func:`inferlib.papers.sweep` takes axes.
    LookupError
        If nobody is called so.

    Examples
    --------
    >>> step = ask("principles", "Llama 3 8B", "8x H100", batch=1, context=1024)
    >>> f"{1e3 * step.total:.2f} ms"
    '0.57 ms'
    """
    validation.one_of("source", key, answerers())
    validation.one_of("constants", constants, ("own", "same"))
    model = catalog.load_model(model) if isinstance(model, str) else model
    system = catalog.load_system(system) if isinstance(system, str) else system
    _refuse_axes(**(vars(workload) if workload else {}) | work, chips=getattr(system, "count", None))
    workload = (workload or Workload(batch=1)).replace(**work) if work or workload is None else workload
    answer = _answerer(key)
    if isinstance(answer, Breakdown):
        return answer
    more = {}
    if key != BOUND and isinstance(system, System):
        system, more = with_constants(key, answer, system, constants)
    return run(key, answer, model, system, workload, layout, **more)


def _refuse_axes(**values):
    """A step is feasible or not, which differs along an axis; only a sweep says so of each point."""
    for name, value in values.items():
        if isinstance(value, (list, tuple)) or is_array(value) or hasattr(value, "dims"):
            raise TypeError(
                f"{name} is an axis of {np.size(value)} values, but one step is asked for: "
                f"papers.sweep(model, system, workload, over={{{name!r}: [...]}}) answers each"
            )


def run(key, answer, model, system, workload, layout, **more):
    """The breakdown of a function that answers; n/a with the reason where it refuses the question."""
    validation.instance("model", model, Transformer)
    try:
        return answer(model, system, workload, layout, **more)
    except (ValueError, LookupError) as refusal:
        return Breakdown(status="n/a", reason=f"refused: {refusal}", source=key)


def load(what, given, kind, names, stated, view):
    """A ``"model"`` or ``"chip"`` in a source's own record ``kind``: the loader of every source's package.

    One of the ``names`` is made by ``stated(name)``. Any other name is the catalogue's. What is not of the ``kind``
    after that is a Transformer or an Accelerator, of which ``view`` makes the source's record.
    """
    if isinstance(given, str):
        try:
            given = stated(given) if given in names else getattr(catalog, f"load_{what}")(given)
        except LookupError as error:
            own = f"; the source itself has {', '.join(names)}" if names else ""
            raise LookupError(f"{error}{own}") from None
    if isinstance(given, kind):
        return given
    return view(validation.instance(what, given, Transformer if what == "model" else Accelerator))


def public_names(package):
    """What ``import *`` takes from the globals of a source's package: what its own modules define."""
    own = package["__name__"]
    return sorted(
        name for name, value in package.items()
        if not (name.startswith("_") or isinstance(value, (ModuleType, partial)))
        and (getattr(value, "__module__", None) or own).startswith(own)
    )  # fmt: skip


def printed_range(key, model, system, workload):
    """The answers of a version at both ends of the range that its source prints for its constant.

    Examples
    --------
    >>> import inferlib
    >>> asked = inferlib.load_model("Llama 3 70B"), inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> steps = printed_range("liminal2025.eq8", *asked, inferlib.Workload(32, 4096))
    >>> [f"{1e3 * step.total:.2f} ms" for step in steps]
    ['14.31 ms', '17.75 ms']
    """
    entry = _version(validation.one_of("version", key, versions()))
    makes, system = (
        getattr(source_package(key).Assumptions, entry["assumptions"]),
        _on_own_chip(source_of(key), system),
    )
    answer, ends = _answerer(key), entry.get("ends", ())
    return tuple(answer(model, system, workload, assumptions=makes(end)) for end in ends)


def _answerer(key):
    if key == BOUND:
        return import_module("inferlib.principles").decode_step
    place = source_package(key)
    if not hasattr(place, "decode_step"):
        return Breakdown(status="n/a", reason="no chapter of this book computes it", source=key)
    return place.decode_step


def with_constants(key, answer, system, constants):
    """The system with the constants asked for, and the assumptions to pass, if any."""
    version = _version(key).get("assumptions")
    printed = getattr(source_package(key).Assumptions, version)() if version else default_assumptions(answer)
    if constants == "own":
        return _on_own_chip(source_of(key), system), {"assumptions": printed} if version else {}
    try:
        chip = source_package(key).load_chip(system.chip)
    except (ValueError, LookupError):
        chip = None  # no chip of this source: its decode_step will say so
    # constants are put into an Accelerator alone
    if isinstance(chip, Accelerator):
        system = system.replace(chip=with_values(chip, same()))
    if printed is None:
        return system, {}
    return system, {"assumptions": with_values(printed, same())}


def with_values(record, values):
    """A record with other values for its fields of these names, and for those of the records that it holds."""
    changed = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple) and value and all(isinstance(part, Record) for part in value):
            parts = tuple(with_values(part, values) for part in value)
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                changed[field.name] = parts
        elif field.name in values:
            new = values[field.name]
            changed[field.name] = new(value) if callable(new) else new
    return record.replace(**changed) if changed else record


def default_assumptions(answer):
    """The default of ``assumptions`` of a source's ``decode_step``, or None."""
    parameter = inspect.signature(answer).parameters.get("assumptions")
    return parameter and parameter.default


def _on_own_chip(key, system):
    """The system with the source's own record of its chip, where it states one."""
    if system.chip.name not in metadata(key).get("chips", {}):
        return system
    return system.replace(chip=source_package(key).stated_chip(system.chip))


@cache
def vocabulary():
    """``vocabulary.toml``: common names of terms, and common constants."""
    return validation.read_package_toml(__file__, "vocabulary.toml")


def same():
    """The latencies and fractions that all sources are given when all use the same constants."""
    return vocabulary()["same"]


def common_name(source, term):
    """The common name of a source's term.

    Examples
    --------
    >>> common_name("liminal2025", "network"), common_name("mazurek2025", "attention arithmetic")
    ('collective latency', 'arithmetic')
    """
    exact = metadata(source).get("terms", {}) if source in sources() else {}
    if term in exact:
        return exact[term]
    return next((name for word, name in vocabulary()["rules"] if word in term.lower()), "other")


def common_terms(step: Breakdown) -> dict[str, float]:
    """The counted terms of a feasible answer under their common names, in seconds; they add up to its total.

    Every common name is there, zero where the answer has no such term or hides it behind a longer one.
    """
    shares = dict.fromkeys(vocabulary()["common"], 0.0)
    for term, seconds in step.critical.items():
        shares[common_name(step.source, term)] += float(seconds)
    return shares
