"""Request lengths: fixed, spread over quantiles or read from a trace file, and the prefixes that prompts share."""

import re
from collections import Counter
from functools import cached_property
from itertools import chain, pairwise, zip_longest
from math import fsum, inf, log
from sys import float_info

from inferlib import validation
from inferlib.equation import Record
from inferlib.optional_imports import np
from inferlib.system import Breakdown

TOKENS_PER_BLOCK = 512  # tokens per hashed block of a prompt, as in Mooncake's traces
PARTS = 60  # equally likely lengths that represent a distribution
WINDOW = 20  # requests per window when the burstiness of arrivals is measured
MAX_REQUESTS = 2_000_000  # largest number of requests in a file
# Field names of arrival, prompt and output in trace files, and the unit of an arrival in seconds.
NAMES = (
    ("arrival", "prompt", "output", 1.0),
    ("timestamp", "input_length", "output_length", 1e-3),  # Mooncake
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens", 1.0),  # Azure
    ("Timestamp", "Request tokens", "Response tokens", 1.0),  # BurstGPT
)


class LengthDistribution(float):
    """A length distribution as equally likely token counts; as a number it is their mean.

    ``text``: the text it was parsed from; empty for lengths from a file.
    """

    support: tuple
    text: str

    def __new__(cls, points, text=""):
        made = super().__new__(cls, fsum(points) / len(points))
        made.support = tuple(points)
        made.text = text
        return made

    def __getnewargs__(self):
        return self.support, self.text

    def __eq__(self, other):
        return isinstance(other, LengthDistribution) and self.support == other.support

    def __hash__(self):
        return hash(self.support)


def interpolate_quantiles(quantiles, text) -> LengthDistribution:
    """Build a distribution from evenly spaced quantiles: equal probability between neighbours, uniform in between.

    Examples
    --------
    >>> even, skewed = interpolate_quantiles((1000, 3000), ""), interpolate_quantiles((0, 100, 1000), "")
    >>> float(even), float(skewed), min(even.support) > 1000
    (2000.0, 300.0, True)
    """
    points = []
    for k in range(PARTS):
        part, within = divmod((k + 0.5) / PARTS * (len(quantiles) - 1), 1)
        low, high = quantiles[int(part) : int(part) + 2]
        points.append(low + within * (high - low))
    return LengthDistribution(points, text)


def support(length) -> tuple:
    """Return the equally likely token counts; a fixed length is the only one."""
    return length.support if isinstance(length, LengthDistribution) else (length,)


def uncached_tokens(prompt, cached) -> list:
    """Tokens beyond a cached, or shared, prefix of each of the equally likely prompts."""
    prompts = support(prompt)
    held = support(cached)
    held = held if len(held) > 1 else held * len(prompts)
    return [whole - part for whole, part in zip(prompts, held, strict=True)]


def prefill_chunks(prompt, cached, chunk):
    """Mean number of prefill steps of a prompt at ``chunk`` tokens a step; its last chunk is a part of a step.

    The rest of that step prefills other prompts.
    """
    if chunk is None:
        return 1
    fresh = uncached_tokens(prompt, cached)
    return sum(fresh) / len(fresh) / chunk


def array_of(length):
    """Return the equally likely lengths as an array; a number or a symbol unchanged."""
    if not isinstance(length, LengthDistribution):
        return length
    return np.array(length.support)


def mean_breakdown(read) -> Breakdown:
    """Mean breakdown of many prefills; a term counts only for prompts where its group is the longest."""
    stages = []
    for stage in read.grouped:
        each = [sum(group.values()) for group in stage]
        for group, seconds in zip(stage, each, strict=True):
            counts = seconds >= np.max(np.broadcast_arrays(*each), axis=0)
            stages.append({name: float(np.mean(term * counts)) for name, term in group.items()})
    return Breakdown(tuple(stages), source=read.source)


def geometric_lengths(mean) -> tuple:
    """Equally likely output lengths of a geometric distribution with this mean.

    They are means of equal parts of an exponential distribution, which keeps the mean; each has one token or more.

    Examples
    --------
    >>> lengths = geometric_lengths(500)
    >>> round(sum(lengths) / len(lengths), 6), round(max(lengths)), geometric_lengths(1)[0]
    (500.0, 2543, 1.0)
    """
    ends = [PARTS / (PARTS - k) for k in range(PARTS)]
    tails = [(1 + log(end)) / end for end in ends] + [0.0]
    return tuple(1 + (mean - 1) * PARTS * (tails[k] - tails[k + 1]) for k in range(PARTS))


def squared_cv(lengths) -> float:
    """Squared coefficient of variation of equally likely lengths: variance over squared mean; 0 if all are equal."""
    return fsum(one**2 for one in lengths) * len(lengths) / fsum(lengths) ** 2 - 1


def reduced_lengths(lengths) -> tuple:
    """Reduce many equally likely lengths to at most ``PARTS``: the means of equal parts, in order."""
    ordered = sorted(lengths)
    n = min(PARTS, len(lengths))
    ends = [k * len(ordered) // n for k in range(n + 1)]
    return tuple(fsum(ordered[low:high]) / (high - low) for low, high in pairwise(ends))


def mean_context(q) -> float:
    """Mean context of an output token; it is weighted by tokens, so long outputs count more."""
    if q.trace is not None:
        return q.trace.mean_context
    return q.prompt_tokens + (1 + squared_cv(q.output_lengths)) * q.output_tokens / 2


class Trace(Record):
    """A recorded trace: arrival times in seconds since the first, token counts, and block hashes of each prompt.

    ``skipped``: number of requests without output, which are left out.
    """

    path: str
    arrivals: tuple
    prompt: LengthDistribution
    output: LengthDistribution
    blocks: tuple
    skipped: int = 0

    def __repr__(self):
        return self.path

    @property
    def rate(self) -> float:
        """Mean rate in requests per second."""
        return (len(self.arrivals) - 1) / self.arrivals[-1]

    @cached_property
    def mean_context(self) -> float:
        """As :func:`mean_context`."""
        outputs = self.output.support
        pairs = zip(self.prompt.support, outputs, strict=True)
        return fsum(output * (prompt + output / 2) for prompt, output in pairs) / fsum(outputs)

    @cached_property
    def longest(self) -> float:
        """Tokens of the longest request."""
        return max(map(sum, zip(self.prompt.support, self.output.support, strict=True)))

    @cached_property
    def bursts(self) -> float | None:
        """Index of dispersion of arrivals: 1 for a Poisson process; None if there are fewer than two windows."""
        windows = len(self.arrivals) // WINDOW
        if windows < 2:
            return None
        width = self.arrivals[-1] * WINDOW / len(self.arrivals)
        counts = [0] * (windows + 1)
        for came in self.arrivals:
            counts[min(int(came / width), windows)] += 1
        return squared_cv(counts[:-1]) * fsum(counts[:-1]) / windows

    @cached_property
    def distances(self) -> tuple:
        """Reuse distance of each block: other blocks used since its last use, at least that of the blocks before it."""
        from bisect import bisect_left, insort

        used: list = []
        when: dict = {}
        found = []
        for number, names in enumerate(self.blocks):
            known = (when.get(name) for name in names)
            back = []
            most = 0.0
            for last in known:
                most = inf if last is None else max(most, len(used) - bisect_left(used, last))
                back.append(most)
            found.append(tuple(back))
            for place, name in enumerate(names):
                if name in when:
                    del used[bisect_left(used, when[name])]
                when[name] = (number, -place)  # blocks at the end of a prompt are evicted first
                insort(used, when[name])
        return tuple(found)

    def cached(self, room) -> LengthDistribution:
        """Tokens of each prompt found in a prefix cache of ``room`` tokens with LRU eviction."""
        return self._tokens(sum(back * TOKENS_PER_BLOCK <= room for back in each) for each in self.distances)

    def _tokens(self, blocks) -> LengthDistribution:
        """Tokens of the first ``blocks`` of each prompt, without the last token, which is always prefilled."""
        pairs = zip(blocks, self.prompt.support, strict=True)
        return LengthDistribution([min(n * TOKENS_PER_BLOCK, prompt - 1) for n, prompt in pairs])

    @cached_property
    def shared_prefix(self) -> LengthDistribution:
        """Tokens of each prompt in a prefix that more than half of all prompts have, such as a system prompt.

        There is one such prefix at most, and it ends where prompts part. The history of a chat is in prompts that come
        one after another and go on from each other.
        """
        times = Counter(chain.from_iterable(map(set, self.blocks)))
        after: dict = {name: Counter() for name, n in times.items() if n > len(self.blocks) / 2}
        for names in self.blocks:
            for name, other in zip_longest(names, names[1:]):  # None where a prompt ends
                if name in after:
                    after[name][other] += 1
        ends = {name for name, them in after.items() if them[None] > 1 or len(them) > 1 + (None in them)}
        return self._tokens(
            max((n for n, name in enumerate(names, 1) if name in ends), default=0) for names in self.blocks
        )

    @property
    def shared(self) -> LengthDistribution:
        """Tokens of each prompt that begin an earlier prompt (an unlimited cache)."""
        return self.cached(float_info.max)

    def routes(self, cached, lines) -> list:
        """Assign a machine to each request: one that caches half of its prompt, else the machine in ``lines``.

        The prefix that most prompts share is in the cache of every machine.
        """
        where: dict = {}
        found = []
        for number, drawn in enumerate(lines):
            one = number % len(self.blocks)
            held = cached.support[one]
            shared = self.shared_prefix.support[one]
            names = self.blocks[one]
            there = (
                where.get(names[int(held / TOKENS_PER_BLOCK) - 1])
                if held - shared >= (self.prompt.support[one] - shared) / 2
                else None
            )
            found.append(drawn if there is None else there)
            where.update(dict.fromkeys(names, found[-1]))
        return found


def read_trace(name, path) -> Trace:
    """Read a trace: JSON lines or CSV of arrival, prompt and output; names of public traces are accepted too.

    The file may be compressed (gzip, or zstd with the extra ``traces``); ``-`` is the standard input. Shared prefixes
    are given by ``hash_ids``, the hashes of 512-token blocks (numbers, or ranges such as ``0 4-9``), or by the name of
    a ``prefix`` with the number of tokens ``shared``. Requests without output (0 tokens) are left out and counted.
    """
    file = f"{name} {str(path)!r}"
    number = 0
    skipped = 0
    names = None
    came = []
    prompts = []
    outputs = []
    blocks = []
    try:
        for number, row in enumerate(_rows(path), 1):
            names = names or _names(row)
            if names is None:
                break
            if number > MAX_REQUESTS:
                raise ValueError(f"there are more than {MAX_REQUESTS:,} requests: give a part of the file")
            when, *tokens = (_field(row, field) for field in names[:3])
            prompt, output = (
                validation.number(field, _number(field, n), zero=field == names[2])
                for field, n in zip(names[1:3], tokens, strict=True)
            )
            if output == 0:
                skipped += 1
                continue
            came.append(_when(names[0], when) * names[3])
            prompts.append(prompt)
            outputs.append(output)
            blocks.append(_blocks(row, prompt))
    except _Unread as wrong:
        raise ValueError(f"{file} is neither JSON lines nor a table: {wrong}") from None
    except (ValueError, TypeError) as wrong:
        raise ValueError(f"{file}, request {number}: {wrong}") from None
    if names is None:
        each = "; ".join(", ".join(one[:3]) for one in NAMES)
        raise ValueError(f"{file} holds no requests: give lines with {each}")
    if not came or not max(came) > min(came):
        without = f", besides {skipped:,} without an answer" if skipped else ""
        raise ValueError(f"{file} needs requests that come at different times{without}")
    order = sorted(range(len(came)), key=came.__getitem__)
    first = came[order[0]]
    arrivals = tuple(came[k] - first for k in order)
    prompt_lengths, output_lengths = (
        LengthDistribution([each[k] for k in order]) for each in (prompts, outputs)
    )
    shared = tuple(blocks[k] for k in order) if any(blocks) else ()
    return Trace(str(path), arrivals, prompt_lengths, output_lengths, shared, skipped)


class _Unread(ValueError):
    """A line that is neither JSON nor a row of a table."""


def _rows(path):
    """Yield the rows of a file as mappings."""
    import csv
    import gzip
    import json
    import sys
    import zlib
    from contextlib import nullcontext
    from io import BufferedReader
    from pathlib import Path

    broken: type = zlib.error
    try:
        if str(path) != "-" and not (Path(path).is_file() or Path(path).is_fifo()):
            raise LookupError(f"no file {str(path)!r}")
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else Path(path).open("rb") as raw:
            start = raw.peek(4)[:4]
            file = raw
            if start[:2] == b"\x1f\x8b":
                file = gzip.open(raw)
            elif start == b"\x28\xb5\x2f\xfd":
                from inferlib.optional_imports import zstandard

                file = BufferedReader(
                    zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
                )
                broken = zstandard.ZstdError
            lines = (line.decode("utf-8-sig") for line in file)
            first = next(lines, "")
            if first.lstrip().startswith("{"):
                yield from map(json.loads, filter(str.strip, chain([first], lines)))
            else:
                yield from csv.DictReader(chain([first], lines))
    except (OSError, EOFError, broken) as wrong:
        why = getattr(wrong, "strerror", None) or wrong
        raise LookupError(f"cannot read {validation.shown(str(path))}: {why}") from None
    except (ValueError, RecursionError, csv.Error) as wrong:
        raise _Unread(wrong) from None


def _names(row):
    """Return the entry of ``NAMES`` whose field names a row has, or None."""
    return next((one for one in NAMES if isinstance(row, dict) and {*one[:3]} <= {*row}), None)


def _field(row, field):
    """Return a field of a row; ValueError if it is missing."""
    if not isinstance(row, dict) or row.get(field) is None:
        raise ValueError(f"has no {field}, which the first has")
    return row[field]


def _number(field, value):
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{field} is {validation.short(repr, value)}, but must be a number") from None


def _when(field, came):
    """Return an arrival time in seconds, from a number or an ISO date."""
    try:
        when = float(came)
    except (ValueError, TypeError, OverflowError):
        from datetime import datetime

        try:
            when = datetime.fromisoformat(str(came)[:26]).timestamp()
        except (ValueError, OverflowError):
            raise ValueError(
                f"{field} is {validation.short(repr, came)}, but must be a time or a date"
            ) from None
    if not abs(when) < validation.LARGE:
        raise ValueError(f"{field} is {when}, but must be finite")
    return when


def _blocks(row, prompt):
    """Return the block hashes of a prompt; ValueError if there are more than the prompt has blocks."""
    found = row.get("hash_ids") or ()
    most = -(-prompt // TOKENS_PER_BLOCK)
    allowed = "but must be names of blocks: a list of numbers, or ranges such as '0 4-9'"
    if isinstance(found, str):
        if not re.fullmatch(r"\s*\d+(-\d+)?(\s+\d+(-\d+)?)*\s*", found):
            raise ValueError(f"hash_ids is {validation.short(repr, found)}, {allowed}")
        ends = [[int(end) for end in run.split("-")] for run in found.split()]
        many = sum(max(run[-1] + 1 - run[0], 0) for run in ends)
        found = [name for run in ends for name in range(run[0], run[-1] + 1)] if many <= most else ()
    elif not isinstance(found, (list, tuple)) or not all(isinstance(one, (int, str)) for one in found):
        raise ValueError(f"hash_ids is {validation.short(repr, found)}, {allowed}")
    else:
        many = len(found)
    if many > most:
        raise ValueError(
            f"hash_ids names {many:,} blocks, but {prompt:,.0f} tokens have {most:,.0f} of {TOKENS_PER_BLOCK}"
        )
    if prefix := row.get("prefix"):
        shared = _number("shared", _field(row, "shared"))
        validation.number("shared", shared, zero=True, maximum=prompt)
        return tuple((str(prefix), n) for n in range(int(shared // TOKENS_PER_BLOCK)))
    return tuple(found)
