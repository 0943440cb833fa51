"""Number formats; ``formats.toml`` has a row for each."""

from typing import NamedTuple

from inferlib import validation


class Format(NamedTuple):
    """A number format of weights or of the KV cache."""

    name: str
    bits: float  # per value
    stored: float  # per weight in a checkpoint, scales included
    multiplied: list  # formats in which a chip may multiply it, best first, before the chip's own
    like: str  # the format whose kernels are used if its own were not timed
    spelled: list = []  # other spellings


class Whole(float):
    """Bits or bytes of an integer format with a scale: int8 and int4, not fp8 and fp4."""


class WeightOnly(Whole):
    """Bits or bytes of fp4 weights whose activations keep 16 bits; they are multiplied like int4."""


FORMATS = {
    name: Format(name, **row) for name, row in validation.read_package_toml(__file__, "formats.toml").items()
}
# Every spelling of every format, to its name.
SPELLED = {word: row.name for row in FORMATS.values() for word in (row.name, *row.spelled)}


def nearest(size):
    """Return the format whose stored weights have about this many bytes; integer formats only for a ``Whole``."""
    if isinstance(size, WeightOnly):
        return "fp4 w4a16"
    rows = (row for row in FORMATS.values() if row.name.startswith("int") or not isinstance(size, Whole))
    return min(rows, key=lambda row: abs(row.stored / 8 - size)).name
