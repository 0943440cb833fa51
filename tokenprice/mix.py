"""A mix: prompts and answers of many lengths, spread evenly or as a file of requests has them, and what they share."""

from functools import cached_property
from itertools import pairwise
from math import fsum, inf, log
from sys import float_info

from inferlib import checks
from inferlib.config import content_of
from inferlib.equation import Record, frozen
from inferlib.extras import np
from inferlib.ops import ceil
from inferlib.system import Breakdown

BLOCK = 512  # tokens of a prompt that have one name, as in Mooncake's traces
PARTS = 60  # equally likely lengths that stand for a spread
WINDOW = 20  # requests of a window in which arrivals are counted
# How files call arrival, prompt and answer, and the seconds of one unit of an arrival.
NAMES = (
    ("arrival", "prompt", "output", 1.0),
    ("timestamp", "input_length", "output_length", 1e-3),  # Mooncake
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens", 1.0),  # Azure
    ("Timestamp", "Request tokens", "Response tokens", 1.0),  # BurstGPT
)


class Lengths(float):
    """Equally likely numbers of tokens; whoever does not ask for more has a number, their mean.

    ``said`` is how they were asked for; nothing where they were found in a file.
    """

    points: tuple
    said: str

    def __new__(cls, points, said=""):
        made = super().__new__(cls, fsum(points) / len(points))
        made.points, made.said = tuple(points), said
        return made

    def __getnewargs__(self):
        return self.points, self.said

    def __eq__(self, other):
        return isinstance(other, Lengths) and self.points == other.points

    def __hash__(self):
        return hash(self.points)


def spread(quantiles, said) -> Lengths:
    """What lies between so many quantiles, of which two that are neighbours have equal parts of all between them.

    Examples
    --------
    >>> even, skewed = spread((1000, 3000), ""), spread((0, 100, 1000), "")
    >>> float(even), float(skewed), min(even.points) > 1000
    (2000.0, 300.0, True)
    """
    points = []
    for k in range(PARTS):
        part, within = divmod((k + 0.5) / PARTS * (len(quantiles) - 1), 1)
        low, high = quantiles[int(part) : int(part) + 2]
        points.append(low + within * (high - low))
    return Lengths(points, said)


def points(length) -> tuple:
    """Equally likely numbers of tokens, or the one that there is."""
    return length.points if isinstance(length, Lengths) else (length,)


def fresh(prompt, cached) -> list:
    """Tokens of each of the equally likely prompts that are not in the cache."""
    prompts, held = points(prompt), points(cached)
    held = held if len(held) > 1 else held * len(prompts)
    return [whole - part for whole, part in zip(prompts, held, strict=True)]


def pieces(prompt, cached, chunk):
    """Steps in which a prompt is read, so many tokens in each, in the mean; a part of one where several fit into it."""
    steps = [one / chunk if one <= chunk else ceil(one / chunk) for one in fresh(prompt, cached)]
    return sum(steps) / len(steps)


def array(length):
    """Equally likely lengths as an array; a number or a symbol as it is."""
    if not isinstance(length, Lengths):
        return length
    return np.array(length.points)


def average(read) -> Breakdown:
    """The mean of readings of many prompts: each term as long as it counts."""
    stages = []
    for stage in read.grouped:
        each = [sum(group.values()) for group in stage]
        for group, seconds in zip(stage, each, strict=True):
            counts = seconds >= np.max(np.broadcast_arrays(*each), axis=0)
            stages.append({name: float(np.mean(term * counts)) for name, term in group.items()})
    return Breakdown(tuple(stages), source=read.source)


def drawn(mean) -> tuple:
    """Equally likely lengths of answers that end with equal probability after each token, and have this mean.

    The means of equal parts of an exponential distribution, so the mean is kept, behind the first token.

    Examples
    --------
    >>> lengths = drawn(500)
    >>> round(sum(lengths) / len(lengths), 6), round(max(lengths)), drawn(1)[0]
    (500.0, 2543, 1.0)
    """
    ends = [PARTS / (PARTS - k) for k in range(PARTS)]
    tails = [(1 + log(end)) / end for end in ends] + [0.0]
    return tuple(1 + (mean - 1) * PARTS * (tails[k] - tails[k + 1]) for k in range(PARTS))


def varies(lengths) -> float:
    """Variance of equally likely lengths over the square of their mean; 0 where all are equal."""
    return fsum(one**2 for one in lengths) * len(lengths) / fsum(lengths) ** 2 - 1


def parts(lengths) -> tuple:
    """A few equally likely lengths in place of many: the means of equal parts of them, in order."""
    ordered, n = sorted(lengths), min(PARTS, len(lengths))
    ends = [k * len(ordered) // n for k in range(n + 1)]
    return tuple(fsum(ordered[low:high]) / (high - low) for low, high in pairwise(ends))


def seen(q) -> float:
    """Tokens before a token of an answer, in the mean of all tokens: long answers have more of them."""
    if q.trace is not None:
        pairs = tuple(zip(q.prompt.points, q.output.points, strict=True))
        return fsum(output * (prompt + output / 2) for prompt, output in pairs) / fsum(q.output.points)
    return q.prompt + (1 + varies(q.answers)) * q.output / 2


@frozen
class Trace(Record):
    """Requests as somebody recorded them: seconds since the first, tokens, and the names of the blocks of a prompt."""

    path: str
    arrivals: tuple
    prompt: Lengths
    output: Lengths
    blocks: tuple

    def __repr__(self):
        return self.path

    @property
    def rate(self) -> float:
        """Requests a second."""
        return (len(self.arrivals) - 1) / self.arrivals[-1]

    @cached_property
    def bursts(self) -> float:
        """How many times as much requests of a window vary as those that come at random."""
        width = self.arrivals[-1] * WINDOW / len(self.arrivals)
        counts = [0] * (int(self.arrivals[-1] / width) + 1)
        for came in self.arrivals:
            counts[int(came / width)] += 1
        return varies(counts[:-1]) * fsum(counts[:-1]) / len(counts[:-1])

    @cached_property
    def distances(self) -> tuple:
        """Of each block, those before it included, how many others were used since: what it takes to be kept."""
        from bisect import bisect_left, insort

        used: list = []
        when: dict = {}
        found = []
        for number, names in enumerate(self.blocks):
            known = (when.get(name) for name in names)
            back, most = [], 0.0
            for last in known:
                most = inf if last is None else max(most, len(used) - bisect_left(used, last))
                back.append(most)
            found.append(tuple(back))
            for place, name in enumerate(names):
                if name in when:
                    del used[bisect_left(used, when[name])]
                when[name] = (number, -place)  # the end of a prompt is forgotten first
                insort(used, when[name])
        return tuple(found)

    def cached(self, room) -> Lengths:
        """Tokens of each prompt that a cache of so many still holds, which forgets what was used longest ago."""
        held = (sum(back * BLOCK <= room for back in each) for each in self.distances)
        return Lengths([min(n * BLOCK, all - 1) for n, all in zip(held, self.prompt.points, strict=True)])

    @property
    def shared(self) -> Lengths:
        """Tokens of each prompt that some prompt before it began with."""
        return self.cached(float_info.max)

    def routes(self, cached, lines) -> list:
        """The machine of each request: that which holds half of its prompt or more, else the one drawn for it."""
        where: dict = {}
        found = []
        for number, drawn in enumerate(lines):
            one = number % len(self.blocks)
            held, names = cached.points[one], self.blocks[one]
            there = where.get(names[int(held / BLOCK) - 1]) if held >= self.prompt.points[one] / 2 else None
            found.append(drawn if there is None else there)
            where.update(dict.fromkeys(names, found[-1]))
        return found


def trace(name, path) -> Trace:
    """A file of requests: JSON lines or a table of arrival, prompt and output, with names of public traces too.

    What prompts share is ``hash_ids``, names of their blocks of 512 tokens (numbers, or ranges such as ``0 4-9``), or a
    ``prefix`` by name with the tokens ``shared``.
    """
    try:
        rows = _rows(path)
    except ValueError as wrong:
        raise ValueError(f"{name} {str(path)!r} is neither JSON lines nor a table: {wrong}") from None
    names = next((one for one in NAMES if rows and {*one[:3]} <= {*rows[0]}), None)
    if names is None:
        known = "; ".join(", ".join(one[:3]) for one in NAMES)
        raise ValueError(f"{name} {str(path)!r} holds no requests: give lines with {known}")
    *fields, unit = names
    found = []
    for row in rows:
        try:
            came, *tokens = (row[field] for field in fields)
            tokens = [checks.number(field, float(n)) for field, n in zip(fields[1:], tokens, strict=True)]
            found.append((_when(came) * unit, *tokens, _blocks(row)))
        except (ValueError, KeyError, TypeError) as wrong:
            raise ValueError(f"{name} {str(path)!r}, request {len(found) + 1}: {wrong}") from None
    found.sort(key=lambda one: one[0])
    arrivals, prompt, output, blocks = zip(*found, strict=True)
    if not arrivals[-1] > arrivals[0]:
        raise ValueError(f"{name} {str(path)!r} needs requests that come at different times")
    came = tuple(when - arrivals[0] for when in arrivals)
    return Trace(str(path), came, Lengths(prompt), Lengths(output), blocks if any(blocks) else ())


def _rows(path):
    """The lines of a file as mappings."""
    import csv
    import json
    from pathlib import Path

    lines = content_of(Path(path)).decode("utf-8-sig").splitlines()
    if lines and not lines[0].lstrip().startswith("{"):
        return list(csv.DictReader(lines))
    return [json.loads(line) for line in lines if line.strip()]


def _when(came):
    """An arrival as a number, or the seconds of a date."""
    try:
        return float(came)
    except ValueError:
        from datetime import datetime

        return datetime.fromisoformat(came[:26]).timestamp()


def _blocks(row):
    """Names of the blocks of a prompt that may be in a cache."""
    found = row.get("hash_ids") or ()
    if isinstance(found, str):
        ends = ([int(end) for end in run.split("-")] for run in found.split())
        found = [name for run in ends for name in range(run[0], run[-1] + 1)]
    if row.get("prefix"):
        found = [(row["prefix"], n) for n in range(int(float(row["shared"]) // BLOCK))]
    return tuple(found)
