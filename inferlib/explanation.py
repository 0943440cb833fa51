"""``explain``: unfold an answer into equations, inputs, where they are stated, and the branches that won."""

import html
from dataclasses import dataclass, field
from inspect import signature

from inferlib import equation, ops
from inferlib.equation import Record, quantities
from inferlib.system import Breakdown


@dataclass
class Explanation:
    """One node of the tree: what it is, its value with unit, a remark, and what it was made from."""

    title: str
    value: object = None
    unit: str = ""
    note: str = ""
    parts: list = field(default_factory=list)

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
        return f'<div class="inferlib-explanation">{self._html(True)}</div>'

    def _html(self, opened=False):
        line = html.escape(self._headline())
        if not self.parts:
            return f"<div>{line}</div>"
        inner = "".join(part._html() for part in self.parts)
        return f"<details{' open' if opened else ''}><summary>{line}</summary>{inner}</details>"


def explain(x):
    """Unfold a breakdown or a row of the scorecard.

    Parameters
    ----------
    x : Breakdown or pandas.Series
        What a source's ``decode_step`` returned, or one row of :func:`inferlib.scorecard`.

    Returns
    -------
    Explanation
        A tree that prints as text and shows as folded HTML: every equation with its value, the inputs it
        read and where each is stated, and which branch of each maximum won.

    Raises
    ------
    TypeError
        If ``x`` is neither.

    Examples
    --------
    >>> from inferlib import scorecard
    >>> print(explain(scorecard("erdil2025").query("artefact == 'Table 1'").iloc[0]))  # doctest: +ELLIPSIS
    Table 1, Llama 3 8B, tokens per second: printed 966 tok/s = 965.965 tok/s...
      minimum_latency = 0.00103523 s  [erdil2025, eq. 14]...
    """
    if isinstance(x, Breakdown):
        return _of_breakdown(x)
    if hasattr(x, "get") and {"source", "artefact", "row", "column"} <= set(getattr(x, "index", ())):
        return _of_row(x)
    raise TypeError(f"cannot explain a {type(x).__name__}; give a Breakdown or one row of the scorecard")


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
    from inferlib import ledger

    printed = ledger.published(row["source"])[row["artefact"], row["row"], row["column"]]
    place = ", ".join(part for part in printed.place if part)
    root = Explanation(f"{place}: printed {printed.text} {printed.unit}".rstrip(" 1"), note=row["note"])
    ledger._computed.cache_clear()  # recompute, so that the equations are seen at work
    read = []

    def run():
        root.value, _, found = ledger.compute(printed)
        read.extend(found)

    traced = _traced(run)
    if row["kind"] in ("input", "measured", "quoted"):
        root.note = root.note or f"{row['kind']}: stated by the source"
    root.value = ledger._in_unit(root.value, ledger.factor(printed.unit))
    root.unit = printed.unit
    for entry in read:
        where = ", ".join(part for part in entry.place if part)
        root.parts.append(Explanation(where, entry.printed, entry.unit, f"{entry.kind}, as printed"))
    wanted = [part for part in traced.parts if _same(part.value, root.value, ledger.factor(printed.unit))]
    root.parts += wanted or traced.parts[:12]
    return root


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
    stack = [root]

    def trace(entry, args, kwargs):
        bound = signature(entry.function).bind(*args, **kwargs)
        bound.apply_defaults()
        number = f"eq. {entry.number}" if entry.number else "unnumbered"
        node = Explanation(entry.name, unit=entry.unit, note=f"{entry.source}, {number}")
        stack[-1].parts.append(node)
        stack.append(node)
        watched = {name: _Watched(value) for name, value in bound.arguments.items() if _is_record(value)}
        try:
            node.value = entry.function(**(bound.arguments | watched))
        finally:
            stack.pop()
        for name, value in bound.arguments.items():
            if name in watched:
                node.parts += watched[name].read()
            else:
                node.parts.append(Explanation(name, value, entry.arguments.get(name, "")))
        return node.value

    def branch(kind, values, won):
        names = {part.value: part.title for part in stack[-1].parts}
        sides = [names.get(value, f"{value:.6g}") for value in values]
        winner = sides[0] if won == values[0] else sides[1]
        stack[-1].parts.append(Explanation(f"{kind} of {sides[0]} and {sides[1]}", note=f"won by {winner}"))

    saved = equation.tracer, ops.on_branch
    equation.tracer, ops.on_branch = trace, branch
    try:
        run()
    finally:
        equation.tracer, ops.on_branch = saved
    return root


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
    """A value with its unit, for people."""
    if isinstance(value, tuple):
        return f"{' to '.join(f'{v:.6g}' for v in value)} {unit}".rstrip(" 1")
    text = f"{value:.6g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
    return text if unit in ("1", "") else f"{text} {unit}"
