"""A marker: a number with a unit in; right, which usual mistake, or how far off out.

otter-grader and nbgrader were looked at. Both compare a student's variables with tests that lie beside the notebook:
the same tests for everybody, with keys to be hidden and a server or a database to collect with. Here every student has
other numbers and the library that computes the answer is installed anyway, so the key is computed when it is asked for
and lies nowhere. Who wants to look it up can; it is an exercise, not an examination.
"""

import math
import re
from collections.abc import Callable

from book.teaching.problems.bank import shown
from book.teaching.problems.chains import find
from inferlib.equation import frozen
from inferlib.units import factor, parse

# Groups of three digits are thousands; any other comma stands for a point.
COMMA = re.compile(r"[+-]?(?:0*,\d+|\d+,\d{1,2}(?!\d)|\d+,\d{4,})")
NUMBER = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][+-]?\d+)?) *([^\d\s,.].*)?")
# Units of one kind, the one of SI first: who is asked in one may answer in another. After them, how else people write.
KINDS = (
    {"s": (), "ms": (), "us": (), "ns": (), "min": ()},
    {"B": (), "kB": ("KB",), "MB": (), "GB": (), "TB": (), "KiB": (), "MiB": (), "GiB": (), "TiB": ()},
    {"FLOP": (), "GFLOP": (), "TFLOP": (), "PFLOP": ()},
    {"usd": ("$", "dollar", "dollars", "USD"), "cent": ("cents", "ct")},
    {
        "1": ("", "tokens", "chips", "GPUs", "H100s", "users", "sequences", "experts", "times", "x"),
        "%": ("per cent",),
    },
    {"W*s": ("J",), "kW*s": ("kJ",)},
    {"W": (), "kW": ()},
    {"FLOP/B": ("FLOP/byte",)},
    {"1/s": ("tokens/s", "tok/s", "tokens per second")},
)


@frozen
class Verdict:
    """Whether an answer is right, and what is said to the student."""

    right: bool
    said: str

    def __bool__(self):
        return self.right

    def __repr__(self):
        return self.said


def read(answer, unit):
    """An answer as a plain number in SI; a text must have its unit, a number is in the unit that is asked for.

    Examples
    --------
    >>> read("12.3 ms", "s"), read("1,234.5", "1"), read(0.5, "ms")
    (0.0123, 1234.5, 0.0005)
    """
    if hasattr(answer, "magnitude"):
        return parse(f"{answer.magnitude} {answer.units:~}", _base(unit))
    text = re.sub("[µμ]", "u", str(answer).strip())
    if text.startswith("$"):
        text = f"{text[1:]} $"
    found, units = NUMBER.fullmatch(text), units_of(unit)
    if COMMA.match(text):
        raise ValueError("write a decimal point where you have a comma, as in 12.3")
    if not found or not any(character.isdigit() for character in found[1]):
        raise ValueError("that is no number, or no number and its unit")
    written, wanted = (found[2] or "").strip(), shown(unit) or "plain numbers"
    if isinstance(answer, str) and not written and unit != "1":
        raise ValueError(f"a number without its unit, and this answer is asked for in {wanted}")
    if written and written not in units:
        raise ValueError(f"{written} is no unit of this answer, which is asked for in {wanted}")
    return float(found[1].replace(",", "")) * (units[written] if written else 1.0) * factor(unit, _base(unit))


def _kind(unit):
    return next(kind for kind in KINDS if unit in kind)


def _base(unit):
    """The SI unit of the same kind, in which :func:`read` answers."""
    return next(iter(_kind(unit)))


def units_of(unit):
    """What may be written after a number: name to how many of ``unit`` it is.

    Examples
    --------
    >>> units_of("usd")["cents"], units_of("GB")["TB"]
    (0.01, 1000.0)
    """
    return {
        text: float(f"{factor(name, unit):.12g}")
        for name, others in _kind(unit).items() for text in (name, *others) if text
    }  # fmt: skip


def mark(asked, answer):
    """Say whether an answer is right, which usual mistake leads to it, or how far off it is.

    Examples
    --------
    >>> from book.teaching.problems import BANK
    >>> asked = BANK["cache-1"].asked("Ada")
    >>> mark(asked, asked.answer)
    Right: 504 KiB.
    >>> mark(asked, asked.key.value / 2 / 1024)
    Not yet: there are a key and a value.
    """
    if asked.options:
        return _marked_choice(asked, str(answer).strip().upper())
    try:
        value = read(answer, asked.unit)
    except ValueError as error:
        return Verdict(False, f"Not read: {error}.")
    key, near, exact = asked.key.value, asked.near, asked.exact
    if abs(value / key - 1) <= (1e-9 if exact else near):
        return Verdict(True, f"Right: {asked.answer}.")
    return Verdict(False, f"Not yet: {_slip(str(answer), value, asked) or _far(value / key)}.")


def _marked_choice(asked, letter):
    """What is said to who chooses an option by its letter."""
    if letter not in tuple("ABCD"):
        return Verdict(False, "Not read: choose one of the options, A to D.")
    option = asked.options["ABCD".index(letter)]
    right = option == asked.key.right
    return Verdict(right, "Right." if right else f"Not yet: {asked.key.wrong[option]}.")


def _slip(text, value, asked):
    """The mistake that leads to a value, by name: of rounding, of those that the problem knows, of a comma; or None."""
    key, near = asked.key.value, asked.near
    whole = asked.exact and {math.ceil(value): "up", math.floor(value): "down"}.get(round(key))
    if whole and value != int(value):
        return f"round {whole}: only a whole number is meant"
    if asked.exact and abs(value / key - 1) <= near:
        return "near, but a whole number under a limit is exact"
    for hint, wrong in asked.mistakes.items():
        if abs(value / wrong - 1) <= near:
            return hint
    if "," in text and abs(value / key / 1000 - 1) <= near:
        return "off by a factor of 10^3: a comma parts thousands here, or look at the prefix of the unit"
    mantissa = re.search(r"[\d.]+", text.replace(",", ""))[0]
    digits = len(mantissa.replace(".", "").lstrip("0"))
    if digits in (1, 2):
        unit = value / float(mantissa)
        if math.isclose(float(f"{key / unit:.{digits}g}") * unit, value):
            return "rounded too much: write three digits"
    return None


def _far(ratio):
    """How far off an answer is, in words."""
    if ratio <= 0:
        return "the answer is positive"
    times, side = (ratio, "large") if ratio > 1 else (1 / ratio, "small")
    for power in (3, 6, 9):
        if abs(times / 10.0**power - 1) < 0.08:
            return f"it is off by a factor of 10^{power}: look at the prefix of the unit"
    if times < 1.5:
        return f"it is {100 * abs(ratio - 1):.0f} % too {side}"
    return (
        f"it is {times:.1f} times too {side}" if times < 1000 else f"it is over a thousand times too {side}"
    )


def checker(student) -> Callable:
    """The ``check`` of a student's notebook.

    ``student``: the name on the sheet: it decides the parameters. Returns ``check("memory-3", "12.3 ms")``
    returns a :class:`Verdict`.

    Examples
    --------
    >>> check = checker("Ada")
    >>> check("cache-1", "504 KiB")
    Right: 504 KiB.
    """

    def check(name, answer=""):
        return mark(find(student, name), answer) if answer != "" else Verdict(False, "No answer yet.")

    return check
