"""Aliases of options: names in vLLM, SGLang, TensorRT-LLM and GuideLLM, and names of earlier versions.

Verbs and the terminal accept them; ``aliases.toml`` lists them. A name that means something else in those programs
raises an error that says what to use instead.
"""

from inferlib import validation

_TABLE = validation.read_package_toml(__file__, "aliases.toml")
ALIASES = {
    other: own for part in ("former", "others") for own, names in _TABLE[part].items() for other in names
}
REFUSED = _TABLE["refused"]


def resolve(options):
    """Replace aliases by the options' own names, without options that are None.

    ValueError if an option is given twice, or is another quantity.

    As in the engines, ``quantization`` takes precedence over ``dtype``.

    Examples
    --------
    >>> resolve({"isl": 1024, "max_concurrency": 8, "batch": 1})
    {'prompt_tokens': 1024, 'concurrency': 8, 'batch': 1}
    """
    found = {}
    given = {}
    for name, value in options.items():
        if value is None or name == "dtype" and options.get("quantization") is not None:
            continue
        if name in REFUSED:
            raise ValueError(f"{name} is {validation.short(repr, value)}, which {REFUSED[name]}")
        own = ALIASES.get(name, name)
        if own in found:
            raise ValueError(f"{own} is given twice: as {given[own]} and as {name}")
        found[own] = value
        given[own] = name
    return found
