"""Equations written once: fields with units, registers of equations and derivations, symbolic records.

An ``@equation`` stays a plain Python function. The decorator adds its printed number and the units of its
arguments and result; everything else (sweeps, symbols, LaTeX, JavaScript, dimension checks, the tree that
``explain`` shows) comes from calling that function with other types of arguments.
"""

import inspect
import os
import sys
import warnings
from cmath import isclose
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from random import Random
from typing import dataclass_transform

from inferlib import validation
from inferlib.ops import holding

EQUATIONS: dict = {}  # (source, function name) -> Equation
DERIVATIONS: dict = {}  # (source, function name) -> Derivation

# While explain() runs: called instead of an equation's function. Each thread has its own.
tracer = ContextVar("tracer", default=None)
# True within an equation: its arguments have been checked, so nested equations skip their checks.
_inside = ContextVar("inside", default=False)
# Within blocks of ``replaced``: equation -> the function used there. Shared by all threads, since dask has its own.
_replaced: dict = {}
_judging = ContextVar("judging", default=False)
_judged: dict = {}  # the same: equation -> why its closed form no longer holds, or ""; and derivations made there
# Closed forms with a loaded derivation: compared with it on their first call, and kept here if they differ.
_suspects: set = set()
_compared_forms: dict = {}  # equation -> why its closed form differs from its derivation, or ""
_variants: list = []  # equations replaced by a variant; their closed forms are replaced by a numerical minimum
_HUGE = float("inf")
_RELATIONS = {"approximation": r"\approx", "limit": r"\to"}  # LaTeX relation of an equation of this form


def quantity(meaning, unit="1", *, default=MISSING, zero=False, minimum=None, maximum=None):
    """Declare a dataclass field that holds a number in a ``unit``, such as ``"B/s"`` or ``"s"``.

    ``meaning``: a few words, printed in the notation chapter. ``zero`` allows zero (as does a default of zero);
    ``minimum``, ``maximum``: smallest and largest value allowed, such as at most 1 for a fraction.
    """
    limits = {"zero": zero or default == 0, "minimum": minimum, "maximum": maximum}
    return field(default=default, metadata={"unit": unit, "meaning": meaning} | limits)


def stated_sources():
    """Declare the field that says where each number of a record is stated; it does not count in comparisons."""
    return field(default_factory=dict, compare=False)


class FrozenDict(dict):
    """A dictionary that belongs to a record and cannot be changed."""

    def _refuse(self, *_, **__):
        raise TypeError("this dictionary belongs to a record, which does not change; use .replace(...)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return FrozenDict, (dict(self),)


@dataclass_transform(frozen_default=True)
def frozen(kind):
    """Make a frozen dataclass that inherits ``__repr__`` and ``__eq__``, because generating them slows the import."""
    return dataclass(frozen=True, repr=False, eq=False)(kind)


@dataclass_transform(frozen_default=True)
class Record:
    """Base of records: frozen dataclasses that validate numbers, compare by value, and copy with changes."""

    def __init_subclass__(cls):
        frozen(cls)

    def __post_init__(self):
        for name, value in vars(self).items():
            if type(value) is dict:
                object.__setattr__(self, name, FrozenDict(value))
        for name, title, limits, least, most, optional in _doors(type(self)):
            value = getattr(self, name)
            usual = type(value) is float and least < value <= most
            if usual or (value is None and optional):
                continue
            taken = validation.number(title, value, **limits)
            if taken is not value:
                object.__setattr__(self, name, taken)

    def replace(self, **changes):
        """Return a copy with some fields changed."""
        for name in changes.keys() - self.__dataclass_fields__.keys():
            validation.one_of(f"field of {type(self).__name__}", name, self.__dataclass_fields__)
        stated = getattr(self, "sources", None)
        if stated and "sources" not in changes:
            # the source no longer states a changed number
            changed = {name: f"changed from: {stated[name]}" for name in changes if name in stated}
            changes = changes | {"sources": {**stated, **changed}}
        known = vars(self)
        return type(self)(**{name: known[name] for name in self.__dataclass_fields__} | changes)

    def __repr__(self):
        values = ((f, getattr(self, f.name)) for f in fields(self))
        shown = ", ".join(f"{f.name}={value!r}" for f, value in values if not _is_default(f, value))
        return f"{type(self).__qualname__}({shown})"

    def __eq__(self, other):
        kind = type(self)
        return _compared(kind)(self) == _compared(kind)(other) if type(other) is kind else NotImplemented

    def __hash__(self):
        return hash(_compared(type(self))(self))


def _is_default(f, value):
    """Whether a field has its default value; the record's text leaves it out then."""
    default = f.default if f.default_factory is MISSING else f.default_factory()
    return isinstance(value, type(default)) and bool(value == default)


@cache
def _compared(kind):
    """Return a getter of the fields by which records of a class are compared: all but their ``sources``."""
    return attrgetter(*(f.name for f in fields(kind) if f.compare))


def quantities(record):
    """Return the fields of a record (or record class) declared with :func:`quantity`."""
    return [f for f in fields(record) if "unit" in f.metadata]


@cache
def _doors(kind):
    """Return name, name in errors, limits (with both ends), and whether None is allowed, for every quantity."""
    found = []
    for f in quantities(kind):
        limits = {name: f.metadata[name] for name in ("zero", "minimum", "maximum")}
        ends = limits["minimum"] or 0, limits["maximum"] or validation.LARGE
        found.append((f.name, f"{kind.__name__}.{f.name}", limits, *ends, f.default is None))
    return found


def symbolic(record, notation: Mapping[str, str] | str):
    """Return a record whose fields are SymPy symbols.

    ``record``: a record (fields not in the notation keep their values) or a class (they keep their defaults, or become
    a symbol of the field's name). ``notation``: field name to LaTeX symbol, or the key of a source, whose
    ``source.toml`` has the symbols.

    Examples
    --------
    >>> from inferlib.system import Accelerator
    >>> symbolic(Accelerator, {"flops": "C", "memory_bandwidth": "M"}).flops
    C
    """
    from inferlib.optional_imports import sympy

    symbols = symbols_of(notation) if isinstance(notation, str) else notation
    kind = record if isinstance(record, type) else type(record)
    values = {} if isinstance(record, type) else {f.name: getattr(record, f.name) for f in fields(record)}
    for f in quantities(kind):
        if f.name in symbols:
            values[f.name] = sympy.Symbol(symbols[f.name], positive=True)
        elif isinstance(record, type):
            missing = f.default is MISSING or f.default is None
            values[f.name] = sympy.Symbol(f.name, positive=True) if missing else _exact(f.default)
    return kind(**values)


@cache
def _exact(number):
    """Return a default value as an exact SymPy number."""
    from inferlib.optional_imports import sympy

    return sympy.nsimplify(number)


@frozen
class Equation:
    """Entry of one equation in the register."""

    source: str
    number: str | None
    function: Callable
    unit: str
    arguments: dict
    chapter: str
    form: str
    also: dict
    least: "Minimum | None" = None

    @property
    def name(self):
        """Name of the function."""
        return self.function.__name__

    @property
    def working(self):
        """The function that computes the equation now: its own, or its replacement in a block of ``replaced``.

        A closed form that no longer holds raises ValueError, or is computed as its declared :class:`Minimum`.
        """
        if self in _replaced or not (why := _stale(self)):
            return _replaced.get(self, self.function)
        if not _searches(self):
            raise ValueError(why)
        return self.least.search(self, why)

    @contextmanager
    def replaced(self, function):
        """Compute this equation with another function within a ``with`` block, for all callers.

        Results that cannot follow raise ValueError with the equation's name: a closed form derived from it, a search
        that adds its terms in pieces, a printed page. ``function`` needs the same parameters (else TypeError) and gets
        the equation's defaults; the original is ``name.equation.function``.

        Examples
        --------
        >>> from inferlib.papers import steinhardt2022 as st
        >>> with st.arithmetic_work.replaced(lambda machine, m, b: 4 * m**2 * b):
        ...     st.arithmetic_time(st.load_chip("A100"), 1000, 78) * 1e6
        1.0
        >>> st.arithmetic_time(st.load_chip("A100"), 1000, 78) * 1e6
        0.5
        """
        signature = inspect.signature(self.function)
        wanted, given = (", ".join(one.parameters) for one in (signature, inspect.signature(function)))
        if given != wanted:
            raise TypeError(f"what replaces {self.name} takes {given}, but must take {wanted}")

        def with_defaults(*args, **kwargs):
            asked = signature.bind(*args, **kwargs)
            asked.apply_defaults()
            return function(*asked.args, **asked.kwargs)

        before = dict(_replaced)
        _replaced[self] = with_defaults
        _judged.clear()
        try:
            yield
        finally:
            _replaced.clear()
            _replaced.update(before)
            _judged.clear()

    def symbols(self):
        """Return the arguments as SymPy symbols and symbolic records, in the source's notation."""
        from inferlib.optional_imports import sympy

        symbols = symbols_of(self.source)
        records = {name: symbolic(kind, symbols) for name, kind in record_arguments(self.function).items()}
        plain = {name: sympy.Symbol(symbols.get(name, name), positive=True) for name in self.arguments}
        return records | plain

    def expression(self, number=None):
        """Return the right-hand side as a SymPy expression, under its own or another of its printed numbers."""
        values = self.symbols()
        if number is not None and number != self.number:
            values |= {name: other.equation.expression() for name, other in self.also[number].items()}
        return self.working(**values)

    def latex(self, number=None):
        """Return the equation as LaTeX in the source's notation."""
        return self.latex_with(latex(self.expression(number)))

    def latex_with(self, right):
        """Return the equation as LaTeX, with another text on its right-hand side."""
        left = symbols_of(self.source).get(self.name, rf"\text{{{self.name.replace('_', ' ')}}}")
        return f"{left} {_RELATIONS.get(self.form, '=')} {right}"

    def _repr_markdown_(self):
        try:
            return displayed(self.latex(), self.number)
        except ValueError as why:  # a closed form that no longer holds is shown as it was
            with holding(_judging, True):
                return f"{displayed(self.latex(), self.number)}\n{why}."

    def __repr__(self):
        return f"{self.source}.{self.name}" + (f" ({self.number})" if self.number else "")


def latex(expression, names=None):
    """Return an expression as LaTeX in the book's style; ``names`` is the LaTeX of some symbols.

    Thin spaces between factors, powers like 2/3 on one line, and M - B rather than -B + M.

    Examples
    --------
    >>> import sympy
    >>> latex(sympy.Symbol("M") - sympy.Symbol("B"))
    'M - B'
    """
    return _printer()(names or {}).doprint(expression)


@cache
def _printer():
    from sympy.printing.latex import LatexPrinter

    class Printer(LatexPrinter):
        def _as_ordered_terms(self, expr, order=None):
            terms = super()._as_ordered_terms(expr, order=order)
            return sorted(terms, key=lambda term: term.could_extract_minus_sign())

    return lambda names: Printer({"mul_symbol": r"\, ", "fold_frac_powers": True, "symbol_names": names})


def displayed(text, number=None):
    """Return a displayed equation in Markdown, with its printed number."""
    tag = rf" \tag{{{number}}}" if number else ""
    return f"\\begin{{equation*}}\n{text}{tag}\n\\end{{equation*}}\n"


def equation(
    source,
    number=None,
    *,
    unit="1",
    chapter=None,
    form="function",
    also=None,
    least=None,
    records=None,
    **arguments,
):
    """Register a plain function as an equation of a source, such as ``"erdil2025"``.

    ``number``: its printed number, if any. ``unit``: unit of the result (default: dimensionless). ``chapter``: stem of
    the chapter that shows it (default: the source's key). ``form``: ``"function"``, or ``"approximation"`` of another
    equation. ``also``: other printed numbers of the same function, each with ``{argument: equation}`` for arguments
    that this form takes from other equations. ``least``: the :class:`Minimum` of which this is the closed form.
    ``**arguments``: units of numeric arguments, such as ``"s"`` (default ``"1"``); they must not be negative, and with
    ``"s > 0"`` not zero. Arguments that are records are in ``records``, the classes of a source's arguments by name, or
    annotated with their class, or have a record as their default; structural arguments have a default and are passed
    by name.

    The returned function behaves like the original, has the register's entry as ``.equation``, and can be
    ``.replaced`` within a block.
    """

    def register(function):
        known = records or {}
        function.__annotations__ |= {name: known[name] for name in _parameters(function) if name in known}

        @wraps(function)
        def call(*args, **kwargs):
            working = entry.working if _replaced or entry in _suspects else function
            if trace := tracer.get():
                working = lambda *args, **kwargs: trace(entry, args, kwargs)  # noqa: E731
            if _inside.get():
                return working(*args, **kwargs)
            outside = _inside.set(True)
            try:
                args, kwargs = door(args, kwargs)
                return working(*args, **kwargs)
            except ZeroDivisionError as error:
                given = inspect.signature(function).bind(*args, **kwargs).arguments
                at = ", ".join(f"{name} = {given[name]}" for name in units if name in given)
                raise ValueError(f"{function.__name__} divides by zero at {at}") from error
            finally:
                _inside.reset(outside)

        structure = {*record_arguments(function), *(function.__kwdefaults__ or ())} - {*arguments}
        said = {name: arguments.get(name, "1") for name in _parameters(function) if name not in structure}
        units = {name: unit.removesuffix(" > 0") for name, unit in said.items()}
        positive = {name for name, unit in said.items() if unit != units[name]}
        entry = Equation(source, number, function, unit, units, chapter or source, form, also or {}, least)
        door = _door(function, units, positive)
        EQUATIONS[source, function.__name__] = entry
        call.equation = entry
        call.replaced = entry.replaced
        call.__doc__ = _documented(entry)
        return call

    return register


def _door(function, units, positive):
    """Make the function that validates and converts the arguments of one equation."""
    places = [(place, name) for place, name in enumerate(_parameters(function)) if name in units]
    title = function.__name__

    def taken(name, value):
        if type(value) in (float, int) and (0 < value < _HUGE or (value == 0 and name not in positive)):
            return value
        number = validation.number(f"{name} of {title}", value, zero=name not in positive, masked=True)
        return value if hasattr(value, "nodes") else number  # explain tracks the value's origin

    def door(args, kwargs):
        if args:
            args = list(args)
            for place, name in places:
                if place < len(args):
                    args[place] = taken(name, args[place])
        if kwargs:
            kwargs = {name: taken(name, value) if name in units else value for name, value in kwargs.items()}
        return args, kwargs

    return door


def _parameters(function):
    """Return the names of a function's parameters (none is starred); ``inspect`` would be slow."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def record_arguments(function):
    """Return the arguments of an equation that are records, with their classes: annotated, or those of defaults."""
    names = _parameters(function)[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    pairs = zip(names[len(names) - len(defaults) :], defaults, strict=True)
    return function.__annotations__ | {name: type(one) for name, one in pairs if isinstance(one, Record)}


def _documented(entry):
    """Return an equation's docstring with its declared parameters and result.

    Examples
    --------
    >>> from inferlib.papers import erdil2025
    >>> print(erdil2025.optimal_n_gpu.__doc__.rstrip())
    GPUs of the fastest instance, as a real number of at least 1.
    <BLANKLINE>
    Parameters
    ----------
    model : Model
    chip : Accelerator
    t_hop : number or array, in s
        time from one GPU to the next; in section 2.2.1 $t_{\\text{comm}}$
    <BLANKLINE>
    Returns
    -------
    number or array, as the arguments (erdil2025, equation 13)
    """
    about = inspect.getdoc(entry.function) or ""
    symbols = notation_of(entry.source)
    lines = ["Parameters", "----------"]
    for name in _parameters(entry.function):
        if name in entry.arguments:
            unit = entry.arguments[name]
            kind = "number or array" + (f", in {unit}" if unit != "1" else "")
            meaning = symbols.get(name, {}).get("meaning", "")
        else:
            # structural argument, fixed before the call
            kind = record_arguments(entry.function).get(name, str).__name__
            meaning = ""
        lines += [f"{name} : {kind}"] + ([f"    {meaning}"] if meaning else [])
    returned = "number or array, as the arguments" + (f", in {entry.unit}" if entry.unit != "1" else "")
    number = f", equation {entry.number}" if entry.number else ""
    lines += ["", "Returns", "-------", f"{returned} ({entry.source}{number})"]
    head, examples, rest = about.partition("\nExamples\n")
    shown = f"\n\n{examples.strip()}\n{rest}" if examples else "\n"
    return "\n\n".join([head.rstrip(), "\n".join(lines)]) + shown


def untraced(function):
    """Hide a function's calls from ``explain``: the thousands of trials of a search explain nothing.

    Examples
    --------
    >>> untraced(max)(1, 2)
    2
    """
    return holding(tracer, None)(function)


def unchecked(function):
    """Skip argument checks inside a function: for searches whose own arguments were checked.

    Examples
    --------
    >>> unchecked(max)(1, 2)
    2
    """
    return holding(_inside, True)(function)


@frozen
class Step:
    """One step of a derivation: a sentence and an equation, numbered if the source numbers it."""

    caption: str
    equation: object
    number: str | None = None
    form: str = "step"

    @property
    def latex(self):
        """The equation as LaTeX; a limit and an approximation are no equality."""
        return latex(self.equation).replace(" = ", f" {_RELATIONS.get(self.form, '=')} ", 1)


def _steps(parts):
    """Build steps from sentences, each followed by its equation; a :class:`Step` is kept as it is."""
    parts = iter(parts)
    found = []
    for part in parts:
        found.append(part if isinstance(part, Step) else Step(part, next(parts)))
    return found


class Steps(list):
    """The ordered steps of a derivation; shows itself as numbered text and equations."""

    broken = ""  # why the derivation no longer proves its equations
    lost: tuple = ()  # the equations that the derivation no longer proves

    @property
    def result(self):
        """The right-hand side of the last step."""
        return self[-1].equation.rhs

    def _repr_markdown_(self):
        steps = (f"**{i}.** {s.caption}\n\n{displayed(s.latex, s.number)}" for i, s in enumerate(self, 1))
        return "\n".join([*steps, self.broken])

    def __repr__(self):
        steps = (f"{i}. {s.caption} {s.equation}" for i, s in enumerate(self, 1))
        return "\n".join([*steps, *filter(None, [self.broken])])


@frozen
class Derivation:
    """Entry of one derivation in the register."""

    source: str
    function: Callable
    proves: Callable | None
    chapter: str
    also: tuple = ()


def derivation(source, *, proves=None, also=(), chapter=None):
    """Register a function that returns sentences, each followed by its equation, or instances of :class:`Step`.

    Called, it gives :class:`Steps`, which end in the equation it ``proves``; ``also``: others it shows.

    A test asserts that the last step equals that equation called on symbols. If an equation is replaced, the steps
    are derived again, and report it if they no longer end there.
    """

    ends = [one.equation for one in (proves, *also) if one]
    _suspects.update(ends)

    def register(function):
        @cached_by_equations
        @wraps(function)
        def made():
            changed = f"With {names_of_overridden()} replaced this" if _replaced else "This"
            try:
                steps = Steps(_steps(function()))
            except Exception as error:  # SymPy may raise anything for an equation it was not meant for
                if not _replaced:
                    raise
                steps = Steps()
                steps.broken, steps.lost = f"{changed} cannot be derived: {error}", tuple(ends)
                return steps
            steps.lost = tuple(entry for entry in ends if not contains(steps, entry))
            names = ", ".join(entry.name for entry in steps.lost)
            steps.broken = f"{changed} no longer ends in {names}." if names else ""
            return steps

        @wraps(made)
        def call():
            trace = tracer.get()
            return made() if trace is None else trace(entry, (), {})

        call.cache_clear = made.cache_clear
        entry = Derivation(source, call, proves, chapter or source, also)
        DERIVATIONS[source, function.__name__] = entry
        return call

    return register


def cached_by_equations(function):
    """Cache a function without arguments: once, and once more in each block of ``replaced``."""
    once = cache(function)

    @wraps(function)
    def call():
        if not _replaced:
            return once()
        if function not in _judged:
            _judged[function] = function()
        return _judged[function]

    call.cache_clear = once.cache_clear
    return call


def names_of_overridden():
    """Return the names of the equations that are replaced now; ``""`` outside of blocks."""
    return ", ".join(entry.name for entry in _replaced)


def forbid_override(what, *equations, variants=True):
    """Raise ValueError inside a block that replaces one of the equations (any equation, if none is given).

    ``what``: what cannot follow, for the message. ``variants``: also raise for equations replaced by :func:`variant`.
    """
    wanted = [one.equation for one in equations] or _replaced
    found = ", ".join(one.name for one in wanted if one in _replaced and (variants or one not in _variants))
    if found:
        raise ValueError(f"{what} cannot follow where {found} is replaced")


def _stale(entry):
    """Return why a closed form does not hold for the replaced or edited equations; ``""`` if it does."""
    judged = _judged if _replaced else _compared_forms
    if _judging.get():
        return ""
    if entry in judged:
        return judged[entry]
    if _is_importing(entry):
        return ""
    with holding(_judging, True), holding(tracer, None):
        broken = not any(entry in called_by(one, deep=True) for one in _replaced) and _broken(entry)
    follows = f"cannot follow where {names_of_overridden()} is replaced" if _replaced else "does not follow"
    judged[entry] = broken and (
        f"{entry.name} {follows}: it is the closed form of {broken}(), whose steps now end elsewhere"
    )
    if not _replaced and not broken:
        _suspects.discard(entry)
    if broken and _searches(entry):
        searched = f"{judged[entry]}; the least {entry.least.equation.__name__.strip('_')} is searched"
        warnings.warn(searched, stacklevel=4)
    return judged[entry]


def _searches(entry):
    """Whether a closed form that no longer holds becomes a numerical search: only with variants or edited equations."""
    return entry.least and (_variants or not _replaced)


def _package(entry):
    """Return the package of an equation: that of its source, else its module's."""
    room = f"inferlib.papers.{entry.source}"
    return room if find_spec(room) else entry.function.__module__.rpartition(".")[0]


def _is_importing(entry):
    """Whether the package of an equation is being imported, when records are made from printed equations."""
    return getattr(sys.modules[_package(entry)].__spec__, "_initializing", False)


def _broken(entry):
    """Return the name of the derivation that should prove an equation but no longer ends in it, or ``""``."""
    folder = _package(entry)
    if find_spec(f"{folder}.derivations"):
        import_module(f"{folder}.derivations")
    for known in list(DERIVATIONS.values()):
        if any(one and one.equation is entry for one in (known.proves, *known.also)):
            try:
                if entry in known.function().lost:
                    return known.function.__name__
            except Exception:  # an edited equation
                return known.function.__name__
    return ""


def called_by(one, deep=False):
    """Return the equations that another one calls on symbols; ``deep``: and those that these call."""
    found = []
    depth = [0]

    def trace(entry, args, kwargs):
        if deep or not depth[0]:
            found.append(entry)
        depth[0] += 1
        try:
            return entry.function(*args, **kwargs)
        finally:
            depth[0] -= 1

    with holding(tracer, trace), holding(_inside, True):
        one.function(**one.symbols())
    return found


def contains(steps, entry):
    """Whether a step of a derivation has the right-hand side of an equation."""
    from inferlib.optional_imports import sympy

    with holding(_judging, True):
        wanted = sympy.sympify(entry.expression())
    sides = [sympy.sympify(step.equation.rhs) for step in reversed(steps) if hasattr(step.equation, "rhs")]
    return wanted in sides or any(_same_values(wanted, side) for side in sides)


def _same_values(one, other):
    """Whether two expressions agree at three random points.

    Examples
    --------
    >>> import sympy
    >>> x = sympy.Symbol("x", positive=True)
    >>> [_same_values((x + 1) ** 2, other) for other in (x**2 + 2 * x + 1, x**2 + 2 * x + 1 + 1e-6)]
    [True, False]
    """
    chance = Random(1)
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    points = [{symbol: 10 ** chance.uniform(0, 2) for symbol in symbols} for _ in range(3)]
    try:
        values = [[complex(side.subs(at).evalf()) for side in (one, other)] for at in points]
    except TypeError:  # no numbers
        return False
    return all(isclose(*pair, rel_tol=1e-9) for pair in values)


@frozen
class Minimum:
    """The minimisation behind a closed form: least value of an equation over an argument, or its ``place``."""

    equation: Callable
    over: str
    start: float = 1.0
    place: bool = False

    def search(self, entry, why):
        """Return a function of the closed form's arguments that finds the minimum numerically."""
        from inferlib.optional_imports import np, xarray

        def found(*args, **kwargs):
            bound = inspect.signature(entry.function).bind(*args, **kwargs)
            bound.apply_defaults()
            low = np.log(self.start)
            high = np.log(self.start * 1e9)
            for _ in range(8):  # each round narrows the bracket to a 32nd
                at = low + (high - low) * xarray.DataArray(np.linspace(0, 1, 65), dims=self.over)
                try:
                    values = (self.equation(**bound.arguments, **{self.over: np.exp(at)}) + 0 * at).astype(
                        float
                    )
                except TypeError as symbols:
                    raise ValueError(why) from symbols
                best = values.argmin(self.over)
                low, high = (at.isel({self.over: (best + step).clip(0, 64)}) for step in (-1, 1))
            least = np.exp((low + high) / 2) if self.place else values.min(self.over)
            return least if least.ndim else float(least)

        return found


def variant(changed, function):
    """Replace an equation by another function for the rest of the session.

    Closed forms that are minima of changed equations become numerical searches, with a warning; everything else is as
    under ``replaced``. ``.close()`` or the end of a ``with`` block ends it.

    Examples
    --------
    >>> from inferlib.papers import steinhardt2022 as st
    >>> with variant(st.arithmetic_work, lambda machine, m, b: 4 * m**2 * b):
    ...     st.arithmetic_time(st.load_chip("A100"), 1000, 78) * 1e6
    1.0
    """
    ends = ExitStack()
    ends.enter_context(changed.replaced(function))
    _variants.append(changed.equation)
    ends.callback(_variants.remove, changed.equation)
    return ends


@cache
def symbols_of(source):
    """Map field and argument names to the LaTeX symbols of a source (``source.toml``)."""
    return {name: entry["symbol"] for name, entry in notation_of(source).items()}


def symbol(source, names):
    """Return the symbol of a source's name as a positive SymPy symbol; a list for several names, blanks between."""
    from inferlib.optional_imports import sympy

    found = [sympy.Symbol(symbols_of(source)[name], positive=True) for name in names.split()]
    return found if len(found) > 1 else found[0]


def equals(source, name, value):
    """Return the SymPy equation of a source's symbol and a value."""
    from inferlib.optional_imports import sympy

    return sympy.Eq(symbol(source, name), value)


def in_notation(source, chapter=None):
    """Return :func:`derivation`, :func:`symbol` and :func:`equals` of one source (and chapter)."""
    return partial(derivation, source, chapter=chapter), partial(symbol, source), partial(equals, source)


def let(name, value):
    """Return the equation that gives a value a symbol of its own within a derivation."""
    from inferlib.optional_imports import sympy

    return sympy.Eq(sympy.Symbol(name), value)


def solved(left, right, unknown):
    """Return the first value of an unknown at which both sides are equal."""
    from inferlib.optional_imports import sympy

    return sympy.solve(sympy.Eq(left, right), unknown)[0]


@cache
def notation_of(source):
    """Map names to symbol and meaning, for a source or another package with equations."""
    return load_source(source)["notation"]


@cache
def load_source(source):
    """Return the ``source.toml`` of a source: label, scope, notation, assumptions."""
    return validation.read_package_toml(_home(source), "source.toml")


def _home(source):
    """Return the path of a module beside the ``source.toml`` of a source or of the package with its equations."""
    room = os.path.join(os.path.dirname(__file__), "papers", source, "__init__.py")
    if os.path.exists(room):
        return room
    modules = (entry.function.__module__ for (key, _), entry in EQUATIONS.items() if key == source)
    return sys.modules[next(modules)].__file__
