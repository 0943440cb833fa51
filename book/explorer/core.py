"""An explorer: inputs and views of outputs, alive without a kernel.

The outputs are ordinary calls of equations. In the page and in a notebook they run as JavaScript, printed from the
SymPy expressions that those calls return on symbols.
"""

import itertools
import re
from functools import cached_property
from urllib.parse import quote

import sympy

from book.explorer import inputs as _inputs, outputs as _outputs
from book.explorer.inputs import Choice, Slider, StructureChoice
from book.explorer.outputs import Bars, Gauge
from book.explorer.page import page
from inferlib import validation
from inferlib.equation import forbid_override
from inferlib.units import factor


class Explorer:
    """Views of outputs over inputs. :func:`curves` and :func:`breakdown` make the simple ones.

    ``title``: also what the address of a stored state begins with. ``views``: drawn one under the other; they
    share the inputs. ``limits``: name to :class:`Limit`; where one does not hold the page shows no answer,
    but what is missing. ``asks``: the question of its state, for the kernel model
    (:mod:`book.explorer.kernel_model_line`).
    ``more``: names of inputs that the page folds away.
    """

    def __init__(self, title, inputs, views, *, limits=None, asks=None, more=()):
        self.asks, self.more = asks, more
        self.title, self.inputs, self.views, self.limits = title, list(inputs), list(views), limits or {}
        _inputs.check(title, self.inputs)
        _outputs.check(title, self.views, [i.name for i in self.inputs if isinstance(i, Slider)])
        self._memo = {}

    # In Python.

    def state(self, **values):
        """Values of all inputs: those given, and the others as at the start.

        A choice sets what it sets, unless that is given too.
        """
        known = {i.name: i for i in self.inputs}
        for name in values:
            validation.one_of(f"input of {self.title!r}", name, known)
        full = {name: i.start() for name, i in known.items()}
        for i in self.inputs:
            if i.name in values:
                _inputs.accept(i, values[i.name])
                full |= getattr(i, "sets", {}).get(values[i.name], {})
        full |= values
        return full

    def evaluate(self, **values):
        """The outputs at given inputs (choices by label), computed in Python."""
        arguments = self._arguments(self.state(**values))
        answers = dict(self._answers(arguments))
        if not self._short(arguments):
            return answers
        kept = {name for view in self.views if isinstance(view, Gauge) for name in view.outputs}
        return {name: value if name in kept else None for name, value in answers.items()}

    def shortages(self, caution=False, **values):
        """The limits that do not hold, or those that only ``caution``: name to (needed, available), in its unit."""
        return self._short(self._arguments(self.state(**values)), caution)

    def _short(self, arguments, caution=False):
        found = {
            name: tuple(f(**arguments) / factor(limit.unit) for f in (limit.needed, limit.available))
            for name, limit in self.limits.items()
            if limit.caution == caution
        }
        return {name: (needed, has) for name, (needed, has) in found.items() if needed > has}

    def link(self, **values):
        """The end of an address that opens the page with these inputs: ``#title?batch=64&...``."""
        full = self.state(**values)
        plain = (v if isinstance(v, str) else f"{float(v)!r}".removesuffix(".0") for v in full.values())
        pairs = (f"{name}={quote(value, safe='')}" for name, value in zip(full, plain, strict=True))
        return f"#{self.slug}?{'&'.join(pairs)}"

    @property
    def slug(self):
        """The title in the letters of an address."""
        letters = "".join(c if c.isascii() and c.isalnum() else " " for c in self.title.lower())
        return "-".join(letters.split())

    def _arguments(self, values):
        return {i.name: _inputs.accept(i, values[i.name]) for i in self.inputs}

    def _answers(self, arguments):
        for view in self.views:
            if isinstance(view, Bars):
                for label, output in view.steps.items():
                    yield from _of_bar(view, label, output, arguments)
                continue
            for name, output, unit in _outputs.numbers(view):
                value = output(**arguments)
                yield name, None if value is None else value / factor(unit)

    # In JavaScript.

    def arguments(self):
        """The names the JavaScript functions take, in order: sliders, then the columns of choices in use."""
        values = [v for values, _ in self._variants.values() for v in values]
        used = {str(s) for v in values for s in getattr(v, "free_symbols", ())}
        sliders = {i.name for i in self.inputs if isinstance(i, Slider)}
        return [name for name in _inputs.columns_of(self.inputs) if name in used or name in sliders]

    def raw(self, **values):
        """The numbers the JavaScript function returns, computed in Python: SI units; None where Python refuses."""
        state = self.state(**values)
        planned = self._variants[tuple(state[k.name] for k in self._kinds)][1]
        return [None if v is None else float(v) for v in self._raw(self._arguments(state), planned)[0]]

    def javascript(self, **kinds):
        """The outputs as one JavaScript function of :meth:`arguments`, returning an array."""
        chosen = tuple(kinds.get(k.name, k.start()) for k in self._kinds)
        if chosen not in self._memo:
            self._memo[chosen] = self._function(self.arguments(), self._variants[chosen][0])
        return self._memo[chosen]

    @property
    def _kinds(self):
        return [i for i in self.inputs if isinstance(i, StructureChoice)]

    @cached_property
    def _variants(self):
        """Raw values and plan of every combination of kinds, on symbols."""
        labels = itertools.product(*(k.options for k in self._kinds))
        return dict(zip(labels, map(self._raw, self.structures()), strict=True))

    def structures(self):
        """What the outputs are called with in the page, for each combination of kinds: symbols but for the kinds."""
        combinations = itertools.product(*(k.options.values() for k in self._kinds))
        names = [k.name for k in self._kinds]
        return [self._symbols() | dict(zip(names, options, strict=True)) for options in combinations]

    def _symbols(self):
        return {i.name: i.symbol() for i in self.inputs if isinstance(i, Slider | Choice)}

    def _raw(self, arguments, planned=None):
        """The numbers of all views in one list, and the plan that says what each of them means."""
        values, plan = [], []
        for v, view in enumerate(self.views):
            named = view.steps if isinstance(view, Bars) else {n: f for n, f, _ in _outputs.numbers(view)}
            entries = []
            for k, (name, output) in enumerate(named.items()):
                known = planned["views"][v][k] if planned else None
                entries.append(_outputs.raw(name, output, arguments, values, known))
            plan.append(entries)
        at = len(values)
        for limit in self.limits.values():
            values += [limit.needed(**arguments), limit.available(**arguments)]
        return values, {"views": plan, "limits": at}

    def _function(self, order, values):
        """JavaScript of a list of expressions, what they share computed once."""
        expressions = [sympy.sympify(v) for v in values]
        unknown = {str(s) for e in expressions for s in e.free_symbols} - set(order)
        if unknown:
            raise ValueError(f"explorer {self.title!r} has no input for {', '.join(sorted(unknown))}")
        shared, results = sympy.cse(expressions, symbols=sympy.numbered_symbols("t"), order="canonical")
        lines = [f"const {name}={_js(expression)};" for name, expression in shared]
        return f"({','.join(order)})=>{{{''.join(lines)}return [{','.join(map(_js, results))}];}}"

    def code(self):
        """All generated JavaScript: for each combination of kinds its function."""
        names = [k.name for k in self._kinds]
        return [self.javascript(**dict(zip(names, labels, strict=True))) for labels in self._variants]

    def plans(self):
        """For each combination of kinds, what each number of the array that the JavaScript returns means."""
        return [plan for _, plan in self._variants.values()]

    def _repr_html_(self):
        forbid_override(f"the page's {self.title!r}", variants=False)
        if "page" not in self._memo:
            self._memo["page"] = page(self)
        return self._memo["page"]

    def __repr__(self):
        return f"Explorer({self.title!r}, inputs: {', '.join(i.name for i in self.inputs)})"


def _of_bar(view, label, output, arguments):
    """The named answers of one bar."""
    step = output(**arguments)
    before = f"{label}: " if label else ""
    answered = step is not None and step.feasible
    for name, seconds in step.terms.items() if answered else ():
        yield before + name, seconds / factor(view.unit)
    yield f"{before}total", step.total / factor(view.unit) if answered else None


def _js(expression):
    code = sympy.jscode(expression)
    if re.search(r"Not supported|(Sum|Product|Integral|Derivative)\(", code):
        raise ValueError(f"cannot be printed as JavaScript: {expression}")
    return " ".join(code.split())
