"""Renames in texts: docstrings, Markdown, notebooks' prose, JavaScript, HTML, TOML, the Makefile."""

import ast
import fnmatch
import json
import re
import subprocess
from pathlib import Path

TEXT = (".py", ".md", ".ipynb", ".js", ".html", ".css", ".toml", ".yml", ".cfg", ".bib", ".csv", ".cff", ".txt")


def listed(root):
    found = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in found:
        path = root / name
        if name and path.is_file() and (path.suffix in TEXT or name in ("Makefile", ".ci/run", ".gitignore")):
            yield path


def split_words(root, table, old):
    """``words.py`` becomes ``parsing.py`` and ``formatting.py``."""
    path = root / "tokenprice/words.py"
    if not path.exists():
        return
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    names = {new for (m, _), (target, new) in old.symbols.items() if m == "tokenprice.words" and target.endswith("formatting")}
    lines = text.split("\n")
    mine, rest, imports = [], [], []
    start = len(tree.body[0].end_lineno * [0])
    body = tree.body[1:]
    previous = tree.body[0].end_lineno
    for n in body:
        first = min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))])
        block = "\n".join(lines[previous : n.end_lineno])
        previous = n.end_lineno
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            imports.append(block)
        elif isinstance(n, ast.FunctionDef) and n.name in names:
            mine.append(block)
        else:
            rest.append(block)
    tail = "\n".join(lines[previous:])
    head = "\n".join(imports)
    used = sorted(n for n in names if re.search(rf"\b{n}\b", "\n".join(rest)))
    own = f"\nfrom tokenprice.formatting import {', '.join(used)}" if used else ""
    parsing = '"""Read the fields of a question: each function takes the name of a field and what was given."""\n'
    formatting = '"""Format numbers, intervals, layouts and number formats for people."""\n'
    (root / "tokenprice/formatting.py").write_text(formatting + head + "\n" + "\n".join(mine).rstrip() + "\n", "utf-8")
    path.write_text(parsing + head + own + "\n" + "\n".join(rest).rstrip() + "\n" + tail, "utf-8")
    subprocess.run(["git", "mv", "tokenprice/words.py", "tokenprice/parsing.py"], cwd=root, check=True)
    subprocess.run(["git", "add", "tokenprice/formatting.py"], cwd=root, check=True)
    both = ["tokenprice/parsing.py", "tokenprice/formatting.py"]
    subprocess.run(["ruff", "check", "-q", "--select", "F401,I", "--fix", *both], cwd=root)


def path_of(dotted):
    return dotted.replace(".", "/") + ".py"


def dotted_rules(table, before):
    rules = []
    for (module, old), (target, new) in before["symbols"].items():
        rules.append((rf"\b{re.escape(module)}\.{old}\b", f"{target}.{new}"))
        short = module.split(".")[-1]
    for old, new in before["modules"].items():
        rules.append((rf"(?<![\w./]){re.escape(old)}\b(?!\.(ipynb|toml|csv|html|css|js)\b)", new))
        rules.append((rf"\b{re.escape(path_of(old))}\b", path_of(new)))
    for old, new in table["files"].items():
        rules.append((rf"\b{re.escape(old)}\b", new))
        name, to = Path(old).name, Path(new).name
        if name not in ("recent.csv",):
            rules.append((rf"(?<![\w/-]){re.escape(name)}\b", to))
        if old.startswith("tests/"):
            rules.append((rf"(?<![\w/]){Path(old).stem}\b", Path(new).stem))
    return [(re.compile(a), b) for a, b in rules]


def apply(rules, text, done=None):
    for pattern, new in rules:
        text = pattern.sub(new, text)
    return text


def run(root, table, before, count, notes):
    rules = [*dotted_rules(table, before), *((re.compile(a), b) for a, b in table["text"]["everywhere"])]
    fields = before["fields"]
    flags = [
        (re.compile(rf"(?<![\w-])--{old.replace('_', '-')}(?![\w-])"), f"--{new.replace('_', '-')}")
        for old, new in fields.items()
    ]
    names = "|".join(sorted(fields, key=len, reverse=True))
    query = re.compile(rf"(#ask\?|&)({names})=")
    for path in listed(root):
        rel = path.relative_to(root).as_posix()
        text = path.read_text("utf-8")
        own = list(rules)
        for rule in table["rule"]:
            if fnmatch.fnmatch(rel, rule["files"]):
                own += [(re.compile(a, re.M), b) for a, b in rule.get("regex", [])]
        literal = [pair for rule in table["rule"] if fnmatch.fnmatch(rel, rule["files"]) for pair in rule.get("literal", [])]
        flagged = any(fnmatch.fnmatch(rel, p) for p in table["text"]["flags"]) and fields

        def all_of(text):
            if fields and fnmatch.fnmatch(rel, "book/calculator/*.js"):
                text = destructured(text, fields)
            for a, b in literal:
                text = text.replace(a, b)
            text = apply(own, text)
            if flagged:
                text = apply(flags, text)
            if fields:
                text = re.sub(
                    r"#ask\?[^\s\"')]*", lambda m: query.sub(lambda k: k[1] + fields[k[2]] + "=", m[0]), text
                )
            return text

        if path.suffix == ".ipynb":
            new = notebook(text, all_of, fields)
        else:
            new = all_of(text)
            if path.suffix == ".md" and fields:
                new = calls(new, fields)
            if rel.startswith("tests/") and fields:
                some = "|".join(k for k in fields if k not in ("prompt", "output", "length"))
                new = re.sub(rf"""(?<=["'])({some})(?= (?:is|has) )""", lambda m: fields[m[1]], new)
            if rel in ("tests/test_instrument.py", "README.md") and fields:
                new = calls(new, fields)
            if path.suffix == ".js":
                new = "\n".join(reflow(line) for line in new.split("\n"))
            if path.suffix == ".py":
                new = docstrings(new, rel, before, fields)
        if new != text:
            path.write_text(new, "utf-8")
            count["texts"] += 1


def destructured(text, fields):
    """``const { prompt, output } = S``: fields of the state that are taken apart, under the names they have there."""

    def one(found):
        def part(m):
            name, after = m[1], m[2]
            if name not in fields:
                return m[0]
            return f"{fields[name]}{after}" if after.startswith(":") else f"{fields[name]}: {name}{after}"

        inner = re.sub(r"(?<![\w.:{] )(?<![\w.])(\w+)(:|(?=\s*(?:,|$)))", part, found[1])
        return "{" + inner + "} = S" + found[2]

    return re.sub(r"\{((?:[^{}=]|\{[^{}]*\})*)\} = S\b(?!\.)(.?)", one, text)


def reflow(line, wide=110):
    """Lines of JavaScript that new names made too long: broken behind a comma or an operator outside of texts."""
    if len(line) <= wide:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("//"):
        cut = line.rfind(" ", 0, wide)
        return line[:cut] + "\n" + reflow(indent + "// " + line[cut + 1 :])
    best, quote = None, ""
    for i, c in enumerate(line[: wide - 1]):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"`'":
            quote = c
        elif c == " " and i > len(indent) + 20 and line[i - 1] in ",?&|=>" and line[i - 1 : i] != "=" and line[i - 2 : i] != "=>":
            best = i
    if best is None or line[:best].endswith(("return", "=>")):
        return line
    if line[:best].endswith(("&&", "||", "?")):
        return line[:best] + "\n" + indent + "  " + line[best + 1 :]
    return line[:best] + "\n" + reflow(indent + "  " + line[best + 1 :])


def notebook(text, all_of, fields):
    book = json.loads(text)
    for cell in book["cells"]:
        source = "".join(cell["source"])
        new = all_of(source)
        if cell["cell_type"] == "markdown" and fields:
            new = calls(new, fields)
        cell["source"] = new.splitlines(keepends=True)
        if "id" in cell:
            cell["id"] = re.sub(r"\bsixth\b", "kernels", cell["id"])
        if "metadata" in cell:
            cell["metadata"] = json.loads(all_of(json.dumps(cell["metadata"], ensure_ascii=False)))
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


CALL = re.compile(r"\b(?:ask|change|decide|simulate|Question|SLO|Promise|replace|read)\((?:[^()]|\([^()]*\))*\)")


def calls(text, fields):
    """Keywords of calls that stand in prose or in examples."""

    def call(found):
        return re.sub(
            r"(?<=[(,\s])(\w+)=(?!=)", lambda m: fields.get(m[1], m[1]) + "=", found[0]
        )

    return CALL.sub(call, text)


def docstrings(text, rel, before, fields):
    """Examples and roles in docstrings of a module: its own names, and keywords of calls."""
    module = rel.removesuffix(".py").replace("/", ".")
    own = {old: new for (m, old), (_, new) in before["symbols"].items() if m == module or path_of(m) == rel}
    if rel in ("tokenprice/parsing.py", "tokenprice/formatting.py"):
        own = {old: new for (m, old), (_, new) in before["symbols"].items() if m == "tokenprice.words"}
    out = []
    for line in text.split("\n"):
        if re.match(r"\s*(>>>|\.\.\.) ", line):
            if fields:
                line = calls(line, fields)
            line = re.sub(r"(?<![\w.])(\w+)(?=\()", lambda m: own.get(m[1], m[1]), line)
            line = re.sub(r"\.points\b", ".support", line)
            line = re.sub(r"\.binding\b", ".bottleneck", line)
            line = re.sub(r"\.in_words\(", ".summary(", line)
        line = re.sub(r"(:(?:func|class|data):`~?)(\w+)`", lambda m: m[1] + own.get(m[2], m[2]) + "`", line)
        out.append(line)
    return "\n".join(out)


def long_lines(root):
    found = subprocess.run(
        ["ruff", "check", "--select", "E501", "--output-format", "json", "."], cwd=root, capture_output=True, text=True
    ).stdout
    lines = {}
    for one in json.loads(found or "[]"):
        if one["filename"].endswith(".py"):
            lines.setdefault(one["filename"], set()).add(one["location"]["row"])
    return lines


def after_format(root, table):
    """Lines that new names made too long: the formatter breaks them, words of a text go to the next line."""
    for _ in range(3):
        for name, rows in long_lines(root).items():
            path = Path(name)
            lines = path.read_text("utf-8").split("\n")
            tree = ast.parse("\n".join(lines))
            statements = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)]
            inserted = 0
            for row in sorted(rows):
                k = row - 1 + inserted
                line = lines[k]
                here = [n for n in statements if n.lineno <= row <= n.end_lineno]
                smallest = min(here, key=lambda n: n.end_lineno - n.lineno, default=None)
                docstring = isinstance(smallest, ast.Expr) and isinstance(smallest.value, ast.Constant)
                indent = line[: len(line) - len(line.lstrip())]
                text_only = isinstance(smallest, ast.Assign) and '"""' in lines[smallest.lineno - 1 + inserted]
                string = re.fullmatch(r'( *)((?:return |\w+ = )?)([fr]?)"([^"]*)"([,)]*)', line)
                if string and not docstring:
                    lead, name_, prefix, told, end = string.groups()
                    depth, cut = 0, None
                    for i, c in enumerate(told[: 106 - len(lead)]):
                        depth += (c == "{") - (c == "}")
                        if c == " " and not depth:
                            cut = i + 1
                    if cut:
                        if name_:
                            more = lead + "    "
                            lines[k : k + 1] = [f"{lead}{name_}(", f'{more}{prefix}"{told[:cut]}"', f'{more}{prefix}"{told[cut:]}"', f"{lead}){end}"]
                            inserted += 3
                        else:
                            lines[k : k + 1] = [f'{lead}{prefix}"{told[:cut]}"', f'{lead}{prefix}"{told[cut:]}"{end}']
                            inserted += 1
                        continue
                if docstring or text_only or line.lstrip().startswith("#"):
                    cut = line.rfind(" ", len(indent) + 3, 118)
                    more = indent + ("# " if line.lstrip().startswith("#") else "")
                    if line.lstrip().startswith((">>> ", "... ")):
                        cut = line.rfind(", ", 0, 118) + 1
                        more = indent + "... "
                    lines[k : k + 1] = [line[:cut], more + line[cut + 1 :]]
                    inserted += 1
                elif smallest is not None:
                    for i in range(k, min(smallest.end_lineno + inserted, k + 40)):
                        if "# fmt: skip" in lines[i]:
                            lines[i] = lines[i].replace("  # fmt: skip", "")
                            break
                    end = smallest.end_lineno - 1 + inserted
                    for at in {end, *(n.end_lineno - 1 + inserted for n in here if "# fmt: skip" in lines[min(n.end_lineno - 1 + inserted, len(lines) - 1)] and n.end_lineno - n.lineno < 40)}:
                        lines[at] = lines[at].replace("  # fmt: skip", "")
            path.write_text("\n".join(lines), "utf-8")
        subprocess.run(["ruff", "format", "-q", "."], cwd=root)
    subprocess.run(["ruff", "check", "-q", "--select", "I,UP034,W", "--fix", "."], cwd=root)
