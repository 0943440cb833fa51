"""Tests that notice: slips are put into a module one at a time, and the tests nearest to it must turn red.

Of every module of the table below 60 slips, or of those that are named: python benchmarks/mutate.py inferlib/system.py
They are made in copies of the repository. A module of which fewer than 90 % are noticed fails the run; a slip that
changes nothing that can be observed counts as missed, which is why it is not 100 %.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[1]
GENERAL = ["mutants", "adversary", "doors"]
# The nearest tests of a module, quick ones first; its own doctests run before them.
TESTS = {
    "inferlib/frontier.py": ["mutants", "adversary", "erdil2025_toy"],
    "inferlib/system.py": [*GENERAL, "core", "catalog"],
    "inferlib/checks.py": [*GENERAL, "core", "measurements"],
    "inferlib/attention.py": ["adversary", "transformer", "config", "served"],
    "inferlib/transformer.py": ["adversary", "transformer", "config", "served"],
    "inferlib/principles/roofline.py": ["principles", *GENERAL, "equations"],
    "inferlib/papers/erdil2025/equations/toy.py": ["mutants", "erdil2025_toy", "equations"],
    "inferlib/papers/erdil2025/equations/model.py": ["mutants", "erdil2025_model", "erdil2025_text"],
    "inferlib/papers/liminal2025/equations.py": ["mutants", "liminal2025", "equations"],
    "inferlib/papers/steinhardt2022/equations.py": ["mutants", "steinhardt2022", "equations"],
    "inferlib/papers/pope2022/equations.py": ["mutants", "pope2022", "equations"],
    "inferlib/papers/mazurek2025/equations.py": ["mutants", "mazurek2025", "equations"],
    "inferlib/config/formats.py": ["mutants", "config", "served"],
    "inferlib/config/families.py": ["config", "served"],
    "inferlib/units.py": ["core", "doors"],
    "tokenprice/words.py": ["question"],
    "tokenprice/question.py": ["question", "change", "fleet", "decide"],
    "tokenprice/ask.py": ["question", "fleet", "serving"],
    "tokenprice/change.py": ["change", "question"],
    "tokenprice/decide.py": ["decide", "question"],
    "tokenprice/request.py": ["decide", "question", "serving"],
    "tokenprice/prompt.py": ["serving", "question"],
    "tokenprice/operators.py": ["serving", "blocks"],
    "tokenprice/decode.py": ["serving", "blocks"],
    "tokenprice/terminal.py": ["question"],
}
OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def slips(tree):
    """Every slip of a module: the place of a node among all nodes, and its line; a strict zip slips unseen."""
    keywords = (node for node in ast.walk(tree) if isinstance(node, ast.keyword))
    safe = {id(node.value) for node in keywords if node.arg == "strict"}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in safe:
            continue
        operator = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
        constant = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
        if type(operator) in OTHER or constant:
            yield place, node.lineno


def slipped(tree, place):
    """The text of the module with the slip at a place, and how the changed expression reads."""
    tree = deepcopy(tree)
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == place)
    before = ast.unparse(node)
    if isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif hasattr(node, "op"):
        node.op = OTHER[type(node.op)]()
    else:
        node.ops[0] = OTHER[type(node.ops[0])]()
    return ast.unparse(tree), f"{before}  ->  {ast.unparse(node)}"


def green(copy, module):
    """Whether the nearest tests pass in a copy; those that take too long do not."""
    files = [module, *(f"tests/test_{name}.py" for name in TESTS[module])]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
    if module.startswith("inferlib/papers/"):  # of the tests of all equations, those of this source
        command += ["-k", f"not test_equations or {module.split('/')[2]}"]
    own = os.environ | {"PYTHONPATH": str(copy)}
    try:
        return subprocess.run(command, cwd=copy, env=own, capture_output=True, timeout=900).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def noticed(module, copies, most):
    """The share of a module's slips that tests notice; those that they miss are printed."""
    text = (ROOT / module).read_text(encoding="utf-8")
    tree, found = ast.parse(text), list(slips(ast.parse(text)))
    found = sorted(random.Random(module).sample(found, most)) if 0 < most < len(found) else found

    def missed(slip):
        changed, shown = slipped(tree, slip[0])
        copy = copies.get()
        (copy / module).write_text(changed, encoding="utf-8")
        survived = green(copy, module)
        (copy / module).write_text(text, encoding="utf-8")
        copies.put(copy)
        return f"  line {slip[1]}: {shown[:140]}" if survived else None

    with ThreadPoolExecutor(copies.qsize()) as pool:
        lines = [line for line in pool.map(missed, found) if line]
    share = 1 - len(lines) / max(1, len(found))
    print(*[f"{module}: {share:.0%} of {len(found)} noticed", *lines], sep="\n", flush=True)
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=list(TESTS), help="all of the table when none is named")
    parser.add_argument("--most", type=int, default=60, help="slips tried of each module; 0 for all")
    parser.add_argument("--jobs", type=int, default=2)
    asked, copies = parser.parse_args(), Queue()
    leave = shutil.ignore_patterns(".git", ".venv", "_build", "__pycache__", ".*_cache")
    with tempfile.TemporaryDirectory() as folder:
        for job in range(asked.jobs):
            copies.put(Path(shutil.copytree(ROOT, Path(folder) / str(job), ignore=leave)))
        for module in asked.modules:
            if not green(copies.queue[0], module):
                sys.exit(f"{module}: its tests are red without any slip")
        shares = [noticed(module, copies, asked.most) for module in asked.modules]
    sys.exit(any(share < 0.9 for share in shares))


if __name__ == "__main__":
    main()
