"""``explain``: unfold an answer into equations, inputs, where they are stated, and the branches that won."""

import html
import itertools
import re
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from numbers import Real

from inferlib import equation, ledger, ops
from inferlib.equation import Record, quantities
from inferlib.system import Breakdown

_MOST_CALLS = 50_000  # of equations in one trace: a search over a large grid is not for reading


@dataclass
class Explanation:
    """One node of the tree: what it is, its value with unit, a remark, and what it was made from."""

    title: str
    value: object = None
    unit: str = ""
    note: str = ""
    parts: list = field(default_factory=list)
    opened: bool = True

    def __str__(self):
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self, depth=0):
        yield "  " * depth + self._headline()
        for part in self.parts:
            yield from part._lines(depth + 1)

    def _headline(self):
        value = "" if self.value is None else f" = {shown(self.value, self.unit)}"
        return f"{self.title}{value}" + (f"  [{self.note}]" if self.note else "")

    def _repr_html_(self):
        return f'<div class="inferlib-explanation">{self._html(self.opened)}</div>'

    def folded(self, most=80):
        """The tree as folded HTML without the first line, cut after so many lines; empty if there is none."""
        lines = list(self._lines())
        if len(lines) == 1 and not self.note:
            return ""
        short = self if len(lines) <= most else _cut(self, itertools.count(), most)
        return f'<div class="inferlib-explanation">{short._html(True)}</div>'

    def _html(self, opened=False):
        line = re.sub(r"(https?://[^\s\],]+)", r'<a href="\1">\1</a>', html.escape(self._headline()))
        if not self.parts:
            return f"<div>{line}</div>"
        inner = "".join(part._html() for part in self.parts)
        return f"<details{' open' if opened else ''}><summary>{line}</summary>{inner}</details>"


def _cut(tree, lines, most):
    """A copy of a tree with so many lines at most."""
    parts = []
    for part in tree.parts:
        if next(lines) >= most:
            parts.append(Explanation("and more: inferlib.explain shows all"))
            break
        parts.append(_cut(part, lines, most))
    return Explanation(tree.title, tree.value, tree.unit, tree.note, parts)


def explain(x) -> Explanation:
    """Unfold a breakdown, a row of the scorecard, or a record such as a chip.

    Parameters
    ----------
    x : Breakdown, pandas.Series or Record
        What a source's ``decode_step`` returned, one row of :func:`inferlib.scorecard`, or a record whose
        numbers have sources.

    Returns
    -------
    Explanation
        A tree that prints as text and shows as folded HTML: every equation with its value, the inputs it
        read and where each is stated, and which branch of each maximum won.

    Raises
    ------
    TypeError
        If ``x`` is none of these.

    Examples
    --------
    >>> from inferlib import scorecard
    >>> print(explain(scorecard("erdil2025", "Table 1").iloc[0]))  # doctest: +ELLIPSIS
    Table 1, Llama 3 8B, tokens per second: printed 966 tok/s = 965.965 tok/s...
      minimum_latency = 0.00103523 s  [erdil2025, eq. 14]...
    """
    if isinstance(x, Breakdown):
        return _of_breakdown(x)
    if hasattr(x, "get") and {"source", "artefact", "row", "column"} <= set(getattr(x, "index", ())):
        return _of_row(x)
    if isinstance(x, Record):
        return _of_record(x)
    raise TypeError(
        f"cannot explain a {type(x).__name__}; give a Breakdown, one row of the scorecard, or a record"
    )


def _of_record(record):
    """Every number of a record, and where it is stated."""
    stated = getattr(record, "sources", {})
    values = {f: getattr(record, f.name) for f in quantities(record)}
    parts = [
        Explanation(f"{f.metadata['meaning']} ({f.name})", value, f.metadata["unit"], stated.get(f.name, ""))
        for f, value in values.items()
        if value is not None
    ]
    peaks = getattr(record, "peaks", {})
    parts += [Explanation(f"peak at {name}", v, "FLOP/s", stated.get(name, "")) for name, v in peaks.items()]
    return Explanation(getattr(record, "name", "") or type(record).__name__, parts=parts, opened=False)


def _of_breakdown(step):
    title = f"{step.source or 'one'} decode step"
    if not step.feasible:
        return Explanation(title, note=f"{step.status}: {step.reason}")
    root = Explanation(title, step.total, "s", f"bound by {step.binding}")
    if step.origin is not None:
        function, *arguments = step.origin
        root.parts += _traced(lambda: function(*arguments)).parts
    for name, seconds in step.terms.items():
        note = "counts" if name in step.counted else "hidden: a longer term overlaps it"
        root.parts.append(Explanation(f"term {name}", seconds, "s", note))
    return root


def _of_row(row):
    place = (row["artefact"], row["row"], row["column"])
    printed = ledger.row_at(row["source"], *place)
    title = f"{_joined(place)}: printed {printed.text} {printed.unit}".removesuffix(" 1")
    if row["grade"] == "-":
        return Explanation(title, note=f"{printed.kind}: stated by the source")
    if row["grade"] == "missing":
        return Explanation(title, note="nothing computes it yet")
    # Rooms remember what they computed; run once, a row has the same tree whatever ran before it.
    value, note, read = ledger.compute(printed)
    tree = _traced(lambda: ledger.compute(printed))
    scale = ledger.factor(printed.unit)
    value = ledger._in_unit(value, scale)
    root = Explanation(title, value, printed.unit, note)
    root.parts += [Explanation(_joined(e.place), e.printed, e.unit, f"{e.kind}, as printed") for e in read]
    # Where a cell is a function of its own, only that is traced; else all that its artefact calls.
    if callable(ledger._computed(printed.source, printed.artefact).get(place[1:])):
        root.parts += tree.parts
    elif _telling(value):
        calls = _calls_of(printed.source, printed.artefact)
        root.parts += [node for node in calls if _same(node.value, value, scale)][:1]
    made_by = ledger.REPRODUCERS.get((printed.source, printed.artefact))
    if not root.parts and made_by is not None:
        said = f"computed by {made_by.__module__}.{made_by.__name__}"
        root.note = "; ".join(filter(None, [root.note, said]))
    return root


def _telling(value):
    """Whether a number has so many digits that an equation with the same value must be the one that made it.

    A truth, a count or a round number occurs by chance; nothing is shown rather than another number's tree.
    """
    return isinstance(value, Real) and not isinstance(value, (bool, int)) and float(f"{value:.7g}") != value


@lru_cache(maxsize=4)
def _calls_of(source, artefact):
    """Every equation called for an artefact, nearest to its numbers first; run once for all its rows."""
    tree = _traced(lambda: ledger.REPRODUCERS[source, artefact](ledger.Reader(source, artefact)))
    return tuple(_nodes(tree))


def _joined(place):
    return ", ".join(part for part in place if part)


def _nodes(tree):
    """All nodes of a tree, those nearest to the root first."""
    level = tree.parts
    while level:
        yield from level
        level = [part for node in level for part in node.parts]


def _same(value, target, scale):
    """Whether an equation's value (or its reciprocal) is the row's."""
    try:
        ours, theirs = float(value), float(target) * scale
    except (TypeError, ValueError):
        return False
    close = abs(ours - theirs) <= 1e-12 * abs(theirs)
    return close or (ours != 0 and abs(1 / ours - theirs) <= 1e-12 * abs(theirs))


def _traced(run):
    """Run a function and return the tree of equations called."""
    root = Explanation("")
    stack, branches, calls = [root], [[]], itertools.count()

    def trace(entry, args, kwargs):
        if next(calls) > _MOST_CALLS:
            return entry.function(*args, **kwargs)
        bound = signature(entry.function).bind(*args, **kwargs)
        bound.apply_defaults()
        number = f"eq. {entry.number}" if entry.number else "unnumbered"
        node = Explanation(entry.name, unit=entry.unit, note=f"{entry.source}, {number}")
        stack[-1].parts.append(node)
        stack.append(node)
        branches.append([])
        watched = {name: _Watched(value) for name, value in bound.arguments.items() if _is_record(value)}
        try:
            node.value = entry.function(**(bound.arguments | watched))
        finally:
            stack.pop()
            taken = branches.pop()
        for name, value in bound.arguments.items():
            if name in watched:
                node.parts += watched[name].read()
            else:
                node.parts.append(Explanation(name, value, entry.arguments.get(name, "")))
        node.parts += [_branch(node, *choice) for choice in taken]
        return node.value

    def branch(kind, values, won):
        branches[-1].append((kind, values, won))

    saved = equation.tracer.set(trace), ops.on_branch.set(branch)
    try:
        run()
    finally:
        equation.tracer.reset(saved[0])
        ops.on_branch.reset(saved[1])
    return root


def _branch(node, kind, values, won):
    """Which side of a maximum, minimum or choice was taken, by the name of the part that has its value."""
    names = {}
    for part in node.parts:
        if isinstance(part.value, (int, float)):
            names.setdefault(part.value, part.title)
    sides = [names.get(value, shown(value, "1")) for value in values]
    winner = sides[0] if won is values[0] or won == values[0] else sides[1]
    return Explanation(f"{kind} of {sides[0]} and {sides[1]}", note=f"won by {winner}")


def _is_record(value):
    return isinstance(value, (Record, _Watched))


class _Watched:
    """A record that remembers which of its fields an equation read."""

    def __init__(self, record):
        self._record = record._record if isinstance(record, _Watched) else record
        self._fields = {f.name: f for f in quantities(self._record)}
        self._seen = {}

    def __getattr__(self, name):
        value = getattr(self._record, name)
        if name in self._fields:
            self._seen[name] = value
        return value

    def read(self):
        owner = getattr(self._record, "name", "") or type(self._record).__name__
        stated = getattr(self._record, "sources", None) or {}
        return [
            Explanation(
                f"{name} of {owner}", value, self._fields[name].metadata["unit"], stated.get(name, "")
            )
            for name, value in self._seen.items()
        ]


def shown(value, unit):
    """A value with its unit, for people; of an array only its size."""
    if isinstance(value, tuple):
        text = " to ".join(f"{v:.6g}" for v in value)
    elif isinstance(value, Real) and not isinstance(value, bool):
        text = f"{float(value):.6g}"
    elif getattr(value, "shape", ()):
        text = f"{' x '.join(map(str, value.shape))} values"
    else:
        text = str(value)
    return text if unit in ("1", "") else f"{text} {unit}"
