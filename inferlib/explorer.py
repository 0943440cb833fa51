"""Explorers: one description of inputs and outputs, alive in a notebook and in the page without a kernel.

The outputs are ordinary calls of equations. In the page they run as JavaScript printed from the SymPy
expressions that those calls return on symbols; in a notebook :meth:`Explorer.widget` calls them on numbers.
"""

import hashlib
import html
import json
import keyword
import math
import re
from dataclasses import dataclass
from importlib.resources import files

from inferlib import checks
from inferlib.equation import Record, quantities, symbolic
from inferlib.system import Breakdown
from inferlib.units import factor

_RESERVED = {*keyword.kwlist, "case", "const", "default", "do", "enum", "export", "extends", "function", "let"} | {
    "new", "null", "super", "switch", "this", "throw", "typeof", "var", "void", "true", "false", "eval", "arguments",
}  # fmt: skip


@dataclass(frozen=True)
class Slider:
    """A number the reader moves, between ``low`` and ``high`` in ``unit`` (display only), log or linear."""

    name: str
    label: str
    low: float
    high: float
    value: float
    unit: str = ""
    log: bool = False
    whole: bool = False

    def __post_init__(self):
        _named(self)
        checks.number(f"slider {self.name}: high", self.high)
        if not self.low < self.high:
            raise ValueError(f"slider {self.name}: low is {self.low}, but must be below high, {self.high}")
        checks.number(f"slider {self.name}: low", self.low, zero=not self.log)
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"slider {self.name}: value is {self.value}, but must be {self.low} to {self.high}"
            )

    def position(self, value):
        """Where a value stands on the slider's own scale."""
        return math.log10(value) if self.log else value

    def taken(self, value):
        """A value as the outputs see it: rounded where the slider holds whole numbers."""
        return round(value) if self.whole else value


@dataclass(frozen=True)
class Choice:
    """One of several records (a chip, a model) or numbers, by label; the first is chosen at the start."""

    name: str
    label: str
    options: dict

    def __post_init__(self):
        _named(self)
        if not self.options:
            raise ValueError(f"choice {self.name} has no options")
        if len({isinstance(value, Record) for value in self.options.values()}) > 1:
            raise ValueError(f"choice {self.name} mixes records and numbers")

    def columns(self):
        """The numbers of the options: symbol name to list of values. Fields some option lacks are left out."""
        values = list(self.options.values())
        if not isinstance(values[0], Record):
            return {self.name: [float(v) for v in values]}
        names = [
            f.name for f in quantities(values[0]) if all(getattr(v, f.name, None) is not None for v in values)
        ]
        return {f"{self.name}_{name}": [float(getattr(v, name)) for v in values] for name in names}

    def symbol(self):
        """What stands for the chosen option in the expressions."""
        import sympy

        first = next(iter(self.options.values()))
        if not isinstance(first, Record):
            return sympy.Symbol(self.name, positive=True)
        # Every field: one that some option lacks must show up as an unknown, not as the first option's value.
        return symbolic(first, {f.name: f"{self.name}_{f.name}" for f in quantities(first)})


class Explorer:
    """Curves or a breakdown bar over sliders and choices. Make one with :func:`curves` or :func:`breakdown`."""

    def __init__(self, title, inputs, outputs, *, unit, x=None, y_label="", log_y=False):
        names = [i.name for i in inputs]
        if len(set(names)) != len(names):
            raise ValueError(f"inputs must have names of their own, not {', '.join(names)}")
        if x is not None:
            checks.one_of("x among the sliders", x, [i.name for i in inputs if isinstance(i, Slider)])
        if len(set(_columns(inputs))) != len(_columns(inputs)):
            raise ValueError(
                f"explorer {title!r}: two inputs share one of the names {', '.join(_columns(inputs))}"
            )
        self.title, self.inputs, self.outputs, self.unit = title, inputs, outputs, unit
        self.x, self.y_label, self.log_y = x, y_label, log_y

    def evaluate(self, **values):
        """The outputs at given inputs (choices by label), computed in Python.

        Returns
        -------
        dict
            Output name to number, in the explorer's unit.
        """
        for name in values:
            checks.one_of(f"input of {self.title!r}", name, [i.name for i in self.inputs])
        arguments = self._chosen({i.name: values.get(i.name, _start(i)) for i in self.inputs})
        return {name: value / factor(self.unit) for name, value in self._called(arguments)[0].items()}

    def _chosen(self, values):
        """The arguments of the outputs for values of all inputs: options by label, numbers within range."""
        chosen = {}
        for i in self.inputs:
            value = values[i.name]
            if isinstance(i, Choice):
                chosen[i.name] = i.options[checks.one_of(i.name, value, i.options)]
            else:
                checks.number(i.name, value, zero=True, minimum=i.low, maximum=i.high)
                chosen[i.name] = i.taken(value)
        return chosen

    def _called(self, arguments):
        """The outputs for arguments of any kind, and how a breakdown groups them (or None)."""
        if callable(self.outputs):
            step = self.outputs(**arguments)
            if not isinstance(step, Breakdown) or not step.feasible:
                raise ValueError(f"explorer {self.title!r}: its function must return a feasible Breakdown")
            return step.terms, [[len(group) for group in stage] for stage in step.grouped]
        return {name: output(**arguments) for name, output in self.outputs.items()}, None

    def _symbolic(self):
        import sympy

        arguments = {
            i.name: i.symbol() if isinstance(i, Choice) else sympy.Symbol(i.name, positive=True)
            for i in self.inputs
        }
        values, stages = self._called(arguments)
        return {
            name: sympy.sympify(value) / sympy.nsimplify(factor(self.unit)) for name, value in values.items()
        }, stages

    def arguments(self):
        """The names the JavaScript function takes, in order: sliders, then the columns of the choices."""
        return _columns(self.inputs)

    def javascript(self):
        """The outputs as one JavaScript function of :meth:`arguments`, returning an array.

        Raises
        ------
        ValueError
            If an output cannot be printed as JavaScript or depends on something that is no input.
        """
        import sympy

        expressions, _ = self._symbolic()
        order = self.arguments()
        unknown = {str(s) for e in expressions.values() for s in e.free_symbols} - set(order)
        if unknown:
            raise ValueError(f"explorer {self.title!r} has no input for {', '.join(sorted(unknown))}")
        shared, results = sympy.cse(
            list(expressions.values()), symbols=sympy.numbered_symbols("t"), order="canonical"
        )
        lines = [f"const {name}={_js(expression)};" for name, expression in shared]
        return f"({','.join(order)})=>{{{''.join(lines)}return [{','.join(map(_js, results))}];}}"

    def _repr_html_(self):
        expressions, stages = self._symbolic()
        config = {
            "args": self.arguments(),
            "names": list(expressions),
            "sliders": [
                {"key": i.name, "label": _with_unit(i), "unit": i.unit, "low": i.low, "high": i.high}
                | {"log": i.log, "whole": i.whole, "start": i.value}
                for i in self.inputs if isinstance(i, Slider)
            ],
            "choices": [{"key": i.name, "columns": i.columns()} for i in self.inputs if isinstance(i, Choice)],
            "stages": stages,
            "x": self.x,
            "yLabel": self.y_label,
            "unit": "" if self.unit == "1" else self.unit,
            "logY": self.log_y,
        }  # fmt: skip
        code = self.javascript()
        identity = _identity(self.title, config, code)
        controls = "".join(_control(identity, i) for i in self.inputs)
        view = "0 0 600 90" if stages else "0 0 600 300"
        picture = f'<svg viewBox="{view}" role="img" aria-label="{html.escape(self.title)}"></svg>'
        body = f'{controls}{picture}<div class="readout" role="status" aria-live="polite"></div>'
        runtime = (files("inferlib") / "explorer.js").read_text("utf-8").strip()
        data = _json(config | {"id": identity})
        return _box(identity, self.title, body, f"{runtime}(Object.assign({data},{{outputs:{code}}}));")

    def __repr__(self):
        return f"Explorer({self.title!r}, inputs: {', '.join(i.name for i in self.inputs)})"

    def widget(self):
        """The same as ipywidgets, for a live notebook: computed by Python, drawn by Matplotlib."""
        import ipywidgets

        controls = {i.name: _ipywidget(ipywidgets, i) for i in self.inputs}
        return ipywidgets.interactive(self._draw, **controls)

    def _draw(self, **values):
        import matplotlib.pyplot as plt

        chosen = self._chosen(values)
        if callable(self.outputs):
            from inferlib.style import breakdown_bars

            breakdown_bars({"": self.outputs(**chosen)})
        else:
            import numpy as np

            x = next(i for i in self.inputs if i.name == self.x)
            grid = np.geomspace(x.low, x.high, 161) if x.log else np.linspace(x.low, x.high, 161)
            _, ax = plt.subplots()
            for name, output in self.outputs.items():
                ax.plot(grid, output(**(chosen | {self.x: grid})) / factor(self.unit) + 0 * grid, label=name)
            ax.axvline(values[self.x], color="0.6", linestyle="--", linewidth=1)
            ax.set(xlabel=_with_unit(x), ylabel=self.y_label, xscale="log" if x.log else "linear")
            ax.set_yscale("log" if self.log_y else "linear")
            ax.legend()
        plt.show()


def curves(title, inputs, outputs, *, x, y_label, unit, log_y=False):
    """An explorer that draws outputs as curves over one of its sliders.

    Parameters
    ----------
    title : str
    inputs : list of Slider or Choice
    outputs : dict
        Curve label to a function of all inputs by name, made of equations; SI result.
    x : str
        Name of the slider on the horizontal axis.
    y_label : str
    unit : str
        Unit to show results in, such as ``"ms"``.
    log_y : bool

    Examples
    --------
    >>> double = curves("Twice", [Slider("a", "a", 1, 10, 2)], {"2a": lambda a: 2 * a}, x="a", y_label="2a", unit="1")
    >>> double.javascript(), double.evaluate(a=3)
    ('(a)=>{return [2*a];}', {'2a': 6.0})
    """
    return Explorer(title, list(inputs), dict(outputs), unit=unit, x=x, y_label=y_label, log_y=log_y)


def breakdown(title, inputs, function, *, unit="ms"):
    """An explorer that draws the terms of one :class:`inferlib.Breakdown` as a bar.

    Parameters
    ----------
    title : str
    inputs : list of Slider or Choice
    function : callable
        Of all inputs by name; returns a feasible Breakdown, on numbers and on symbols.
    unit : str
        Unit to show the terms in.
    """
    return Explorer(title, list(inputs), function, unit=unit)


@dataclass(frozen=True)
class Guess:
    """A slider for the reader's own estimate, before the answer is shown.

    Parameters
    ----------
    question : str
    answer : float
        The computed answer, in ``unit``.
    unit : str
    low, high : float
        Ends of the (logarithmic) slider; it starts in the middle.
    """

    question: str
    answer: float
    unit: str
    low: float
    high: float

    def __post_init__(self):
        checks.number("answer", self.answer)
        checks.number("low", self.low)
        checks.number("high", self.high)
        if not self.low < self.answer < self.high:
            raise ValueError(f"answer is {self.answer}, but must lie between {self.low} and {self.high}")

    def _repr_html_(self):
        slider = Slider(
            "guess", "Your guess", self.low, self.high, math.sqrt(self.low * self.high), self.unit, log=True
        )
        config = {"answer": float(self.answer), "unit": self.unit}
        identity = _identity(self.question, config, "guess")
        body = (
            f'{_control(identity, slider)}<button type="button">Show what the model says</button> '
            '<span class="readout" role="status" aria-live="polite"></span>'
        )
        runtime = (files("inferlib") / "guess.js").read_text("utf-8").strip()
        data = _json(config | {"id": identity})
        return _box(identity, self.question, body, f"{runtime}({data});")

    def __repr__(self):
        return f"Guess({self.question!r})"


def _named(i):
    """Refuse a name that cannot be a parameter in Python and in JavaScript."""
    if not (isinstance(i.name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", i.name)) or i.name in _RESERVED:
        raise ValueError(
            f"input name is {i.name!r}, but must be lower-case letters, digits and _, and no keyword"
        )


def _columns(inputs):
    """The arguments of the JavaScript function: sliders, then the columns of the choices."""
    sliders = [i.name for i in inputs if isinstance(i, Slider)]
    return sliders + [column for i in inputs if isinstance(i, Choice) for column in i.columns()]


def _json(data):
    """Data inside a script: no text in it may end the script."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).replace("</", "<\\/")


def _start(i):
    return next(iter(i.options)) if isinstance(i, Choice) else i.value


def _with_unit(slider):
    return f"{slider.label} ({slider.unit})" if slider.unit else slider.label


def _control(identity, i):
    name = f"{identity}-{i.name}"
    label = f'<div class="control"><label for="{name}">{html.escape(i.label)}</label>'
    if isinstance(i, Choice):
        options = "".join(f"<option>{html.escape(option)}</option>" for option in i.options)
        return f'{label}<select id="{name}">{options}</select></div>'
    low, high, value = (f"{i.position(v):.6g}" for v in (i.low, i.high, i.value))
    step = 1 if i.whole and not i.log else f"{(i.position(i.high) - i.position(i.low)) / 400:.6g}"
    return (
        f'{label}<input type="range" autocomplete="off" id="{name}" min="{low}" max="{high}" '
        f'step="{step}" value="{value}">'
        f'<output for="{name}"></output></div>'
    )


def _ipywidget(ipywidgets, i):
    wide = {"style": {"description_width": "13em"}, "layout": {"width": "32em"}, "description": i.label}
    if isinstance(i, Choice):
        return ipywidgets.Dropdown(options=list(i.options), **wide)
    if i.log:
        return ipywidgets.FloatLogSlider(value=i.value, min=i.position(i.low), max=i.position(i.high), **wide)
    kind = ipywidgets.IntSlider if i.whole else ipywidgets.FloatSlider
    return kind(value=i.value, min=i.low, max=i.high, **wide)


def _box(identity, title, body, script):
    style = (files("inferlib") / "explorer.css").read_text("utf-8").strip()
    heading = f'<div class="title">{html.escape(title)}</div>'
    return (
        f'<style>{style}</style><div id="{identity}" class="inferlib-explorer" role="group" '
        f'aria-label="{html.escape(title)}">{heading}{body}</div><script>{script}</script>'
    )


def _identity(*content):
    """An id made of the content, so that the same explorer is the same HTML in every run."""
    return "ex-" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


def _js(expression):
    import sympy

    code = sympy.jscode(expression)
    if "Not supported" in code or any(
        name + "(" in code for name in ("Sum", "Product", "Integral", "Derivative")
    ):
        raise ValueError(f"cannot be printed as JavaScript: {expression}")
    return code
