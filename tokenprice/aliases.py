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
    """Replace aliases by the options' own names; ValueError if an option is given twice, or is another quantity.

    As in the engines, ``quantization`` takes precedence over ``dtype``.

    Examples
    --------
    >>> resolve({"isl": 1024, "max_concurrency": 8, "batch": 1})
    {'prompt_tokens': 1024, 'concurrency': 8, 'batch': 1}
    """
    if options.get("quantization") is not None:
        options = {name: value for name, value in options.items() if name != "dtype"}
    found = {}
    given = {}
    for name, value in options.items():
        if name in REFUSED:
            raise ValueError(f"{name} is {validation.short(repr, value)}, which {REFUSED[name]}")
        own = ALIASES.get(name, name)
        if own in found:
            raise ValueError(f"{own} is given twice: as {given[own]} and as {name}")
        found[own] = value
        given[own] = name
    return found
