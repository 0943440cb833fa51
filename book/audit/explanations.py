"""``explain``: unfold an answer into equations, inputs with their sources, and the branches taken."""

import html
import inspect
import itertools
import re
import sys
from dataclasses import dataclass, field
from functools import cache, lru_cache
from numbers import Real

from book.audit import grading
from book.audit.number_format import format_value
from inferlib import equation, ops
from inferlib.equation import Record, quantities
from inferlib.system import Breakdown

_MOST_CALLS = 50_000  # a trace with more calls of equations, such as a search over a large grid, is refused
_signature = cache(inspect.signature)


@dataclass
class Explanation:
    """A node of the tree: title, value with unit, remark, and the nodes it was computed from."""

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
        """Return the tree as folded HTML, cut after ``most`` lines; ``""`` if there is nothing to unfold."""
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
    """Return a copy of a tree, cut to a number of lines."""
    parts = []
    for part in tree.parts:
        if next(lines) >= most:
            parts.append(Explanation("and more: audit.explain shows all"))
            break
        parts.append(_cut(part, lines, most))
    return Explanation(tree.title, tree.value, tree.unit, tree.note, parts)


def explain(x) -> Explanation:
    """Unfold a breakdown, a row of the scorecard, or a record such as a chip.

    ``x``: a result of a source's ``decode_step``, one row of :func:`audit.scorecard`, or a record whose numbers have
    sources. Returns a tree that prints as text and shows as folded HTML: every equation with its value, the inputs it
    read and where each is stated, and the branch taken by each maximum. Raises TypeError for anything else.

    Examples
    --------
    >>> from book.audit.grading import scorecard
    >>> print(explain(scorecard("erdil2025", "Table 1").iloc[0]))  # doctest: +ELLIPSIS
    Table 1, Llama 3 8B, tokens per second: printed 966 tok/s = 966 tok/s...
      minimum_latency = 1.035 ms  [erdil2025, eq. 14]...
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
    """List every number of a record, and where it is stated."""
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
    root = Explanation(title, step.total, "s", f"bound by {step.bottleneck}")
    if step.origin is not None:
        function, *arguments = step.origin
        root.parts += _traced(lambda: function(*arguments))[1].parts
    for name, seconds in step.terms.items():
        note = "counts" if name in step.critical else "hidden: a longer term overlaps it"
        root.parts.append(Explanation(f"term {name}", seconds, "s", note))
    return root


def _of_row(row):
    place = (row["artefact"], row["row"], row["column"])
    printed = grading.row_at(row["source"], *place)
    title = f"{_joined(place)}: printed {printed.text} {printed.unit}".removesuffix(" 1")
    if row["grade"] == "-":
        return Explanation(title, note=f"{printed.kind}: stated by the source")
    if row["grade"] == "missing":
        return Explanation(title, note="nothing computes it yet")
    value, note, read = grading.compute(printed)
    scale = grading.factor(printed.unit)
    made, value = value, grading._in_unit(value, scale)
    root = Explanation(title, value, printed.unit, note)
    root.parts += [
        Explanation(_joined(entry.place), entry.printed, entry.unit, f"{entry.kind}, as printed")
        for entry in {entry.place: entry for entry in read}.values()
        if not entry.resolution or grading.compute(printed, {entry.place: 1})[0] != made
    ]
    # if a cell has a function of its own, trace only that, else all calls of its artefact
    if callable(grading._computed(printed.source, printed.artefact).get(place[1:])):
        found, tree = _traced(lambda: grading.compute(printed)[0])
        root.parts += _made_of(found) or tree.parts
    else:
        found = _calls_of(printed.source, printed.artefact).get(place[1:])
        root.parts += _made_of(found.value if isinstance(found, grading.WithNote) else found)
    return root


@lru_cache(maxsize=4)
def _calls_of(source, artefact):
    """Return the values of an artefact's function, each with the equations it was computed from."""
    forget(source)
    found, _ = _traced(lambda: grading.recomputed(grading.Reader(source, artefact)))
    forget(source)
    return found


def forget(source):
    """Clear the caches of a source's modules, because a cached result calls no equation and could not be traced."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith((f"book.papers.{source}.", f"inferlib.papers.{source}.")):
            for one in vars(module).values():
                # keep files in the cache: reading calls no equation, and reading again would count as an input of the
                # next product
                if hasattr(one, "cache_clear") and one is not equation.load_source:
                    one.cache_clear()


def _joined(place):
    return ", ".join(part for part in place if part)


def _traced(run):
    """Run a function; return its result, and the tree of equations and derivations that it called."""
    root = Explanation("")
    stack, branches, calls = [root], [[]], itertools.count()

    def trace(entry, args, kwargs):
        if next(calls) > _MOST_CALLS:
            return entry.working(*args, **kwargs)
        if isinstance(entry, equation.Derivation):
            return _derived(entry)
        if isinstance(entry, Explanation):
            stack[-1].parts.append(entry)
            return _told(entry.value, (entry,))
        bound = _signature(entry.function).bind(*args, **kwargs)
        bound.apply_defaults()
        above = entry.source if len(stack) == 1 else ""  # name the source once
        note = ", ".join(filter(None, [above, entry.number and f"eq. {entry.number}"]))
        node = Explanation(entry.name, unit=entry.unit, note=note)
        stack[-1].parts.append(node)
        stack.append(node)
        branches.append([])
        given = {name: _untold(value) for name, value in bound.arguments.items()}
        watched = {name: _Watched(value) for name, value in given.items() if _is_record(value)}
        try:
            node.value = entry.working(**(given | watched))
        finally:
            stack.pop()
            taken = branches.pop()
        for name, value in given.items():
            if name in watched:
                node.parts += watched[name].read()
            else:
                made = _made_of(bound.arguments[name])
                node.parts.append(Explanation(name, value, entry.arguments.get(name, ""), parts=made))
        node.parts += filter(None, (_branch(node, *choice) for choice in taken))
        return node.value if len(stack) > 1 else _told(node.value, (node,))

    def _derived(entry):
        steps = equation.untraced(entry.function)()
        parts = [Explanation(step.caption, note=_symbols(step.equation)) for step in steps]
        note = f"{entry.source}, derived step by step"
        stack[-1].parts.append(Explanation(entry.function.__name__, note=note, parts=parts))
        return steps

    def branch(kind, values, won):
        branches[-1].append((kind, values, won))

    with ops.holding(equation.tracer, trace), ops.holding(ops.on_branch, branch):
        return run(), root


class _Told:
    """A number that carries the equations it was computed from, and passes them on in arithmetic."""

    nodes = ()


def _arithmetic(name):
    def method(self, *others):
        result = getattr(type(self).__mro__[2], name)(self, *others)
        nodes = self.nodes + tuple(node for other in others for node in getattr(other, "nodes", ()))
        return _told(result, nodes)

    return method


class _Float(_Told, float):
    pass


class _Int(_Told, int):
    pass


for _kind in (_Float, _Int):
    for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        for _method in (f"__{_name}__", f"__r{_name}__"):
            setattr(_kind, _method, _arithmetic(_method))
    for _name in ("neg", "round", "ceil", "floor"):
        setattr(_kind, f"__{_name}__", _arithmetic(f"__{_name}__"))


def _told(value, nodes):
    """Attach the equations to a plain number; return anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, (float, int)):
        return value
    one = _Int(value) if isinstance(value, int) else _Float(value)
    one.nodes = nodes
    return one


def _untold(value):
    """Return the plain number of a traced one."""
    return value.__class__.__mro__[2](value) if isinstance(value, _Told) else value


def _made_of(value):
    """Return the equations behind a number, or behind all numbers of a tuple, without repetition."""
    values = value if isinstance(value, tuple) else (value,)
    return list({id(node): node for one in values for node in getattr(one, "nodes", ())}.values())


def _branch(node, kind, values, won):
    """Say which side of a maximum, minimum or choice was taken, if both sides can be named.

    Examples
    --------
    >>> parts = [Explanation("reading", 0.002, "s"), Explanation("batch", 8), Explanation("users", 150)]
    >>> node = Explanation("time", parts=parts)
    >>> for values in ((0.002, 0.001), (0.002, 0.003), (8, 150), (0.002, 0.002), (0.04, 0.05)):
    ...     print(_branch(node, "maximum", values, max(values)))
    maximum of reading and 1 ms  [won by reading]
    maximum of reading and 3 ms  [won by 3 ms]
    maximum of 8 and users  [won by users]
    None
    None
    >>> _branch(Explanation("time", parts=[*parts, Explanation("places", 150)]), "minimum", (100, 150), 100)
    minimum of 100 and 150  [won by 100]
    """
    known = []
    for value in values:
        equal = [part for part in node.parts if isinstance(part.value, Real) and part.value == value]
        # small whole numbers may be equal by chance
        certain = len({part.title for part in equal}) == 1 and not (value < 100 and value == int(value))
        known.append(equal[0] if certain else None)
    unit = next((part.unit for part in known if part), None)
    sides = [p.title if p else shown(value, unit or "1") for p, value in zip(known, values, strict=True)]
    if sides[0] == sides[1] or (unit is None and any(0 < abs(value) < 0.1 for value in values)):
        return None
    winner = sides[0] if won is values[0] or won == values[0] else sides[1]
    return Explanation(f"{kind} of {sides[0]} and {sides[1]}", note=f"won by {winner}")


def named(title, value, unit="1", note=""):
    """Name a number that no equation returns, such as a cell of a search, for ``explain``.

    Examples
    --------
    >>> named("speed at the preferred point", 69.1, "tok/s")
    69.1
    """
    trace = equation.tracer.get()
    return value if trace is None else trace(Explanation(title, value, unit, note), (), {})


def inputs(record):
    """Wrap a record so that ``explain`` names each of its numbers that is used outside equations."""
    return record if equation.tracer.get() is None else _Opened(record)


def _is_record(value):
    return isinstance(value, (Record, _Watched))


class _Watched:
    """A record that notes which of its fields an equation reads."""

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
        return [Explanation(*self._leaf(name)) for name in self._seen]

    def _leaf(self, name):
        owner = getattr(self._record, "name", "") or type(self._record).__name__
        stated = getattr(self._record, "sources", None) or {}
        unit = self._fields[name].metadata["unit"]
        return f"{name} of {owner}", getattr(self._record, name), unit, stated.get(name, "")


class _Opened(_Watched):
    """A record whose numbers are named for ``explain``."""

    def __getattr__(self, name):
        return named(*self._leaf(name)) if name in self._fields else getattr(self._record, name)


def shown(value, unit):
    """Format a value with its unit; of an array only its shape.

    Examples
    --------
    >>> values = (12, "1"), (12, "s"), (999_999.0, ""), (1e6, "1"), (True, "1"), ("all", "s"), ((1, 2), "s")
    >>> [shown(*one) for one in values]
    ['12', '12 s', '999,999', '1 M', 'True', 'all s', '1 to 2 s']
    """
    if isinstance(value, tuple):
        return format_value(value, unit or "1")
    elif isinstance(value, Real) and not isinstance(value, bool):
        text = f"{float(value):,.0f}" if float(value).is_integer() and abs(value) < 1e6 else ""
        return text if text and unit in ("", "1") else format_value(float(value), unit or "1")
    elif getattr(value, "shape", ()):
        text = f"{' x '.join(map(str, value.shape))} values"
    elif getattr(value, "free_symbols", ()):
        return _symbols(value)
    else:
        text = str(value)
    return text if unit in ("1", "") else f"{text} {unit}"


def _symbols(expression):
    """Format an expression or an equation as plain text."""
    sides = [expression.lhs, expression.rhs] if hasattr(expression, "lhs") else [expression]
    text = f" {getattr(expression, 'rel_op', '')} ".replace("==", "=").join(map(str, sides))
    text = text.replace("\\partial", "d").replace("\\ln", " ln")
    return re.sub(r"\\\w+\{(\w*)\}|[{}\\]", r"\1", text).replace("**", "^")
