"""Number formats: one table with a row for each."""

from typing import NamedTuple


class Format(NamedTuple):
    """A number format of weights or of the KV cache."""

    name: str
    bits: float  # per value
    stored: float  # per weight in a checkpoint, scales included
    multiplied: tuple  # formats in which a chip may multiply it, best first, before the chip's own
    like: str  # the format whose kernels are used if its own were not timed
    spelled: tuple = ()  # other spellings


class Whole(float):
    """Bits or bytes of an integer format with a scale: int8 and int4, not fp8 and fp4."""


class WeightOnly(Whole):
    """Bits or bytes of fp4 weights whose activations keep 16 bits; they are multiplied like int4."""


# Of formats with equally many bits the first is used. Chips without 4 bits widen MXFP4 of experts to 16, NVFP4 to 8.
FORMATS = {row.name: row for row in (
    Format("fp32", 32, 32, ("fp32",), "bf16", ("float32",)),
    Format("tf32", 32, 32, ("tf32",), "bf16"),
    Format("bf16", 16, 16, ("bf16",), "", ("bfloat16",)),
    Format("fp16", 16, 16, ("fp16",), "bf16", ("float16", "half")),
    Format("fp8", 8, 8, ("fp8",), "bf16", ("float8", "fp8_e4m3", "fp8_e5m2", "fp8_per_channel_per_token")),
    Format("fp8 block", 8, 8, ("fp8",), "fp8"),
    Format("int8", 8, 8, (), "fp8", ("w8a8", "8bit")),
    Format("fp6", 6, 6 + 8 / 32, ("fp6", "fp8"), "fp8", ("mxfp6", "fp6_e2m3", "fp6_e3m2")),
    Format("int4", 4, 4 + 20 / 128, (), "bf16", ("awq", "gptq", "w4a16", "4bit", "uint4")),
    Format("fp4", 4, 4 + 8 / 16, ("fp4", "fp8"), "bf16", ("nvfp4", "nvfp4_awq")),
    Format("fp4 w4a16", 4, 4 + 8 / 16, (), "int4", ("w4a16_nvfp4", "nvfp4a16")),
    Format("mxfp4", 4 + 8 / 32, 4 + 8 / 32, ("fp4",), "fp4"),
)}  # fmt: skip
# Every spelling of every format, to its name.
SPELLED = {word: row.name for row in FORMATS.values() for word in (row.name, *row.spelled)}


def nearest(size):
    """Return the format whose stored weights have about this many bytes; integer formats only for a ``Whole``."""
    if isinstance(size, WeightOnly):
        return "fp4 w4a16"
    rows = (row for row in FORMATS.values() if row.name.startswith("int") or not isinstance(size, Whole))
    return min(rows, key=lambda row: abs(row.stored / 8 - size)).name
