"""Equations over a whole grid as machine code: recorded by calling them, compiled by LLVM.

A function of plain numbers is called once on recorders, which NumPy takes for arrays, so the equations it
calls stay the only definition. What they do is written down operation by operation and becomes loops over the
grid, in which every operation stands as far outside as what it depends on allows.

Numbers such as a model's width are parameters of the machine code, not part of it: functions that do the same
with other numbers share it.
"""

import ctypes
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from inferlib import checks

AXES = ("row", "layer", "column", "number")
_ROW, _LAYER, _COLUMN = 1, 2, 4  # what a value depends on, as bits
_OF_INPUT = {"row": _ROW, "layer": _LAYER, "column": _COLUMN, "number": 0, "constant": 0}
_KEPT = (_COLUMN, _COLUMN | _LAYER, _COLUMN | _ROW)  # from one loop over columns to the next
_LANES = 4  # columns that are computed at a time
_NUMBERS, _TRUTHS = f"<{_LANES} x double>", f"<{_LANES} x i1>"

# NumPy's names of operations, and LLVM's.
_ARITHMETIC = {
    "add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv", "negative": "fneg"
}  # fmt: skip
_COMPARISONS = {"less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge"}
_FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "log2": "log2", "absolute": "fabs", "ceil": "ceil",
    "floor": "floor", "rint": "rint", "round": "rint", "power": "pow",
}  # fmt: skip
_TRUTH = {*_COMPARISONS, "bitwise_and"}  # what gives a truth, and not a number
_TAKES = (
    dict.fromkeys([*_ARITHMETIC, *_COMPARISONS, "minimum", "maximum"], ("number", "number"))
    | dict.fromkeys([*_FUNCTIONS, "negative"], ("number",))
    | {
        "power": ("number", "number"),
        "bitwise_and": ("truth", "truth"),
        "where": ("truth", "number", "number"),
    }
)


class Recorder(NDArrayOperatorsMixin):
    """A number that is not known yet: notes what is done with it."""

    def __init__(self, tape, place):
        self._tape, self._place = tape, place

    def __array_ufunc__(self, ufunc, method, *values, **options):
        if method != "__call__" or options:
            return NotImplemented
        return self._tape.note(ufunc.__name__, values)

    def __array_function__(self, function, types, values, options):
        return NotImplemented if options else self._tape.note(function.__name__, values)

    def __bool__(self):
        raise TypeError("a choice that depends on a recorded number is written with inferlib.ops.where")


class _Tape:
    """Operations in the order in which they were done, each as its name and the places of its values."""

    def __init__(self):
        self.operations, self.constants = [], []

    def note(self, name, values):
        if name not in _TAKES:
            checks.one_of("operation to compile", name, sorted(_TAKES))
        places = [self.place(value) for value in values]
        kinds = tuple("truth" if self.operations[place][0] in _TRUTH else "number" for place in places)
        if kinds != _TAKES[name]:
            raise TypeError(f"{name} is compiled of {_listed(_TAKES[name])}, not of {_listed(kinds)}")
        return self.add(name, *places)

    def add(self, *operation):
        self.operations.append(operation)
        return Recorder(self, len(self.operations) - 1)

    def place(self, value):
        if isinstance(value, Recorder):
            if value._tape is not self:
                raise TypeError("a recorded number of one function was used in another")
            return value._place
        constant = np.asarray(value)
        if constant.ndim or constant.dtype.kind not in "iuf":
            raise TypeError(f"the function uses {value!r}, but only single numbers can be compiled")
        self.constants.append(float(value))
        return self.add("constant", len(self.constants) - 1)._place


def _listed(kinds):
    return " and ".join(kinds)


def over_grid(function, /, **axes):
    """A function of numbers, compiled to run over all rows and columns of a grid, and over layers of it.

    Parameters
    ----------
    function : callable
        Takes the arguments named in ``axes`` and returns one number. It may call whatever works on NumPy
        arrays element by element; a branch that depends on an argument is written with ``ops.where``.
    **axes : {"row", "column", "layer", "number"}
        Whether an argument has a value for each row, for each column, for each layer of the grid, or one for
        all of it. Columns should be many: they are what the machine computes several of at a time.

    Returns
    -------
    callable
        Takes the same arguments by name, as one-dimensional arrays or numbers, and returns an array of
        layers (where an argument has them), rows and columns. Other threads of Python run beside it. It
        does not warn as NumPy does, and where one of two values is not a number, their minimum or maximum
        is the second.

    Raises
    ------
    LookupError
        If an axis is not known, or the function does something that is not known here.
    TypeError
        If the function branches on an argument or mixes truths with numbers; when called, if the arguments
        are not those of the function.
    ValueError
        When called, if an argument has more dimensions than its axis, or another length than its like.

    Examples
    --------
    >>> area = over_grid(lambda width, height: width * height, width="row", height="column")
    >>> area(width=[1, 2], height=[3, 4, 5]).tolist()
    [[3.0, 4.0, 5.0], [6.0, 8.0, 10.0]]
    """
    tape, inputs = _Tape(), {}
    for name, axis in axes.items():
        checks.one_of("axis", axis, AXES)
        inputs[name] = tape.add(axis, sum(axes[other] == axis for other in inputs))
    result = tape.place(function(**inputs))
    machine = _machine(tuple(tape.operations), result, len(tape.constants))

    def compute(**values):
        if values.keys() != axes.keys():
            raise TypeError(f"arguments are {', '.join(values)}, but must be {', '.join(axes)}")
        given = {axis: [] for axis in AXES}
        for name, axis in axes.items():
            given[axis].append(_line(name, axis, values[name], given[axis]))
        numbers = np.concatenate([tape.constants, *given.pop("number")])
        # An axis that nothing depends on is one long.
        lines = {axis: np.stack(found) if found else np.zeros((1, 1)) for axis, found in given.items()}
        cells = machine(lines["row"], lines["layer"], lines["column"], numbers)
        return cells if given["layer"] else cells[0]

    return compute


def _line(name, axis, value, others):
    """An argument as a line of an array, as long as the others of its axis."""
    value = np.asarray(value, dtype=float)
    if value.ndim > (axis != "number"):
        raise ValueError(f"{name} has shape {value.shape}, but must be one number{_EACH[axis]}")
    line = np.atleast_1d(value)
    if axis != "number" and others and line.size != others[0].size:
        raise ValueError(f"{name} has {line.size} values, but must have {others[0].size}{_EACH[axis]}")
    return line


_EACH = {"row": " for each row", "layer": " for each layer", "column": " for each column", "number": ""}


def _machine(operations, result, n_constants):
    """The compiled loops: the same for operations that differ from others in their constants only."""
    with _COMPILING:
        return _compiled(operations, result, n_constants)


_COMPILING = Lock()  # LLVM compiles one at a time; who wants the same then finds it compiled


@lru_cache(maxsize=64)
def _compiled(operations, result, n_constants):
    import llvmlite.binding as llvm

    printer = _Printer(operations, result, n_constants)
    n_kept = [len(places) for places in printer.kept.values()]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # No passes that rewrite the loops: what they find takes longer to find than it saves.
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )
    module = llvm.parse_assembly(printer.printed())
    module.verify()
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    address = engine.get_function_address("over_grid")
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 8)(address)

    def compute(rows, layers, columns, numbers):
        n_columns = columns.shape[1]
        columns = np.pad(columns, ((0, 0), (0, -n_columns % _LANES)), mode="edge")
        size = [lines.shape[1] for lines in (rows, layers, columns)]
        cells = np.empty((size[1], size[0], size[2]))
        if cells.size:
            kept = [
                np.empty((n_lines, n, size[2])) for n, n_lines in zip(n_kept, (1, size[1], 1), strict=True)
            ]
            run(*size, *(array.ctypes.data for array in (numbers, rows, layers, columns, *kept, cells)))
        return cells[:, :, :n_columns]

    compute.engine = engine  # the code lives as long as its engine
    return compute


class _Printer:
    """Prints operations as one function in LLVM's language.

    Columns are the innermost loop, and there are four of them: over what depends on the column alone, on
    layer and column, on row and column, and on all three. What a later one needs is kept in memory.
    """

    def __init__(self, operations, result, n_constants):
        self.operations, self.result, self.n_constants = operations, result, n_constants
        self.depends = self._dependences()
        self.truths = {place for place, (name, *_) in enumerate(operations) if name in _TRUTH}
        self.needed = self._needed()
        self.kept = {depends: self._passed_on(depends) for depends in _KEPT}
        self.lines, self.declared, self.block = [], set(), "entry"
        self.values = {}  # place to the name of its value

    def _dependences(self):
        depends = []
        for name, *places in self.operations:
            found = _OF_INPUT.get(name, 0)
            if name in _TAKES:
                for place in places:
                    found |= depends[place]
            depends.append(found)
        return depends

    def _needed(self):
        """Places whose value the result needs, in the order of the operations."""
        needed = {self.result}
        for place in range(self.result, -1, -1):
            name, *places = self.operations[place]
            if place in needed and name in _TAKES:
                needed.update(places)
        return sorted(needed)

    def _passed_on(self, depends):
        """Places of operations that depend on just this, and whose value something else needs."""
        used = {self.result}
        for place in self.needed:
            name, *places = self.operations[place]
            if name in _TAKES and self.depends[place] != depends:
                used.update(places)
        own = [place for place in self.needed if self.depends[place] == depends and place in used]
        return [place for place in own if self.operations[place][0] in _TAKES]

    def printed(self):
        """The text of a module with the function ``over_grid``."""
        memory = {depends: f"%kept{depends}" for depends in _KEPT}
        arrays = ["%numbers", "%rows", "%layers", "%columns", *memory.values(), "%cells"]

        def sweep(depends, layer=0, row=0):
            """The loop over columns, for all that depends on the same."""
            with self._loop("%n_columns", _LANES) as column:
                at = ("%n_columns", column)
                self._load("column", "%columns", at)
                for one, places in self.kept.items():
                    if one & depends != one:
                        continue
                    line, each = layer if one & _LAYER else 0, len(places)
                    addresses = [self._at(memory[one], line, (each, i), at) for i in range(each)]
                    if one == depends:
                        self._operate(depends)
                        self._keep(places, addresses)
                    else:
                        self._restore(places, addresses)
                if depends not in memory:
                    self._operate(depends)
                    self._keep([self.result], [self._at("%cells", layer, ("%n_rows", row), at)])

        self._operate(0)
        sweep(_COLUMN)
        with self._loop("%n_layers") as layer:
            self._load("layer", "%layers", ("%n_layers", layer))
            self._operate(_LAYER)
            sweep(_COLUMN | _LAYER, layer)
        with self._loop("%n_rows") as row:
            self._load("row", "%rows", ("%n_rows", row))
            self._operate(_ROW)
            sweep(_COLUMN | _ROW)
            with self._loop("%n_layers") as layer:
                self._load("layer", "%layers", ("%n_layers", layer))
                self._operate(_LAYER)
                self._operate(_LAYER | _ROW)
                sweep(_COLUMN | _LAYER | _ROW, layer, row)
        arguments = [f"i64 %{size}" for size in ("n_rows", "n_layers", "n_columns")]
        arguments += [f"ptr noalias {array}" for array in arrays]
        head = [*sorted(self.declared), f"define void @over_grid({', '.join(arguments)}) {{", "entry:"]
        return "\n".join([*head, *self.lines, "ret void", "}"])

    def _new(self, text):
        """Print an instruction, and name its value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _at(self, pointer, first, *others):
        """The address of an element of an array: the first index, then the length and index of each axis."""
        offset = first
        for length, i in others:
            offset = self._new(f"mul i64 {offset}, {length}")
            offset = self._new(f"add i64 {offset}, {i}")
        return self._new(f"getelementptr double, ptr {pointer}, i64 {offset}")

    def _load(self, axis, pointer, at):
        """The inputs of one axis."""
        for place in self.needed:
            name, *number = self.operations[place]
            if name == axis:
                self.values[place] = self._read(self._at(pointer, number[0], at), axis == "column")

    def _read(self, address, columns):
        return self._new(f"load {_NUMBERS if columns else 'double'}, ptr {address}, align 8")

    def _keep(self, places, addresses):
        for place, address in zip(places, addresses, strict=True):
            values = self._value(place, columns=True)
            if place in self.truths:
                values = self._new(f"uitofp {_TRUTHS} {values} to {_NUMBERS}")
            self.lines.append(f"store {_NUMBERS} {values}, ptr {address}, align 8")

    def _restore(self, places, addresses):
        for place, address in zip(places, addresses, strict=True):
            values = self._read(address, columns=True)
            if place in self.truths:
                values = self._new(f"fcmp one {_NUMBERS} {values}, zeroinitializer")
            self.values[place] = values

    def _value(self, place, columns):
        """A value, for one column or for several; what is the same for all is spread."""
        name, *number = self.operations[place]
        if name in ("constant", "number"):
            i = number[0] + (self.n_constants if name == "number" else 0)
            value = self._read(self._at("%numbers", i), columns=False)
        else:
            value = self.values[place]
        if not columns or self.depends[place] & _COLUMN:
            return value
        one, several = ("i1", _TRUTHS) if place in self.truths else ("double", _NUMBERS)
        first = self._new(f"insertelement {several} poison, {one} {value}, i64 0")
        return self._new(
            f"shufflevector {several} {first}, {several} poison, <{_LANES} x i32> zeroinitializer"
        )

    def _operate(self, depends):
        """All operations that depend on the same."""
        columns = bool(depends & _COLUMN)
        for place in self.needed:
            name, *places = self.operations[place]
            if name in _TAKES and self.depends[place] == depends:
                values = [self._value(one, columns) for one in places]
                self.values[place] = self._operation(name, columns, *values)

    def _operation(self, name, columns, *values):
        number, truth = (_NUMBERS, _TRUTHS) if columns else ("double", "i1")
        if name in _ARITHMETIC:
            return self._new(f"{_ARITHMETIC[name]} {number} {', '.join(values)}")
        if name in _COMPARISONS:
            return self._new(f"fcmp {_COMPARISONS[name]} {number} {', '.join(values)}")
        if name in _FUNCTIONS:
            function = f"@llvm.{_FUNCTIONS[name]}.{f'v{_LANES}f64' if columns else 'f64'}"
            self.declared.add(f"declare {number} {function}({', '.join([number] * len(values))})")
            return self._new(f"call {number} {function}({', '.join(f'{number} {one}' for one in values)})")
        if name == "bitwise_and":
            return self._new(f"and {truth} {', '.join(values)}")
        if name == "where":
            chosen, *values = values
        else:
            relation = "olt" if name == "minimum" else "ogt"
            chosen = self._new(f"fcmp {relation} {number} {', '.join(values)}")
        return self._new(f"select {truth} {chosen}, {', '.join(f'{number} {one}' for one in values)}")

    @contextmanager
    def _loop(self, count, step=1):
        """A loop that runs at least once; what is printed within is its body."""
        name = f"loop{len(self.lines)}"
        i, following, again = f"%i_{name}", f"%next_{name}", f"%again_{name}"
        self.lines += [
            f"br label %{name}",
            f"{name}:",
            f"{i} = phi i64 [0, %{self.block}], [{following}, %end_{name}]",
        ]
        self.block = name
        yield i
        self.block = f"after_{name}"
        self.lines += [
            f"br label %end_{name}",
            f"end_{name}:",
            f"{following} = add i64 {i}, {step}",
            f"{again} = icmp slt i64 {following}, {count}",
            f"br i1 {again}, label %{name}, label %{self.block}",
            f"{self.block}:",
        ]
