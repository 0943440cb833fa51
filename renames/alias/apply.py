"""Put the aliases into a renamed tree: python apply.py TREE."""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
here = Path(__file__).parent
(root / "tokenprice/aliases.py").write_text((here / "aliases.py").read_text())
(root / "tests/test_aliases.py").write_text((here / "test_aliases.py").read_text())


def change(name, *pairs):
    path = root / name
    text = path.read_text("utf-8")
    for old, new in pairs:
        if new in text:
            continue
        if old not in text:
            print(f"NOT FOUND in {name}: {old[:70]!r}")
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")


change(
    "tokenprice/question.py",
    ('    prices = options.get("prices")\n', '    options = aliases.resolve(options)\n    prices = options.get("prices")\n'),
    ("    if isinstance(machine, SLO):\n", "    options = aliases.resolve(options)\n    if isinstance(machine, SLO):\n"),
)
path = root / "tokenprice/question.py"
text = path.read_text("utf-8")
if "import aliases" not in text:
    text = re.sub(r"from tokenprice import (?=[a-z(])", "from tokenprice import aliases, ", text, count=1)
    text = text.replace("import aliases, (", "import (aliases, ")
path.write_text(text, "utf-8")

# The terminal: one table for both.
path = root / "tokenprice/terminal.py"
text = path.read_text("utf-8")
text = re.sub(
    r"(?s)# What people type for an option.*?\n\}  # fmt: skip\n",
    "# What people type for an option of the terminal alone; all else is in tokenprice.aliases.\n"
    'ALSO = {"machine": ["--chip", "--gpu"], "chips": ["--chip"]}\n',
    text,
    count=1,
)
text = text.replace(
    "            add(flag, *ALSO.get(name, ()), dest=name",
    "            add(flag, *_other_flags(name), dest=name",
)
text = text.replace(
    "def _answer(name, given):",
    '''def _other_flags(name):
    """An option's aliases as flags, and names with an underscore as they are written in Python."""
    from tokenprice.aliases import ALIASES

    others = [other for other, own in ALIASES.items() if own == name and other != "gpu"]
    flags = [f"--{other.replace('_', '-')}" for other in others]
    return [*flags, *(f"--{each}" for each in (name, *others) if "_" in each)]


def _answer(name, given):''',
    1,
)
path.write_text(text, "utf-8")
