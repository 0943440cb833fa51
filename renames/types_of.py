"""Types of bases of attributes and of callees, as mypy infers them: (line, column, end line, end column) -> class."""

from mypy import build, errors
from mypy.modulefinder import BuildSource
from mypy.nodes import MemberExpr, MypyFile, Node, RefExpr, TypeInfo
from mypy.options import Options
from mypy.types import AnyType, CallableType, Instance, NoneType, TupleType, TypeType, TypeVarType, UnionType, get_proper_type


def classes(t):
    """Full names of the classes that a type may be, with their bases; None where nothing is known."""
    t = get_proper_type(t)
    if t is None or isinstance(t, AnyType):
        return None
    if isinstance(t, UnionType):
        found = set()
        for one in t.items:
            inner = classes(one)
            if inner is None:
                return None
            found |= inner
        return found
    if isinstance(t, Instance):
        return {c.fullname for c in t.type.mro}
    if isinstance(t, TypeVarType):
        return classes(t.upper_bound)
    if isinstance(t, TupleType):
        return classes(t.partial_fallback)
    if isinstance(t, TypeType):
        return classes(t.item)
    if isinstance(t, CallableType):
        if t.is_type_obj():
            return classes(t.ret_type)
        return {"function"}
    if isinstance(t, NoneType):
        return set()
    return {"other"}


SKIP = {"node", "info", "type", "var", "unanalyzed_type", "analyzed", "names", "plugin_deps", "future_import_flags",
        "original_def", "type_guard", "method_type", "method_types", "expanded", "imports", "original_first_arg",
        "unreachable_lines", "skipped_lines", "ignored_lines", "deco_line", "mro", "defn_", "alias_deps"}
_FIELDS = {}


def fields(node):
    kind = type(node)
    if kind not in _FIELDS:
        names = [n for n in dir(node) if not n.startswith("__") and n not in SKIP]
        good = []
        for n in names:
            try:
                value = getattr(node, n)
            except Exception:
                good.append(n)
                continue
            if not callable(value) or isinstance(value, Node):
                good.append(n)
        _FIELDS[kind] = good
    return _FIELDS[kind]


def walk(root):
    seen, todo = set(), [root]
    while todo:
        x = todo.pop()
        if isinstance(x, (list, tuple)):
            todo += [y for y in x if isinstance(y, (Node, list, tuple))]
            continue
        if id(x) in seen:
            continue
        seen.add(id(x))
        yield x
        for name in fields(x):
            try:
                value = getattr(x, name)
            except Exception:
                continue
            if isinstance(value, (Node, list, tuple)) and not isinstance(value, TypeInfo):
                todo.append(value)


def back(shift, line, column):
    """The column before texts were inserted."""
    for col, length in sorted(shift.get(line, ())):
        if column >= col + length:
            column -= length
    return column


def infer(tree, annotations=None):
    """For each source of a tree: place of an attribute -> classes of its base."""
    options = Options()
    options.export_types = options.preserve_asts = True
    options.check_untyped_defs = True
    options.ignore_missing_imports = True
    options.follow_imports = "normal"
    options.incremental = False
    options.python_version = (3, 11)
    options.allow_redefinition = True
    options.cache_dir = "/dev/null"
    options.mypy_path = [str(tree.root)]
    options.namespace_packages = options.explicit_package_bases = True
    annotations = annotations or {}
    sources, shifts = [], {}
    for s in tree.sources:
        text = s.text
        shifts[s.name] = {}
        if s.name in annotations:
            inserts, tail = annotations[s.name]
            lines = list(s.lines)
            for line, col, new in sorted(inserts, reverse=True):
                lines[line - 1] = lines[line - 1][:col] + new.encode() + lines[line - 1][col:]
                shifts[s.name].setdefault(line, []).append((col, len(new.encode())))
            text = b"\n".join(lines).decode() + tail
        sources.append(BuildSource(str(s.path) if not s.notebook else str(s.path) + ".py", s.name, text))
    result = build.build(sources, options, alt_lib_path=None)
    found = {}
    for s in tree.sources:
        types = result.types
        places = {}
        for e in walk(result.graph[s.name].tree):
            if isinstance(e, MemberExpr) and e.end_line is not None:
                base = types.get(e.expr)
                if base is None and isinstance(e.expr, RefExpr) and isinstance(e.expr.node, MypyFile):
                    kind = {"module"}
                else:
                    kind = classes(base) if base is not None else None
                shift = shifts[s.name]
                places[e.line, back(shift, e.line, e.column), e.end_line, back(shift, e.end_line, e.end_column)] = kind
        found[s.name] = places
    return found
