"""Numbers in a chapter's text that state a result, each bound to the expression that computes it.

The expression follows its number in a comment that neither JupyterLab nor the page shows:
``a token takes 5.19 ms<!--= answer.total--> here``. A number from the question itself is marked ``<!--given-->``.
The chapter's last cell before the takeaways, ``check``, evaluates all expressions and formats each number again, with
the same digits, unit or words. A test compares the text with the stored output of that cell, and the built page shows
the stored numbers.
"""

import json
import math
import re
from pathlib import Path

import numpy as np

BOOK = Path(__file__).parent
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NAMES = dict(enumerate(ONES))
for _tens, _ten in enumerate(TENS, 2):
    NAMES |= {10 * _tens + n: f"{_ten}-{ONES[n]}" if n else _ten for n in range(10)}
NAMES |= {100 * n: f"{ONES[n]} hundred" for n in range(1, 10)}
NAMES |= {1000 * n: f"{NAMES[n]} thousand" for n in range(1, 99)}
CARDINALS = {word: n for n, word in NAMES.items()} | {
    "a hundred": 100,
    "a thousand": 1000,
    "a million": 10**6,
}
CARDINALS |= {"none": 0, "no": 0, "once": 1, "twice": 2, "double": 2, "doubles": 2}
FRACTIONS = {"half": 1 / 2}
PARTS = """3 third 4 quarter 5 fifth 6 sixth 7 seventh 8 eighth 9 ninth 10 tenth 12 twelfth 16 sixteenth 18 eighteenth
20 twentieth 30 thirtieth 50 fiftieth 100 hundredth""".split()
for _under, _part in zip(map(int, PARTS[::2]), PARTS[1::2], strict=True):
    FRACTIONS[f"{'an' if _part[0] == 'e' else 'a'} {_part}"] = 1 / _under
    several = range(2, _under) if _under in (3, 4, 5, 6, 8, 10) else ()
    FRACTIONS |= {f"{ONES[n]} {_part}s": n / _under for n in several if math.gcd(n, _under) == 1}
UNITS = {f"{prefix}{unit}": 1e3**power for power, prefix in enumerate(("", "K", "M", "G", "T", "P"))
         for unit in ("B", "B/s", "FLOP", "FLOP/s")}  # fmt: skip
UNITS |= {
    "ms": 1e-3,
    "μs": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
    "%": 1e-2,
    "million": 1e6,
    "billion": 1e9,
    "KiB": 1024,
}


def _any(words):
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


DIGITS = rf"[-−+]?\\?\$?(\d[\d,]*(?:\.\d+)?)(?:\s?({_any(UNITS)}))?(?![\w-])"
WORDS = rf"(?<![\w-])(?i:({_any(FRACTIONS)})|({_any(CARDINALS)})(fold| times)?)(?![\w-])"
WRITTEN = re.compile(rf"(?:(?<![\w.]){DIGITS}|{WORDS})$")
COMMENT = re.compile(r"<!--= ?(.*?) ?-->", re.S)
MARKS = re.compile(rf"{COMMENT.pattern}|<!--given-->", re.S)
ABOVE = re.compile(r"(?<!never )(?<!no )(?:more than|over|above|at least|beyond|exceeds)(?: an?)?\s+$", re.I)
BELOW = re.compile(
    r"(?:less than|under|below|fewer than|at most|up to|(?:no|never) more than|within)(?: an?)?\s+$", re.I
)
JUST_BELOW = re.compile(r"(?:nearly|almost|not quite|close to|just under)(?: an?)?\s+$", re.I)
JUST_ABOVE = re.compile(r"(?:little more than|a little over|just over)(?: an?)?\s+$", re.I)
ABOUT = re.compile(r"(?:about|some|roughly|around|near)(?: an?)?\s+$", re.I)


def in_words(value, form="count"):
    """Return a number in words: a fraction ("three tenths"), a multiple ("twice"), or a count ("seven").

    Examples
    --------
    >>> in_words(0.26, "fraction"), in_words(2.1, "multiple"), in_words(7), in_words(0)
    ('a quarter', 'twice', 'seven', 'none')
    >>> in_words(0.38)
    '0.38'
    >>> in_words(1, "multiple"), in_words(0, "fraction"), in_words(1, "fraction"), in_words(3, "fold")
    ('one', 'none', 'one', 'threefold')
    """
    if form == "fraction" and 0 < value < 1:
        return min(FRACTIONS, key=lambda words: abs(math.log(value / FRACTIONS[words])))
    whole = round(value)
    if form == "multiple" and whole > 1:
        return "twice" if whole == 2 else f"{NAMES.get(whole, whole)} times"
    if form == "fold":
        return f"{NAMES.get(whole, whole)}fold"
    if value and not whole:
        return f"{value:.2g}"
    return "none" if whole == 0 else NAMES.get(whole, f"{whole:,}")


def read(written):
    """Return a written number's text, value, form (or decimals), tolerance and unit."""
    match = WRITTEN.search(written)
    if not match:
        raise ValueError(f"no number stands before the comment: {written[-60:]!r}")
    digits, unit, fraction, cardinal, times = match.groups()
    if fraction:
        value = FRACTIONS[fraction.lower()]
        return match[0], value, "fraction", 0.05 * value, ""
    if cardinal:
        value = CARDINALS[cardinal.lower()]
        form = {"fold": "fold", " times": "multiple"}.get(
            times, "multiple" if "wice" in cardinal else "count"
        )
        loose = 0.12 if form != "count" or value < 5 else 0.05
        return match[0], value, form, max(0.05, 0.5 if 5 <= value <= 10 else loose * value), ""
    value, decimals = float(digits.replace(",", "")), len(digits.partition(".")[2])
    zeros = 0 if decimals else len(digits) - len(digits.rstrip("0"))
    room = min(10**zeros / 2, max(0.05 * value, 0.5)) if zeros else 10**-decimals / 2
    return match[0], value, decimals, room * (1 + 1e-9), unit or ""


def resay(before, value):
    """Return the number at the end of a text, as written and as it should be written for a value.

    Digits keep their decimals and unit, words are rounded by `in_words`, and a bound ("more than", "nearly") holds if
    the value is on the right side of the number and not far from it.

    Examples
    --------
    >>> resay("takes 5.19 ms", 0.005194), resay("takes 5.19 ms", 0.0062)
    (('5.19 ms', '5.19 ms'), ('5.19 ms', '6.20 ms'))
    >>> resay("more than half", 0.59), resay("three tenths", 0.26), resay("twice", 2.9)
    (('half', 'half'), ('three tenths', 'a quarter'), ('twice', 'three times'))
    """
    written, number, form, room, unit = read(before)
    value = abs(float(value)) / UNITS.get(unit, 1)
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number to say")
    words, off = before[: -len(written)], value - number
    one_sided = (ABOVE, 1, 0.34), (BELOW, -1, 0.34), (JUST_BELOW, -1, 0.12), (JUST_ABOVE, 1, 0.12)
    for side, sign, reach in one_sided:
        if side.search(words) and not (sign > 0 and JUST_ABOVE.search(words) and reach > 0.2):
            holds = -1e-9 * number <= sign * off <= reach * number
            break
    else:
        holds = abs(off) <= room * (2 if ABOUT.search(words) and form != "fraction" else 1)
        if form == "fraction" and abs(off) <= 0.12 * number:
            holds = holds or FRACTIONS.get(in_words(value, form)) == FRACTIONS[written.lower()]
    if holds:
        return written, written
    if isinstance(form, str):
        said = in_words(value, form)
    else:
        said = re.sub(r"\d[\d,]*(?:\.\d+)?", lambda _: f"{value:,.{form}f}", written, count=1)
    if said.lower() == written.lower():  # on the wrong side of a bound, or too far for the same word
        said = f"{value:.2g}"
    return written, said[0].upper() + said[1:] if written[0].isupper() else said


def plain(text):
    """Return a text without its number comments."""
    return MARKS.sub("", text)


def unbound(text):
    """Return a text without bound numbers and their comments."""
    parts = COMMENT.split(_unbroken(text).replace("<!--given-->", ""))[::2]
    return "".join(one[: -len(WRITTEN.search(one)[0])] for one in parts[:-1]) + parts[-1]


def bound(text):
    """Yield, for each comment of a text, the text before it and its expression."""
    text = _unbroken(text)
    for comment in COMMENT.finditer(text):
        yield plain(text[: comment.start()]), comment[1]


def _unbroken(text):
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def cells_of(chapter):
    return json.loads((BOOK / f"{chapter}.ipynb").read_text("utf-8"))["cells"]


def bound_in(chapter):
    """Return the results of `bound` for all text of a chapter."""
    texts = ("".join(cell["source"]) for cell in cells_of(chapter) if cell["cell_type"] == "markdown")
    return [one for text in texts for one in bound(text)]


def stored(chapter):
    """Return the numbers in the stored output of a chapter's ``check``, each with its expression."""
    for cell in cells_of(chapter):
        if cell["cell_type"] == "code" and "prose_numbers.check(" in "".join(cell["source"]):
            lines = "".join(cell["outputs"][0]["data"]["text/plain"]).splitlines()
            return [tuple(line.split(" = ", 1)) for line in lines]
    return []


class Check:
    """The bound numbers of a chapter; shows those that differ, and prints each with its expression."""

    def __init__(self, rows):
        self.rows = (
            rows  # text before the number, the number, what it should be (None if it fails), expression
        )

    def __repr__(self):
        return "\n".join(
            f"{said or '?'} = {' '.join(expression.split())}" for *_, said, expression in self.rows
        )

    def _repr_markdown_(self):
        changed = [row for row in self.rows if row[1] != row[2]]
        if not changed:
            return f"*The {len(self.rows)} results that the text above states are computed; all come out as written.*"
        lines = ["*With these inputs the text above no longer holds where it says:*", ""]
        for before, written, said, _ in changed:
            words = " ".join(before.split()[-8:]).replace("$", r"\$")
            new = f" **{said}**" if said else ""
            lines.append(f"- … {words} ~~{written}~~{new}".replace("$", r"\$").replace(r"\\$", r"\$"))
        return "\n".join(lines)


def check(chapter, names):
    """Evaluate and format every bound number of a chapter again.

    Parameters
    ----------
    chapter : str
        Name of the chapter, such as "steinhardt2022".
    names : dict
        Names for the expressions: the chapter's ``globals()``.
    """
    rows = []
    for before, expression in bound_in(chapter):
        written = read(before)[0]
        try:
            said = resay(before, eval(" ".join(expression.split()), {"math": math, "np": np, **names}))[1]
        except Exception:  # the reader's case has no such number
            said = None
        line = re.split(r"\n\s*\n|(?<=[.?!])\s", before[: -len(written)])[-1]
        rows.append((line, written, said, expression))
    return Check(rows)
