"""Explorers: inputs and views of outputs, interactive in a notebook and in the page without a kernel.

The outputs are ordinary calls of equations. The page runs JavaScript generated from the SymPy expressions that
those calls return on symbols; in a notebook :meth:`Explorer.widget` calls them on numbers.
"""

import html
import io
import itertools
import math
import re
from functools import cached_property
from urllib.parse import quote

import matplotlib.pyplot as plt
import numpy as np
import sympy

from book.explorer import inputs as _inputs, kernel_model_line, outputs as _outputs
from book.explorer.inputs import Choice, Slider, StructureChoice
from book.explorer.outputs import Bars, Curves, Gauge
from book.explorer.page import page
from book.style import breakdown_bars, coloured
from inferlib import validation
from inferlib.equation import forbid_override
from inferlib.units import factor


class Explorer:
    """Views of outputs over inputs.

    ``title``: also begins the address of a stored state. ``views``: drawn below one another, with common inputs.
    ``limits``: name to :class:`Limit`; where one is exceeded, the page shows what is missing instead of an answer.
    ``asks``: the kernel model's question for the current inputs (:mod:`book.explorer.kernel_model_line`).
    ``more``: names of inputs that the page folds away.
    """

    def __init__(self, title, inputs, views, *, limits=None, asks=None, more=()):
        self.asks, self.more = asks, more
        self.title, self.inputs, self.views, self.limits = title, list(inputs), list(views), limits or {}
        _inputs.check(title, self.inputs)
        _outputs.check(self.views, [i.name for i in self.inputs if isinstance(i, Slider)])
        self._memo = {}

    # --- Python

    def state(self, **values):
        """Return values of all inputs: those given, the others as at the start.

        A choice also sets other inputs (its ``sets``), unless they are given.
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
        """Return the outputs at given inputs (choices by label), computed in Python."""
        arguments = self._arguments(self.state(**values))
        answers = dict(self._answers(arguments))
        if not self._short(arguments):
            return answers
        kept = {name for view in self.views if isinstance(view, Gauge) for name in view.outputs}
        return {name: value if name in kept else None for name, value in answers.items()}

    def shortages(self, **values):
        """Return exceeded limits: name to (needed, available), in its unit."""
        return self._short(self._arguments(self.state(**values)))

    def _short(self, arguments, caution=False):
        found = {
            name: tuple(f(**arguments) / factor(limit.unit) for f in (limit.needed, limit.available))
            for name, limit in self.limits.items()
            if limit.caution == caution
        }
        return {name: (needed, has) for name, (needed, has) in found.items() if needed > has}

    def link(self, **values):
        """Return the end of an address that opens the page with these inputs: ``#title?batch=64&...``."""
        full = self.state(**values)
        plain = (v if isinstance(v, str) else f"{float(v)!r}".removesuffix(".0") for v in full.values())
        pairs = (f"{name}={quote(value, safe='')}" for name, value in zip(full, plain, strict=True))
        return f"#{self.slug}?{'&'.join(pairs)}"

    @property
    def slug(self):
        """The title in letters that an address may have."""
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

    # --- JavaScript

    def arguments(self):
        """Return the parameters of the JavaScript functions, in order: sliders, then the columns of choices in use."""
        values = [v for values, _ in self._variants.values() for v in values]
        used = {str(s) for v in values for s in getattr(v, "free_symbols", ())}
        sliders = {i.name for i in self.inputs if isinstance(i, Slider)}
        return [name for name in _inputs.columns_of(self.inputs) if name in used or name in sliders]

    def raw(self, **values):
        """Return the numbers of the JavaScript function, computed in Python: SI units; None if Python raises."""
        state = self.state(**values)
        planned = self._variants[tuple(state[k.name] for k in self._kinds)][1]
        return [None if v is None else float(v) for v in self._raw(self._arguments(state), planned)[0]]

    def javascript(self, **kinds):
        """Return the outputs as one JavaScript function of :meth:`arguments` that returns an array."""
        chosen = tuple(kinds.get(k.name, k.start()) for k in self._kinds)
        if chosen not in self._memo:
            self._memo[chosen] = self._function(self.arguments(), self._variants[chosen][0])
        return self._memo[chosen]

    @property
    def _kinds(self):
        return [i for i in self.inputs if isinstance(i, StructureChoice)]

    @cached_property
    def _variants(self):
        """Expressions and plan for every combination of structure choices."""
        labels = itertools.product(*(k.options for k in self._kinds))
        return dict(zip(labels, map(self._raw, self.structures()), strict=True))

    def structures(self):
        """Return the arguments of the outputs for each combination of structure choices: symbols except for these."""
        combinations = itertools.product(*(k.options.values() for k in self._kinds))
        names = [k.name for k in self._kinds]
        return [self._symbols() | dict(zip(names, options, strict=True)) for options in combinations]

    def _symbols(self):
        return {i.name: i.symbol() for i in self.inputs if isinstance(i, Slider | Choice)}

    def _raw(self, arguments, planned=None):
        """Return the numbers of all views in one list, and the plan with the meaning of each."""
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
        """Return JavaScript of a list of expressions; common subexpressions are computed once."""
        expressions = [sympy.sympify(v) for v in values]
        unknown = {str(s) for e in expressions for s in e.free_symbols} - set(order)
        if unknown:
            raise ValueError(f"explorer {self.title!r} has no input for {', '.join(sorted(unknown))}")
        shared, results = sympy.cse(expressions, symbols=sympy.numbered_symbols("t"), order="canonical")
        lines = [f"const {name}={_js(expression)};" for name, expression in shared]
        return f"({','.join(order)})=>{{{''.join(lines)}return [{','.join(map(_js, results))}];}}"

    def code(self):
        """Return all generated JavaScript: a function for each combination of structure choices."""
        names = [k.name for k in self._kinds]
        return [self.javascript(**dict(zip(names, labels, strict=True))) for labels in self._variants]

    def plans(self):
        """Return, for each combination of structure choices, the meaning of each number in the returned array."""
        return [plan for _, plan in self._variants.values()]

    def _repr_html_(self):
        forbid_override(f"the page's {self.title!r}", variants=False)
        if "page" not in self._memo:
            self._memo["page"] = page(self)
        return self._memo["page"]

    def __repr__(self):
        return f"Explorer({self.title!r}, inputs: {', '.join(i.name for i in self.inputs)})"

    # --- Notebook

    def _repr_mimebundle_(self, **_):
        """Return the page's HTML, and with a kernel the widget, which a notebook shows instead."""
        from IPython import get_ipython

        live = self.widget()._repr_mimebundle_() if get_ipython() else {}
        return live | {"text/plain": repr(self), "text/html": self._repr_html_()}

    def widget(self):
        """Return the explorer as ipywidgets for a live notebook: computed by Python, drawn by Matplotlib."""
        import ipywidgets

        controls = {i.name: _ipywidget(ipywidgets, i) for i in self.inputs}
        shown = ipywidgets.HTML()

        def follow(change=None):
            for i in self.inputs if change else ():
                if controls[i.name] is change.owner:  # as on the page, a choice may set other controls
                    for name, value in getattr(i, "sets", {}).get(change.new, {}).items():
                        controls[name].value = value
            shown.value = self.answered(**{name: control.value for name, control in controls.items()})

        for control in controls.values():
            control.observe(follow, names="value")
        follow()
        return ipywidgets.VBox([*controls.values(), shown])

    def within(self, **values):
        """Clip values to their ranges; rounding may move the end of a logarithmic slider beyond it."""
        sliders = [i for i in self.inputs if isinstance(i, Slider)]
        return values | {i.name: i.within(values[i.name]) for i in sliders}

    def answered(self, **values):
        """Return the HTML that the widget shows at values of its controls."""
        before = plt.get_fignums()
        try:
            shown = [f"<p>{html.escape(line)}</p>" for line in self._draw(self.within(**values))]
        except ValueError as refusal:  # two options that exclude each other
            return html.escape(str(refusal))
        for number in plt.get_fignums():
            if number not in before:
                drawn = io.StringIO()
                plt.figure(number).savefig(drawn, format="svg", bbox_inches="tight")
                plt.close(number)
                shown.append(drawn.getvalue()[drawn.getvalue().find("<svg") :])
        return "".join(shown)

    def _draw(self, values):
        """Draw the views; return the texts beside them."""
        arguments = self._arguments(self.state(**values))
        said, short = [], self._short(arguments)
        for name, (needed, has) in (short | self._short(arguments, caution=True)).items():
            limit = self.limits[name]
            said.append(f"{limit.says}. {name}: {needed:.4g} of {has:.4g} {limit.unit}")
        for view in self.views:
            if isinstance(view, Bars) and not short:
                breakdown_bars({name: _outputs.step_of(f, arguments) for name, f in view.steps.items()})
            elif isinstance(view, Curves):
                self._draw_curves(view, values, arguments)
            elif hasattr(view, "draw"):
                view.draw(self.evaluate(**values))
            elif isinstance(view, _outputs.Sentence):
                said.append(view.say(self.evaluate(**values), lambda value: f"{value:.3g}"))
        if self.asks is not None and not short:
            said.append(kernel_model_line.format_answer(self, lambda value: f"{value:.3g}", **values))
        return said

    def _draw_curves(self, view, values, arguments):
        x = next(i for i in self.inputs if i.name == view.x)
        grid = np.geomspace(x.low, x.high, 61) if x.log else np.linspace(x.low, x.high, 61)
        _, ax = plt.subplots()
        colours = coloured(view.outputs)
        for name, output in view.outputs.items():
            moved = [arguments | {view.x: x.taken(float(v))} for v in grid]
            at = [None if self._short(a) else output(**a) for a in moved]
            if any(at):
                shown = [math.nan if v is None else v / factor(view.unit) for v in at]
                ax.plot(grid, shown, color=colours[name], label=name)
        ax.axvline(values[view.x], color="0.6", linestyle="--", linewidth=1)
        ax.set(xlabel=_inputs.with_unit(x), ylabel=view.y_label, xscale="log" if x.log else "linear")
        if len(ax.lines) > 1:
            ax.set_yscale("log" if view.log_y else "linear")
            ax.legend(fontsize=10)


def _of_bar(view, label, output, arguments):
    """Yield the answers of one bar: its terms and its total."""
    step = output(**arguments)
    before = f"{label}: " if label else ""
    answered = step is not None and step.feasible
    for name, seconds in step.terms.items() if answered else ():
        yield before + name, seconds / factor(view.unit)
    yield f"{before}total", step.total / factor(view.unit) if answered else None


def _ipywidget(ipywidgets, i):
    wide = {"style": {"description_width": "20em"}, "layout": {"width": "40em"}}
    if not isinstance(i, Slider):
        return ipywidgets.Dropdown(options=list(i.options), description=i.label, **wide)
    wide["description"] = _inputs.with_unit(i)
    if i.whole and not i.log:
        return ipywidgets.IntSlider(value=i.value, min=i.low, max=i.high, **wide)
    least, most, start = map(i.position, (i.low, i.high, i.value))
    # A notebook shows the nearest step, so the start must be a step; typed numbers are kept.
    steps = max(1, round(240 * (start - least) / (most - least)))
    step = (start - least) / steps or (most - least) / 240
    kind = ipywidgets.FloatLogSlider if i.log else ipywidgets.FloatSlider
    shown = ",.0f" if i.whole else ",.5"
    return kind(value=i.value, min=least, max=most, step=step, readout_format=shown, **wide)


def _js(expression):
    code = sympy.jscode(expression)
    if re.search(r"Not supported|(Sum|Product|Integral|Derivative)\(", code):
        raise ValueError(f"cannot be printed as JavaScript: {expression}")
    return " ".join(code.split())
