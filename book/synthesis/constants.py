"""Models with their own latencies and fractions, or all with those of ``vocabulary.toml``."""

import inspect
from dataclasses import fields

from inferlib import validation
from inferlib.equation import Record
from inferlib.papers.source import (
    run,
    source_of,
    source_package,
    sources,
    version_assumptions,
)
from inferlib.system import Accelerator
from tokenprice import predictors


def ask(key, model, system, workload, constants="own"):
    """Predict one decode step with the model of this key.

    ``constants``: ``"own"``: a source's own chip and latencies, if it states them; ``"same"``: the catalogue's chip and
    the latencies of ``vocabulary.toml`` for all sources.
    """
    answer = decode_step_of(key)
    if validation.one_of("constants", constants, ("own", "same")) == "own" or answer is None:
        return predictors.ask(key, model, system, workload)
    system, more = with_same(key, answer, system)
    return run(key, answer, model, system, workload, None, **more)


def decode_step_of(key):
    """Return the function with which a source, or the source of a version, answers; None for other models."""
    return getattr(source_package(key), "decode_step", None) if source_of(key) in sources() else None


def with_same(key, answer, system):
    """Return the system with the constants that are the same for all, and the assumptions to pass, if any."""
    printed = version_assumptions(key) or default_assumptions(answer)
    same = predictors.vocabulary()["same"]
    try:
        chip = source_package(key).load_chip(system.chip)
    except (ValueError, LookupError):
        chip = None  # not a chip of this source; its decode_step raises the error
    # only an Accelerator takes the constants
    if isinstance(chip, Accelerator):
        system = system.replace(chip=with_values(chip, same))
    return system, {} if printed is None else {"assumptions": with_values(printed, same)}


def with_values(record, values):
    """Return a record with other values for the named fields, in nested records too."""
    changed = {}
    for field in fields(record):
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
    """Return the default ``assumptions`` of a source's ``decode_step``, or None."""
    parameter = inspect.signature(answer).parameters.get("assumptions")
    return parameter and parameter.default
