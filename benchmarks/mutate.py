"""Mutation tests: put slips into modules one at a time; the tests nearest to each must fail.

By default sixty random slips of all modules, or of the named ones: python benchmarks/mutate.py inferlib/system.py
Slips are made in copies of the repository. The run fails if more than a tenth is missed; some always are, because a
slip without observable effect counts as missed.
"""

import argparse
import ast
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue

from book import prose_numbers

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "_build" / "kept"
PASSED = ROOT / "_build" / "passed"
NEAREST = tomllib.loads((Path(__file__).parent / "nearest.toml").read_text("utf-8"))
PAIRS = [
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.And, ast.Or),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
]
OTHER = {ast.Pow: ast.Mult, ast.Mod: ast.Mult} | dict(PAIRS) | {other: one for one, other in PAIRS}


def modules():
    """Return every module that is tried."""
    paths = (
        path for floor in ("inferlib", "tokenprice", "book") for path in sorted((ROOT / floor).rglob("*.py"))
    )
    names = (path.relative_to(ROOT).as_posix() for path in paths)
    return [name for name in names if not name.startswith(tuple(NEAREST["out"]))]


def nearest(module):
    """Return the test files and chapters that should notice a slip in a module."""
    source = module.partition("/papers/")[2].partition("/")[0]
    tests = {place.format(source=source): names for place, names in NEAREST["tests"].items()}
    found = tests[max((place for place in tests if module.startswith(place)), key=len)]
    names = found.format(source=source).split()
    patterns = [f"book/{name}" if name.endswith(".ipynb") else f"tests/test_{name}.py" for name in names]
    near = [path.relative_to(ROOT).as_posix() for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return near + (readers(module) if module.startswith("book/") else [])


def readers(module):
    """Return the chapters that read a module when they last passed, or of which that is not known."""
    found = []
    for path in sorted(ROOT.glob("book/*.ipynb")):
        record = PASSED / f"{path.stem}.pickle"
        if not record.is_file() or module in pickle.loads(record.read_bytes())[1]:
            found.append(path.relative_to(ROOT).as_posix())
    return found


def slips(text):
    """Yield every slip of a module: the place of a node among all nodes, and its line.

    Left out: ``strict`` of a zip, which no test can notice, and the words of an error.
    """
    tree = ast.parse(text)
    free = (
        node for node in ast.walk(tree) if isinstance(node, ast.Raise) or getattr(node, "arg", "") == "strict"
    )
    safe = {id(part) for node in free for part in ast.walk(node)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in safe:
            continue
        operator = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
        constant = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
        if type(operator) in OTHER or constant:
            yield place, node.lineno


def slipped(text, place):
    """Return the text of a module with the slip at a place, and the changed expression."""
    tree = ast.parse(text)
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == place)
    before = ast.unparse(node)
    if isinstance(node, ast.Constant):
        more = (
            node.value if node.value > 999 else 1
        )  # a change of one in a thousand does not show in three digits
        node.value = not node.value if isinstance(node.value, bool) else node.value + more
    elif hasattr(node, "op"):
        node.op = OTHER[type(node.op)]()
    else:
        node.ops[0] = OTHER[type(node.ops[0])]()
    return ast.unparse(tree), f"{before}  ->  {ast.unparse(node)}"


def red(copy, *files):
    """Return the first failing test or chapter in a copy, or False; a timeout counts as a failure."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
    if "/papers/" in files[0]:  # of the tests of all sources, only those of this one
        command += ["-k", f"not (test_equations or test_print) or {files[0].split('/')[2]}"]
    own = os.environ | {"PYTHONPATH": str(copy), "TOKENPRICE_BUILD": str(copy / "_build")}
    if KEPT.is_dir():
        shutil.copytree(KEPT, copy / "_build" / "kept", dirs_exist_ok=True)
    try:
        run = subprocess.run(command, cwd=copy, env=own, capture_output=True, text=True, timeout=3600)
    except subprocess.TimeoutExpired:
        return "too long"
    failed = re.search(r"^(?:FAILED|ERROR) (book/\w+\.ipynb|[^\s[]+)", run.stdout, re.M)
    nothing = 5  # pytest's code for no tests
    return run.returncode not in (0, nothing) and (failed[1] if failed else "a crash")


def survives(slip, copies, sound):
    """Return whether the nearest tests miss a slip, and print it. A failing test must pass without the slip."""
    module, place, line = slip
    text = (ROOT / module).read_text("utf-8")
    changed, shown = (slipped_number if module.endswith(".ipynb") else slipped)(text, place)
    copy = copies.get()
    try:
        (copy / module).write_text(changed, "utf-8")
        tests = ["tests/test_prose_numbers.py"] if module.endswith(".ipynb") else [module, *nearest(module)]
        test = red(copy, *tests)
        (copy / module).write_text(text, "utf-8")
        if test and (copy / test.partition("::")[0]).is_file() and test not in sound:
            if red(copy, test):
                raise SystemExit(f"{test} is red without any slip")
            sound.add(test)
    finally:  # those who wait for a copy end as well
        copies.put(copy)
    if not test:
        print(f"missed: {module}, line {line}: {shown[:140]}", flush=True)
    return not test


NUMBER = re.compile(prose_numbers.WRITTEN.pattern.removesuffix("$"))
# Numbers in a text that are not results: in names, code, formulas, headings, tables, links and exercises.
NO_RESULT = re.compile(
    r"(?ms)```\{exercise\}.*?^```$|^:\w+:.*?$|`[^`]*`|\$\$.*?\$\$|\$[^$\n]+\$|\[[^\]\n]*\]\([^)]*\)|<a [^>]*>|^#.*?$"
    r"|^\|.*?$|<!--.*?-->"
    r"|\b(?:in|of|June|July|August|April) 20\d\d|\b(?:Llama|Qwen\d?|GPT(?:-OSS)?|DeepSeek|Kimi|TPU|PaLM"
    r"|Tables?|Figures?|[Ss]ections?|[Ee]quations?|Appendix|[Cc]hapters?)[ -][\w.-]+"
    r"(?: \d+B\b|(?:(?: to | and |, )\d+)*)"
)


GIVEN = "<!--given-->"


def results(chapter):
    """Yield the numbers of a chapter's text that state a result: cell, start and end.

    A number that the chapter's code or its source's text gives is an input. Fractions and multiples state results,
    unless the text marks them as given, such as "half the bytes" of a question.
    """
    cells = json.loads((ROOT / chapter).read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    code = "\n".join(text for cell, text in zip(cells, sources, strict=True) if cell["cell_type"] == "code")
    numerals = ROOT / "book" / "papers" / Path(chapter).stem.split("_")[0] / "numerals.txt"
    given = code + (numerals.read_text("utf-8") if numerals.is_file() else "")
    inputs = {float(word.replace("_", "")) for word in re.findall(r"(?<![\w.])\d[\d_]*(?:\.\d+)?", given)}
    for at, (cell, text) in enumerate(zip(cells, sources, strict=True)):
        bound = {comment.start() for comment in prose_numbers.COMMENT.finditer(text)}
        blank = NO_RESULT.sub(lambda part: " " * len(part[0]), text)
        for found in NUMBER.finditer(blank) if cell["cell_type"] == "markdown" else ():
            _, value, form, *_ = prose_numbers.read(found[0])
            kind = form in ("fraction", "multiple", "fold")
            if text.startswith(GIVEN, found.end()):
                continue
            if found.end() in bound or (kind and value != 1) or (value > 2 and value not in inputs):
                yield at, found.start(), found.end()


def slipped_number(text, place):
    """Return the text of a chapter with another number at a place, and the changed sentence."""
    at, start, end = place
    nb, draw = json.loads(text), random.Random(str(place))
    source = "".join(nb["cells"][at]["source"])
    written, value, form, *_ = prose_numbers.read(" ".join(source[start:end].split()))
    if isinstance(form, int):
        digit = draw.choice([i for i, letter in enumerate(written) if letter.isdigit()][:2])
        other = (
            written[:digit] + str((int(written[digit]) + draw.choice((1, 2, 9))) % 10) + written[digit + 1 :]
        )
    elif form == "fraction":
        others = [words for words, part in prose_numbers.FRACTIONS.items() if part != value]
        other = draw.choice(others)
    else:
        other = prose_numbers.in_words(value + draw.choice((1, 2, -1)), form)
    nb["cells"][at]["source"] = source[:start] + other + source[end:]
    return json.dumps(
        nb
    ), f"{source[max(0, start - 60) : start]}[{written} -> {other}]{source[end : end + 20]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=modules(), help="all when none is named")
    parser.add_argument("--text", action="store_true", help="slips in results that the stories' text states")
    parser.add_argument("--most", type=int, default=60, help="slips tried; 0 for all")
    parser.add_argument("--missed", type=int, help="how many may be missed: a tenth, unless said otherwise")
    parser.add_argument("--seed", default="", help="another seed draws other slips")
    parser.add_argument("--jobs", type=int, default=2)
    asked, copies = parser.parse_args(), Queue()
    if asked.text:
        chapters = sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))
        bound = [f"book/{name}.ipynb" for name in chapters if prose_numbers.bound_in(name)]
        found = [(name, place, place[0]) for name in bound for place in results(name)]
    else:
        found = [(name, *slip) for name in asked.modules for slip in slips((ROOT / name).read_text("utf-8"))]
    if 0 < asked.most < len(found):
        found = random.Random(asked.seed).sample(found, asked.most)
    leave = shutil.ignore_patterns(".git", ".venv", "_build", "__pycache__", ".*_cache")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        for job in range(asked.jobs):
            copies.put(Path(shutil.copytree(ROOT, Path(folder) / str(job), ignore=leave)))
        missed = sum(pool.map(partial(survives, copies=copies, sound=set()), found))
    print(f"{1 - missed / len(found):.0%} of {len(found)} slips noticed")
    sys.exit(missed > (len(found) // 10 if asked.missed is None else asked.missed))


if __name__ == "__main__":
    main()
