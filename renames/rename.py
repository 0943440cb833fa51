#!/usr/bin/env python
"""Rename a whole checkout: python rename.py TREE [--report]. See README.md."""

import ast
import fnmatch
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from engine import Tree, scope_of  # noqa: E402
import text_rules  # noqa: E402
import types_of  # noqa: E402

TABLE = tomllib.loads((HERE / "renames.toml").read_text("utf-8"))
COUNT, NOTES = Counter(), []


def note(kind, source, node, text):
    NOTES.append(f"{kind}: {source.rel}:{getattr(node, 'lineno', 0)}: {text}")


class Renamer:
    def __init__(self, root):
        self.tree = Tree(root)
        self.root = self.tree.root
        self.load()
        for s in self.tree.sources:
            s.scope_map = dict(s.binder.where)
        self.types = cached_types(self.tree, self.annotations())

    # -- the table, as far as this tree still has the old names
    def load(self):
        mods = self.tree.modules
        self.modules = {old: new for old, new in TABLE["modules"].items() if old in mods}
        self.symbols = {}
        for module, names in TABLE["symbols"].items():
            if module not in mods:
                continue
            top = mods[module].binder.top
            for old, new in names.items():
                if old in top.bound and old not in top.imports:
                    target = self.modules.get(module, module)
                    if "." in new:
                        target, new = new.rsplit(".", 1)
                    self.symbols[module, old] = (target, new)
        self.members, self.owners = {}, defaultdict(set)
        for cls, names in TABLE["members"].items():
            module, name = cls.rsplit(".", 1)
            if module not in mods:
                continue
            node = next((n for n in mods[module].tree.body if isinstance(n, ast.ClassDef) and n.name == name), None)
            if node is None:
                continue
            own = self.own_members(node)
            for old, new in names.items():
                if old in own:
                    self.members[cls, old] = new
                    self.owners[old].add(cls)
        # who else defines such a member
        self.others = defaultdict(set)
        for s in self.tree.sources:
            for n in ast.walk(s.tree):
                if isinstance(n, ast.ClassDef):
                    for m in self.own_members(n):
                        if (f"{s.name}.{n.name}", m) not in self.members:
                            self.others[m].add(f"{s.name}.{n.name}")
        self.params = {}
        for function, names in TABLE.get("params", {}).items():
            self.params[function] = names
        self.fields = {}
        for cls in TABLE["records"]["classes"]:
            for (c, old), new in self.members.items():
                if c == cls:
                    self.fields[old] = new
        self.dataclass_fields = {}

    @staticmethod
    def own_members(node):
        found = set()
        for m in node.body:
            if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(m.name)
            elif isinstance(m, ast.AnnAssign) and isinstance(m.target, ast.Name):
                found.add(m.target.id)
            elif isinstance(m, ast.Assign):
                found |= {t.id for t in m.targets if isinstance(t, ast.Name)}
        return found

    def annotations(self):
        """Types of parameters without annotation, by their names: what to insert for the type checker."""
        found = {}
        for s in self.tree.sources:
            rules = {}
            for pattern, named in TABLE["hints"].items():
                if fnmatch.fnmatch(s.rel, pattern):
                    rules |= named
            inserts, used = [], set()
            for n in ast.walk(s.tree):
                if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    a = n.args
                    for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs]:
                        if arg.annotation is None and arg.arg in rules:
                            inserts.append((arg.end_lineno, arg.end_col_offset, f': "_T_{rules[arg.arg].replace(".", "_")}"'))
                            used.add(rules[arg.arg])
                    key = f"{s.name}.{n.name}"
                    if n.returns is None and key in TABLE["returns"]:
                        kind = TABLE["returns"][key]
                        # before the colon that ends the head
                        first = n.body[0]
                        start = s.at(n.lineno, n.col_offset)
                        end = s.at(first.lineno, first.col_offset)
                        head = s.bytes[start:end].decode()
                        m = re.search(r"\)(\s*):(?=\s)", head)
                        if m:
                            place = start + len(head[: m.start() + 1].encode())
                            line = s.bytes[:place].count(b"\n") + 1
                            inserts.append((line, place - s.starts[line - 1], f' -> "_T_{kind.replace(".", "_")}"'))
                            used.add(kind)
            if inserts:
                tail = "".join(
                    f"\nfrom {k.rsplit('.', 1)[0]} import {k.rsplit('.', 1)[1]} as _T_{k.replace('.', '_')}" for k in sorted(used)
                )
                found[s.name] = (inserts, tail)
        return found

    # -- all
    def run(self):
        for s in self.tree.sources:
            self.s = s
            self.file(s)

    def local(self, module, old, source):
        return self.symbols.get((module, old))

    def file(self, s):
        self.needs = defaultdict(set)  # modules of a split one that are used here
        self.imports(s)
        for n in ast.walk(s.tree):
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.definition(s, n)
            elif isinstance(n, ast.Attribute):
                self.attribute(s, n)
            elif isinstance(n, ast.Call):
                self.call(s, n)
        for node, scope in s.binder.where:
            self.name(s, node, scope)
        self.class_bodies(s)
        self.parameters(s)
        self.strings(s)
        self.split_imports(s)

    # -- imports
    def imports(self, s):
        s.split = set()
        for n in ast.walk(s.tree):
            if isinstance(n, ast.Import):
                new, changed = [], False
                for a in n.names:
                    name = self.modules.get(a.name, a.name)
                    changed |= name != a.name
                    new.append(name + (f" as {a.asname}" if a.asname else ""))
                if changed:
                    s.edit(*s.span(n), "import " + ", ".join(new))
                    COUNT["imports"] += 1
            elif isinstance(n, ast.ImportFrom):
                self.import_from(s, n)

    def import_from(self, s, n):
        module = self.tree.absolute(s, n)
        groups, changed = defaultdict(list), False

        def written(target):
            if not n.level:
                return target
            base = s.name.split(".") if s.package else s.name.split(".")[:-1]
            base = base[: len(base) - n.level + 1]
            rest = target.split(".")[len(base):]
            return "." * n.level + ".".join(rest)

        for a in n.names:
            full = f"{module}.{a.name}"
            if a.name == "*":
                groups[self.modules.get(module, module)].append(("*", None))
                changed |= module in self.modules
            elif full in TABLE["split"] and full in self.tree.modules:
                s.split.add((n, full, a.asname))
                groups[("split", full)].append((a.name, a.asname))
                changed = True
            elif full in self.tree.modules and self.tree.resolve(module, a.name) in (("mod", full), None):
                target = self.modules.get(full, full)
                head, tail = target.rsplit(".", 1)
                asname = a.asname or TABLE["alias"].get(s.rel, {}).get(full)
                groups[head].append((tail, asname))
                changed |= target != full
            else:
                found = self.tree.resolve(module, a.name)
                new = self.symbols.get(found[1:]) if found and found[0] == "sym" else None
                target = self.modules.get(module, module)
                if new:
                    # moved: from the module that defines it
                    if module in TABLE["split"]:
                        target = new[0]
                    asname = a.asname
                    if asname == new[1]:
                        asname = None
                    groups[target].append((new[1], asname))
                    changed |= new[1] != a.name or target != module
                else:
                    if module in TABLE["split"] and module in self.tree.modules:
                        target = TABLE["split"][module][0]
                        note("unlisted", s, n, f"{module}.{a.name}")
                    groups[target].append((a.name, a.asname))
                    changed |= target != module
        if not changed:
            return
        segment = s.bytes[slice(*s.span(n))].decode()
        if "#" in segment and len(groups) == 1 and not isinstance(next(iter(groups)), tuple):
            # in place, with its comments
            target, names = next(iter(groups.items()))
            start, end = s.span(n)
            old = "." * n.level + (n.module or "")
            at = s.bytes.index(old.encode(), start + 4)
            s.edit(at, at + len(old.encode()), written(target))
            for a, (name, asname) in zip(n.names, names, strict=True):
                s.edit(s.at(a.lineno, a.col_offset), s.at(a.end_lineno, a.end_col_offset), name + (f" as {asname}" if asname else ""))
            return
        n.regenerate = groups, written
        self.write_import(s, n, {})

    def write_import(self, s, n, splits):
        groups, written = n.regenerate
        lines = []
        indent = " " * n.col_offset
        for target, names in groups.items():
            if isinstance(target, tuple):
                used = splits.get(target[1], [])
                for full in sorted(used):
                    head, tail = full.rsplit(".", 1)
                    lines.append(f"from {written(head)} import {tail}")
                if not used:
                    continue
                continue
            inside = ", ".join(name + (f" as {asname}" if asname else "") for name, asname in names)
            lines.append(f"from {written(target)} import {inside}" if inside == "*" or len(inside) < 60 else f"from {written(target)} import ({inside})")
        # one statement for each package
        merged = defaultdict(list)
        order = []
        for line in lines:
            m = re.match(r"from (\S+) import \(?(.*?)\)?$", line)
            if m[1] not in merged:
                order.append(m[1])
            merged[m[1]].append(m[2])
        lines = [f"from {k} import " + (f"({', '.join(merged[k])})" if len(", ".join(merged[k])) > 60 else ", ".join(merged[k])) for k in order]
        s.edit(*s.span(n), f"\n{indent}".join(lines))
        COUNT["imports"] += 1

    def split_imports(self, s):
        for n, full, asname in s.split:
            used = self.needs[full] or set()
            self.write_import(s, n, {f: self.needs[f] for _, f, _ in s.split})

    # -- names
    def name(self, s, node, scope):
        bound = scope_of(scope, node.id)
        if bound is None:
            found = self.tree.resolve(s.name, node.id) if any(
                isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in s.tree.body
            ) else None
            if found and found[0] == "sym" and found[1:] in self.symbols:
                s.edit_name(node, self.symbols[found[1:]][1])
            return
        new = self.new_local(s, bound, node.id)
        if new and new != node.id:
            self.capture(s, node, scope, bound, new)
            s.edit_name(node, new)
            COUNT["names"] += 1

    def capture(self, s, node, scope, bound, new):
        at, first = scope, True
        while at is not None and at is not bound:
            hides = new in at.bound and (at.kind != "class")
            first = False
            if hides:
                note("CAPTURE", s, node, f"{node.id} -> {new}: a local {new} hides it")
                return
            at = at.parent
        if new in bound.bound:
            note("CAPTURE", s, node, f"{node.id} -> {new}: {new} stands in that scope already")

    def new_local(self, s, bound, name):
        """The new name of what a scope binds: a symbol of this module, or something imported without an alias."""
        if name in bound.imports:
            what = bound.imports[name]
            if what[0] == "mod":
                return None
            _, n, imported = what
            alias = next(a for a in n.names if (a.asname or a.name) == name)
            if alias.asname:
                return None
            module = self.tree.absolute(s, n)
            full = f"{module}.{imported}"
            found = self.tree.resolve(module, imported)
            if found and found[0] == "sym":
                new = self.symbols.get(found[1:])
                return new and new[1]
            if full in TABLE["split"]:
                return None
            if full in self.modules:
                alias = TABLE["alias"].get(s.rel, {}).get(full)
                return alias or self.modules[full].rsplit(".", 1)[1]
            return None
        if bound is s.binder.top:
            new = self.symbols.get((s.name, name))
            return new and new[1]
        return None

    def definition(self, s, n):
        scope = s.binder.top
        if n in s.tree.body or any(n in getattr(x, "body", []) for x in s.tree.body if isinstance(x, (ast.If, ast.Try, ast.With))):
            new = self.symbols.get((s.name, n.name))
            if new:
                start = s.at(n.lineno, n.col_offset)
                s.edit_word(start, s.at(n.lineno, n.col_offset) + 200, n.name, new[1])
                COUNT["definitions"] += 1

    # -- attributes
    def attribute(self, s, n):
        base = self.tree.of_expr(s, n.value, s.scope_map)
        if base and base[0] == "mod":
            full = f"{base[1]}.{n.attr}"
            found = self.tree.resolve(base[1], n.attr)
            if found and found[0] == "sym" and found[1:] in self.symbols:
                target, new = self.symbols[found[1:]]
                s.edit_attr(n, new)
                if base[1] in TABLE["split"]:
                    self.needs[base[1]].add(target)
                    tail = target.rsplit(".", 1)[1]
                    if isinstance(n.value, ast.Name):
                        s.edit_name(n.value, tail)
                    else:
                        s.edit_attr(n.value, tail)
                COUNT["module attributes"] += 1
            elif base[1] in TABLE["split"] and found and found[0] == "sym":  # not in the table: under its name
                target = TABLE["split"][base[1]][0]
                self.needs[base[1]].add(target)
                if isinstance(n.value, ast.Name):
                    s.edit_name(n.value, target.rsplit(".", 1)[1])
            elif found and found[0] == "mod" and found[1] in self.modules:
                s.edit_attr(n, self.modules[found[1]].rsplit(".", 1)[1])
                if base[1] in TABLE["split"] and isinstance(n.value, ast.Name):
                    target = TABLE["split"][base[1]][0]
                    self.needs[base[1]].add(target)
                    s.edit_name(n.value, target.rsplit(".", 1)[1])
            elif full in self.modules and (not found or found[0] == "mod"):
                s.edit_attr(n, self.modules[full].rsplit(".", 1)[1])
            return
        if n.attr not in self.owners:
            return
        cls = self.class_of(s, n)
        if cls:
            s.edit_attr(n, self.members[cls, n.attr])
            COUNT["attributes"] += 1

    def class_of(self, s, n):
        """The class of the table whose member an attribute is; None where it is not, or nobody knows."""
        place = (n.lineno, n.col_offset, n.end_lineno, n.end_col_offset)
        kinds = self.types[s.name].get(place)
        owners = self.owners[n.attr]
        if kinds:
            found = [c for c in owners if c in kinds]
            if found:
                return found[0]
            if kinds & self.others[n.attr] or any(not k.startswith("builtins.") and k not in ("other", "function") and "." in k and not k.startswith("typing") and not k.startswith("_") for k in kinds):
                return None
        text = ast.unparse(n.value)
        for rule in TABLE["untyped"]:
            if fnmatch.fnmatch(s.rel, rule["files"]) and n.attr in rule.get("names", [n.attr]) and re.fullmatch(rule["base"], text):
                if rule.get("replace"):
                    continue
                cls = rule["class"]
                if not cls:
                    return None
                if cls in owners:
                    return cls
        if not self.others[n.attr] and len({self.members[c, n.attr] for c in owners}) == 1 and n.attr in TABLE["unique"]["names"]:
            return next(iter(owners))
        note("untyped", s, n, f"{text}.{n.attr}   [{', '.join(c.rsplit('.', 1)[1] for c in owners)}]")
        return None

    # -- members where they are defined
    def class_bodies(self, s):
        for n in s.tree.body:
            if not isinstance(n, ast.ClassDef):
                continue
            cls = f"{s.name}.{n.name}"
            for m in n.body:
                if isinstance(m, ast.AnnAssign) and isinstance(m.target, ast.Name):
                    new = self.members.get((cls, m.target.id))
                    if new:
                        s.edit_name(m.target, new)
                        COUNT["members"] += 1
                elif isinstance(m, ast.FunctionDef):
                    new = self.members.get((cls, m.name))
                    if new:
                        start = s.at(m.lineno, m.col_offset)
                        s.edit_word(start, start + 200, m.name, new)
                        COUNT["members"] += 1

    # -- keyword arguments
    def call(self, s, n):
        named = [k for k in n.keywords if k.arg]
        if not named:
            return
        f = n.func
        found = self.tree.of_expr(s, f, s.scope_map)
        name = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""
        table, why = None, ""
        if found and found[0] == "sym":
            full = f"{found[1]}.{found[2]}"
            node = self.node_of(found)
            if isinstance(node, ast.ClassDef):
                table = {old: new for (c, old), new in self.members.items() if c == full}
            elif full in TABLE["records"]["verbs"]:
                table = {**self.fields, **self.params.get(full, {})}
            elif full in self.params:
                table = self.params[full]
            elif node is not None:
                table = self.passes_on(s, found, node)
        elif name == "replace" or name in TABLE["records"]["methods"]:
            table = self.replaced(s, n, named)
        elif isinstance(f, ast.Name) or isinstance(f, ast.Attribute):
            local = self.local_function(s, n)
            if local is not None:
                table = self.passes_on(s, None, local)
            elif isinstance(f, ast.Attribute):
                table = self.method_params(s, f)
            elif name == "dict" and fnmatch_any(s.rel, TABLE["records"]["dicts"]):
                table = self.fields
        if not table:
            return
        for k in named:
            if k.arg in table and table[k.arg] != k.arg:
                start, _ = s.span(k)
                if s.bytes[start : start + len(k.arg.encode())].decode(errors="replace") == k.arg:
                    s.edit(start, start + len(k.arg.encode()), table[k.arg])
                else:
                    s.edit_f_string(n, rf"(?<=[(,\s]){k.arg}(?==)", table[k.arg])
                COUNT["keywords"] += 1

    def method_params(self, s, f):
        place = (f.lineno, f.col_offset, f.end_lineno, f.end_col_offset)
        kinds = self.types[s.name].get(place) or ()
        for kind in kinds:
            if f"{kind}.{f.attr}" in self.params:
                return self.params[f"{kind}.{f.attr}"]
        return None

    def replaced(self, s, n, named):
        f = n.func
        if isinstance(f, ast.Attribute) and self.tree.of_expr(s, f, s.scope_map) is None:
            place = (f.lineno, f.col_offset, f.end_lineno, f.end_col_offset)
            kinds = self.types[s.name].get(place)
            text = ast.unparse(f.value)
        elif n.args:
            kinds, text = None, ast.unparse(n.args[0])
        else:
            return None
        found = {}
        for (cls, old), new in self.members.items():
            if kinds and cls in kinds:
                found[old] = new
        if found or (kinds and not kinds <= {"builtins.object", "other", "function"}):
            return found
        for rule in TABLE["untyped"]:
            if fnmatch.fnmatch(s.rel, rule["files"]) and "names" not in rule and re.fullmatch(rule["base"], text):
                return {old: new for (c, old), new in self.members.items() if c == rule["class"]}
        if any(k.arg in self.owners for k in named):
            note("untyped replace", s, n, f"{text}: {', '.join(k.arg for k in named if k.arg in self.owners)}")
        return None

    def node_of(self, found):
        source = self.tree.modules[found[1]]
        return next((x for x in ast.walk(source.tree) if isinstance(x, (ast.FunctionDef, ast.ClassDef)) and x.name == found[2]), None)

    def local_function(self, s, n):
        f = n.func
        if not isinstance(f, ast.Name):
            return None
        scope = s.scope_map.get(f)
        bound = scope and scope_of(scope, f.id)
        if bound is None or f.id in bound.imports:
            return None
        return next((x for x in ast.walk(s.tree) if isinstance(x, ast.FunctionDef) and x.name == f.id), None)

    def passes_on(self, s, found, node):
        """A helper with ``**options`` that it hands to a verb or a question: those that it does not name itself."""
        if not isinstance(node, ast.FunctionDef) or node.args.kwarg is None:
            return None
        own = {a.arg for a in [*node.args.args, *node.args.kwonlyargs]}
        where = self.tree.modules[found[1]] if found else s
        key = f"{where.name}.{node.name}"
        if key in TABLE["records"]["not_handed_on"] or where.rel.startswith(("inferlib", "book/papers")):
            return None
        text = ast.unparse(node)
        kw = node.args.kwarg.arg
        if kw not in text or not re.search(TABLE["records"]["handed"], text):
            return None
        return {old: new for old, new in self.fields.items() if old not in own}

    # -- parameters of functions
    def parameters(self, s):
        for n in ast.walk(s.tree):
            if not isinstance(n, ast.FunctionDef):
                continue
            key = f"{s.name}.{n.name}"
            for cls in s.tree.body:
                if isinstance(cls, ast.ClassDef) and n in cls.body:
                    key = f"{s.name}.{cls.name}.{n.name}"
            table = self.params.get(key)
            if not table:
                continue
            a = n.args
            every = {x.arg: x for x in [*a.posonlyargs, *a.args, *a.kwonlyargs]}
            scope = s.binder.scopes[n]
            for old, new in table.items():
                if old not in every:
                    continue
                start, _ = s.span(every[old])
                s.edit(start, start + len(old.encode()), new)
                COUNT["parameters"] += 1
                for node, at in s.binder.where:
                    if node.id == old and scope_of(at, old) is scope:
                        if new in scope.bound:
                            note("CAPTURE", s, node, f"parameter {old} -> {new}")
                        s.edit_name(node, new)
                for deco in n.decorator_list:
                    if isinstance(deco, ast.Call):
                        for k in deco.keywords:
                            if k.arg == old:
                                st, _ = s.span(k)
                                s.edit(st, st + len(old.encode()), new)

    # -- strings
    def strings(self, s):
        rules = [r for r in TABLE["strings"] if fnmatch.fnmatch(s.rel, r["files"])]
        exported = set()
        for n in s.tree.body:
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None:
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                if any(isinstance(t, ast.Name) and t.id in ("__all__", "_LATER", "_WHERE", "_MODULES") for t in targets):
                    exported |= {x for x in ast.walk(n.value) if isinstance(x, ast.Constant)}
        keys, subs, arguments = set(), set(), set()
        for n in ast.walk(s.tree):  # names of a test's own arguments
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "parametrize" and n.args:
                arguments |= set(ast.walk(n.args[0]))
        for n in ast.walk(s.tree):
            if isinstance(n, ast.Dict):
                keys |= {k for k in n.keys if isinstance(k, ast.Constant)}
            elif isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant):
                subs.add(n.slice)
        fields = {**self.fields}
        for n in s.tree.body:  # tables of fields by name, wherever they stand
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict) and any(
                isinstance(t, ast.Name) and t.id == "LEFT_OUT" for t in n.targets
            ):
                for k in n.value.keys:
                    if isinstance(k, ast.Constant) and k.value in self.fields:
                        s.edit(*s.span(k), f'"{self.fields[k.value]}"')
        for n in ast.walk(s.tree):  # (module, "name")
            row = n.elts if isinstance(n, (ast.Tuple, ast.List)) else n.args if isinstance(n, ast.Call) else []
            for one, two in zip(row, row[1:]):
                if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(two, ast.Constant) and isinstance(two.value, str):
                    base = self.tree.of_expr(s, one, s.scope_map)
                    found = base and base[0] == "mod" and self.tree.resolve(base[1], two.value)
                    if found and found[0] == "sym" and found[1:] in self.symbols:
                        s.edit(*s.span(two), f'"{self.symbols[found[1:]][1]}"')
        for n in ast.walk(s.tree):
            if not (isinstance(n, ast.Constant) and isinstance(n.value, str)):
                continue
            if n in arguments or n in s.inside:
                continue
            raw = s.bytes[slice(*s.span(n))].decode(errors="replace")
            if n in exported:
                new = self.exported(s, n.value)
                if new and new != n.value:
                    s.edit(*s.span(n), raw.replace(n.value, new))
                continue
            line = s.lines[n.lineno - 1].decode()
            for r in rules:
                table = {**(fields if r.get("fields") else {}), **r.get("also", {})}
                table = {o: w for o, w in table.items() if o not in r.get("except", [])}
                if n.value not in table:
                    continue
                if "kinds" in r:
                    kind = "key" if n in keys else "sub" if n in subs else "other"
                    if kind not in r["kinds"]:
                        continue
                if "unless" in r and re.search(r["unless"], line):
                    continue
                if "only" in r and not re.search(r["only"], line):
                    continue
                if r.get("if_member") and not self.alive(r["if_member"]):
                    continue
                if raw[1:-1] == n.value:
                    s.edit(*s.span(n), raw[0] + table[n.value] + raw[-1])
                    COUNT["strings"] += 1
                break

    def alive(self, what):
        cls, old = what.rsplit(".", 1)
        return (cls, old) in self.members

    def exported(self, s, value):
        for package in (s.name,):
            if f"{package}.{value}" in self.modules:
                return self.modules[f"{package}.{value}"].rsplit(".", 1)[1]
        if value in self.modules:
            return self.modules[value]
        found = self.tree.resolve(s.name, value)
        if found and found[0] == "sym" and found[1:] in self.symbols:
            return self.symbols[found[1:]][1]
        return None

    def write(self):
        return [s.rel for s in self.tree.sources if s.write()]


def cached_types(tree, annotations):
    import hashlib
    import pickle
    import tempfile

    told = repr([(s.rel, s.text) for s in tree.sources]) + repr(sorted(annotations.items()))
    path = Path(tempfile.gettempdir()) / f"rename-{hashlib.sha1(told.encode()).hexdigest()}.pickle"
    if not path.exists():
        path.write_bytes(pickle.dumps(types_of.infer(tree, annotations)))
    return pickle.loads(path.read_bytes())


def fnmatch_any(name, patterns):
    return any(fnmatch.fnmatch(name, p) for p in patterns)


def git(root, *args):
    return subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=True).stdout


def move_files(root, modules):
    for old, new in [*modules.items(), *TABLE["files"].items()]:
        if "/" not in old:
            src, dst = (Path(name.replace(".", "/") + ".py") for name in (old, new))
        else:
            src, dst = Path(old), Path(new)
        if old in TABLE["split"] or not (root / src).exists():
            continue
        if (root / dst).exists():
            NOTES.append(f"FILE: {dst} exists already; {src} left")
            continue
        (root / dst).parent.mkdir(parents=True, exist_ok=True)
        git(root, "mv", src.as_posix(), dst.as_posix())
        COUNT["files"] += 1


def main():
    root = Path(sys.argv[1]).resolve()
    old = Renamer(root)
    alive = bool(old.fields) or bool(old.modules) or bool(old.symbols)
    if not alive:
        print("nothing to rename")
        return
    old.run()
    changed = old.write()
    before = {"modules": dict(old.modules), "symbols": old.symbols, "members": old.members, "fields": old.fields}
    text_rules.split_words(root, TABLE, old)
    text_rules.run(root, TABLE, before, COUNT, NOTES)
    move_files(root, old.modules)
    git(root, "add", "-A")
    if "--no-format" not in sys.argv:
        subprocess.run(["ruff", "check", "-q", "--select", "I,UP034", "--fix", "."], cwd=root)
        subprocess.run(["ruff", "format", "-q", "."], cwd=root)
        books = [p.as_posix() for p in (root / "book").glob("*.ipynb")]
        subprocess.run(["ruff", "format", "-q", "--config", "book/cells.toml", *books], cwd=root)
        text_rules.after_format(root, TABLE)
        git(root, "add", "-A")
    print(f"{len(changed)} files changed;", dict(COUNT))
    (HERE / "report.txt").write_text("\n".join(sorted(NOTES)) + "\n")
    captures = [n for n in NOTES if n.startswith(("CAPTURE", "FILE"))]
    print(f"{len(NOTES)} notes in {HERE / 'report.txt'}; captured names: {len(captures)}")
    for n in captures[:60]:
        print(n)


if __name__ == "__main__":
    main()
