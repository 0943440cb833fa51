"""Renames over syntax trees: modules, symbols of modules, members of classes (by type), keyword arguments, strings."""

import ast
import builtins
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

CELL = "\n#%%CELL%%\n"


class Source:
    """One file of Python, or the code cells of a notebook."""

    def __init__(self, root, path):
        self.root, self.path = root, path
        self.rel = path.relative_to(root).as_posix()
        raw = path.read_text("utf-8")
        self.notebook = json.loads(raw) if path.suffix == ".ipynb" else None
        if self.notebook:
            self.cells = [c for c in self.notebook["cells"] if c["cell_type"] == "code"]
            text = CELL.join(re.sub(r"(?m)^%", "#", "".join(c["source"])) for c in self.cells)
        else:
            text = raw
        self.text = text
        stem = self.rel.removesuffix(".py").removesuffix(".ipynb")
        self.package = stem.endswith("/__init__")
        name = stem.removesuffix("/__init__").replace("/", ".")
        self.name = "nb_" + path.stem if self.notebook else name.removeprefix(".ci.").removeprefix("tests.")
        self.tree = ast.parse(text)
        self.lines = text.encode().split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.edits = {}
        self.bytes = text.encode()
        # before Python 3.12 places inside of f-strings may be wrong
        self.inside = {}
        for n in ast.walk(self.tree):
            if isinstance(n, ast.JoinedStr):
                for m in ast.walk(n):
                    self.inside.setdefault(m, n) if m is not n else None

    def at(self, line, col):
        return self.starts[line - 1] + col

    def span(self, node):
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def edit(self, start, end, new):
        self.edits[start, end] = new

    def edit_name(self, node, new):
        start, end = self.span(node)
        if self.bytes[start:end].decode(errors="replace") == getattr(node, "id", None):
            self.edit(start, end, new)
        elif hasattr(node, "id"):
            self.edit_f_string(node, rf"(?<![\w.]){node.id}\b", new)

    def edit_attr(self, node, new):
        end = self.at(node.end_lineno, node.end_col_offset)
        start = end - len(node.attr.encode())
        if self.bytes[start - 1 : end].decode(errors="replace").lstrip() in (f".{node.attr}", node.attr) or (
            self.bytes[start:end].decode(errors="replace") == node.attr
        ):
            self.edit(start, end, new)
        else:
            self.edit_f_string(node, rf"(?<=\.){node.attr}\b", new)

    def edit_f_string(self, node, pattern, new):
        """Inside of braces of the string that holds a node."""
        holder = self.inside.get(node)
        if holder is None:
            return
        start, end = self.span(holder)
        text = self.bytes[start:end]
        for braces in re.finditer(rb"\{[^{}]*\}", text):
            for found in re.finditer(pattern.encode(), braces[0]):
                at = start + braces.start() + found.start()
                self.edit(at, at + len(found[0]), new)

    def edit_word(self, start, end, old, new):
        """The first word ``old`` in a region."""
        found = re.search(rb"\b" + old.encode() + rb"\b", self.bytes[start:end])
        if found:
            self.edit(start + found.start(), start + found.end(), new)

    def result(self):
        out, last = [], None
        done = bytearray()
        place = 0
        for (start, end), new in sorted(self.edits.items()):
            if start < place:
                continue  # inside a statement that was written anew
            done += self.bytes[place:start] + new.encode()
            place = end
        done += self.bytes[place:]
        return done.decode()

    def write(self):
        text = self.result()
        if text == self.text:
            return False
        if self.notebook:
            for cell, new in zip(self.cells, text.split(CELL), strict=True):
                old = "".join(cell["source"])
                marks = [i for i, line in enumerate(old.splitlines()) if line.startswith("%")]
                lines = new.splitlines(keepends=True)
                for i in marks:
                    lines[i] = "%" + lines[i][1:]
                cell["source"] = lines
            self.path.write_text(json.dumps(self.notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        else:
            self.path.write_text(text, "utf-8")
        return True


class Scope:
    def __init__(self, node, parent, kind):
        self.node, self.parent, self.kind = node, parent, kind
        self.bound, self.globals, self.imports = set(), set(), {}


def bind_targets(scope, node):
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
            scope.bound.add(n.id)


class Binder(ast.NodeVisitor):
    """Scopes of a module: for each Name node, the scope that binds it."""

    def __init__(self, source):
        self.scopes = {}
        self.where = []  # (Name node, scope at use)
        self.top = Scope(source.tree, None, "module")
        self.scope = self.top
        self.generic(source.tree.body)

    def generic(self, nodes):
        for n in nodes:
            self.visit(n)

    def function(self, node, args, body):
        outer = self.scope
        for d in [*args.defaults, *(d for d in args.kw_defaults if d)]:
            self.visit(d)
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        for a in every:
            if a is not None and a.annotation is not None:
                self.visit(a.annotation)
        self.scope = Scope(node, outer, "function")
        self.scopes[node] = self.scope
        self.scope.bound |= {a.arg for a in every if a is not None}
        self.scope.params = {a.arg: a for a in every if a is not None}
        self.generic(body)
        self.scope = outer

    def visit_FunctionDef(self, node):
        self.scope.bound.add(node.name)
        self.generic(node.decorator_list)
        if node.returns:
            self.visit(node.returns)
        self.function(node, node.args, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self.function(node, node.args, [node.body])

    def visit_ClassDef(self, node):
        self.scope.bound.add(node.name)
        self.generic(node.decorator_list)
        self.generic(node.bases)
        for k in node.keywords:
            self.visit(k.value)
        outer = self.scope
        self.scope = Scope(node, outer, "class")
        self.scopes[node] = self.scope
        self.generic(node.body)
        self.scope = outer

    def comp(self, node, parts):
        self.visit(node.generators[0].iter)
        outer = self.scope
        self.scope = Scope(node, outer, "function")
        self.scopes[node] = self.scope
        for k, g in enumerate(node.generators):
            self.visit(g.target)
            if k:
                self.visit(g.iter)
            self.generic(g.ifs)
        self.generic(parts)
        self.scope = outer

    def visit_ListComp(self, node):
        self.comp(node, [node.elt])

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node):
        self.comp(node, [node.key, node.value])

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        scope = self.scope
        while isinstance(scope.node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            scope = scope.parent
        scope.bound.add(node.target.id)
        self.where.append((node.target, scope))

    def visit_Name(self, node):
        if isinstance(node.ctx, (ast.Store, ast.Del)) and node.id not in self.scope.globals:
            self.scope.bound.add(node.id)
        self.where.append((node, self.scope))

    def visit_Global(self, node):
        self.scope.globals |= set(node.names)

    def visit_Nonlocal(self, node):
        self.scope.globals |= set(node.names)

    def visit_ExceptHandler(self, node):
        if node.name:
            self.scope.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node):
        if node.name:
            self.scope.bound.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        for a in node.names:
            local = a.asname or a.name.split(".")[0]
            self.scope.bound.add(local)
            self.scope.imports[local] = ("mod", a.name if a.asname else a.name.split(".")[0])

    def visit_ImportFrom(self, node):
        for a in node.names:
            self.scope.bound.add(a.asname or a.name)
            self.scope.imports[a.asname or a.name] = ("from", node, a.name)


def scope_of(scope, name):
    """The scope that binds a name used in a scope."""
    first = True
    while scope is not None:
        if (scope.kind != "class" or first) and name in scope.bound:
            return scope
        first = False
        scope = scope.parent
    return None


class Tree:
    def __init__(self, root):
        self.root = Path(root).resolve()
        import subprocess

        listed = subprocess.run(
            ["git", "ls-files", "*.py", "*.ipynb"], cwd=self.root, capture_output=True, text=True, check=True
        ).stdout.split()
        self.sources = [Source(self.root, self.root / rel) for rel in listed if (self.root / rel).exists()]
        self.modules = {s.name: s for s in self.sources}
        self.binders = {s.name: Binder(s) for s in self.sources}
        for s in self.sources:
            s.binder = self.binders[s.name]

    # -- resolution
    def absolute(self, source, node):
        if not node.level:
            return node.module or ""
        parts = source.name.split(".")
        parts = parts if source.package else parts[:-1]
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def resolve(self, module, name, seen=()):
        """What a name of a module is: ("sym", module, name) where it is defined, ("mod", dotted), or None."""
        if (module, name) in seen:
            return None
        seen = (*seen, (module, name))
        source = self.modules.get(module)
        if source is None:
            return ("mod", f"{module}.{name}") if f"{module}.{name}" in self.modules else None
        top = source.binder.top
        if name in top.imports:
            return self.imported(source, top.imports[name], seen)
        if name in top.bound:
            return ("sym", module, name)
        if f"{module}.{name}" in self.modules or self.is_folder(f"{module}.{name}"):
            return ("mod", f"{module}.{name}")
        for n in source.tree.body:
            if isinstance(n, ast.ImportFrom) and n.names[0].name == "*":
                found = self.resolve(self.absolute(source, n), name, seen)
                if found:
                    return found
        return self.later(source, name, seen)

    def later(self, source, name, seen):
        """Names that a package loads when they are asked for, or under TYPE_CHECKING."""
        for n in source.tree.body:
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict) and any(
                isinstance(t, ast.Name) and t.id in ("_WHERE", "_LATER") for t in n.targets
            ):
                for key, value in zip(n.value.keys, n.value.values):
                    if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Constant):
                        module = value.value if "." in value.value else f"{source.name}.{value.value}"
                        return self.resolve(module, name, seen)
        for n in source.tree.body:
            if isinstance(n, ast.If):
                for m in n.body:
                    if isinstance(m, ast.ImportFrom):
                        for a in m.names:
                            if (a.asname or a.name) == name:
                                return self.resolve(self.absolute(source, m), a.name, seen)
        return None

    def is_folder(self, dotted):
        return any(m.startswith(dotted + ".") for m in self.modules)

    def imported(self, source, what, seen=()):
        if what[0] == "mod":
            return ("mod", what[1])
        _, node, name = what
        module = self.absolute(source, node)
        if module in self.modules:
            return self.resolve(module, name, seen)
        dotted = f"{module}.{name}"
        return ("mod", dotted) if dotted in self.modules or self.is_folder(dotted) else None

    def of_expr(self, source, node, scope_map):
        """What an expression of names and attributes is, if it is a module or a symbol of one."""
        if isinstance(node, ast.Name):
            scope = scope_map.get(node)
            bound = scope and scope_of(scope, node.id)
            if bound is None:
                # a star import
                found = self.resolve(source.name, node.id)
                return found if found and found[0] in ("sym", "mod") else None
            if node.id in bound.imports:
                return self.imported(source, bound.imports[node.id])
            return ("sym", source.name, node.id) if bound is source.binder.top else None
        if isinstance(node, ast.Attribute):
            base = self.of_expr(source, node.value, scope_map)
            if base and base[0] == "mod":
                return self.resolve(base[1], node.attr)
        return None
