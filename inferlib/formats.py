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


FORMATS = {
    name: Format(name, **row) for name, row in validation.read_package_toml(__file__, "formats.toml").items()
}
