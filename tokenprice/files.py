"""Files of a user: how they are read, and chips described by one."""

import tomllib
from collections.abc import Mapping

from inferlib import catalog, validation

MAX_BYTES = 4 * 10**6  # of a user's file; the longest config.json published lists 22,000 quantized tensors


def read_file(path):
    """Return the bytes of a user's small file; LookupError if it cannot be read, ValueError if it is too large."""
    try:
        if not path.is_file():
            raise LookupError(f"no file {str(path)!r}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LookupError(f"cannot read {validation.shown(str(path))}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes, but must have at most that")
    return content


def read_toml(path):
    """Parse a user's TOML file; LookupError or ValueError as in :func:`read_file`, ValueError if it is invalid."""
    from pathlib import Path  # imports half of urllib

    content = read_file(Path(path))
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None


def load_chips(path):
    """Read chips of your own from a TOML file; return a mapping of name to Accelerator.

    ``path``: a file with a table per chip, as in the catalogue's ``chips.toml``: ``peaks`` (format to ``"990
    TFLOP/s"``), ``memory_bandwidth`` and any other field of :class:`inferlib.system.Accelerator`, such as ``price``;
    ``sources`` may say where each number is stated. Raises LookupError if there is no such file, ValueError if it is
    not TOML. An invalid chip raises only when it is looked up: LookupError for an unknown field or format, ValueError
    for a wrong unit, missing peaks or a name of the catalogue. If no chip is valid, the first error is raised at once.
    """
    made = Chips()
    for name, entry in read_toml(path).items():
        try:
            made[name] = _own_chip(path, name, entry)
        except (ValueError, LookupError, TypeError) as error:
            made.wrong[name] = error
    if made.wrong and not made:
        raise next(iter(made.wrong.values()))
    return made


class Chips(dict):
    """Chips by name; invalid ones are in ``wrong`` and raise their error when they are looked up."""

    def __init__(self):
        super().__init__()
        self.wrong = {}

    def __contains__(self, name):
        return super().__contains__(name) or name in self.wrong

    def __missing__(self, name):
        raise self.wrong.get(name, KeyError(name))


def _own_chip(path, name, entry):
    """Validate a chip from a user's file; every error names the file and the chip."""
    where = f"{path}: chip {validation.shown(name)}"
    known = catalog.spellings("chip").get("".join(catalog.words(name)))
    peaks = entry.get("peaks") if isinstance(entry, Mapping) else None
    if not isinstance(peaks, Mapping) or not peaks:
        raise ValueError(f"{where} has no peaks, such as bf16 = '990 TFLOP/s'")
    if not {"bf16", "fp16", "tf32", "fp32"} & set(
        peaks
    ):  # every checkpoint multiplies attention and head in 16 bits or more
        raise ValueError(
            f"{where} has no peak in 16 bits, such as bf16 = '990 TFLOP/s', beside {', '.join(peaks)}"
        )
    if "memory_bandwidth" not in entry:
        raise ValueError(f"{where} has no memory_bandwidth, such as '3.35 TB/s'")
    if not name.isprintable() or len(name) > 80:
        raise ValueError(f"{where} needs a name of at most 80 printable characters")
    if known:  # otherwise its answers would count as measured
        raise ValueError(f"{where} has the name of the catalogue's {known!r}; rename yours")
    sources = entry.get("sources", {})
    if not isinstance(sources, Mapping) or not all(isinstance(text, str) for text in sources.values()):
        raise ValueError(f"{where} has sources {validation.shown(sources)}, but they must be texts by field")
    try:
        chip = catalog.read_chip(name, entry)
    except (ValueError, LookupError, TypeError) as error:
        raise type(error)(f"{where}: {error}") from None
    if chip.scale_up_size is not None and chip.scale_up_size % 1:
        raise ValueError(f"{where}: scale_up_size is {chip.scale_up_size:g}, but must be a whole number")
    if chip.price is not None:
        validation.number(f"{where}: price", chip.price)
    return chip
