"""Write authors and address from ``_config.yml`` into the other files that state them.

``author`` (several with commas) and ``repository: url`` are stated once; CITATION.cff, pyproject.toml, LICENSE and
the chapters are updated from them. If there is an address, every chapter begins with a cell that fetches the book if
it is not installed. A test checks that all agree.
"""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]


def load_config():
    """Return the list of authors and the repository's address, as ``_config.yml`` states them."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    return [name.strip() for name in config["author"].split(",")], config["repository"]["url"] or ""


def citation(text, authors, address):
    """Return CITATION.cff with these authors and this address."""
    names = "".join(f"  - name: {name}\n" for name in authors)
    text = re.sub(r"(?m)^authors:\n(?:  - .*\n)+", f"authors:\n{names}", text)
    text = re.sub(r"(?m)^repository-code: .*\n", "", text)
    return text + (f"repository-code: {address}\n" if address else "")


def project(text, authors, address):
    """Return pyproject.toml with these authors and this address."""
    names = ", ".join(f'{{ name = "{name}" }}' for name in authors)
    text = re.sub(r"(?m)^authors = .*$", f"authors = [{names}]", text)
    text = re.sub(r"\[project\.urls\]\n(?:\w+ = .*\n)+\n", "", text)
    urls = f'[project.urls]\nRepository = "{address}"\n\n' if address else ""
    return text.replace("[project.scripts]", f"{urls}[project.scripts]")


def licence(text, authors, address):
    """Return LICENSE with these authors."""
    return re.sub(r"(?m)^(Copyright \(c\) [\d-]+,? ).*$", lambda line: line[1] + ", ".join(authors), text)


def installing(address):
    """Return the code of a cell that fetches and installs the book, with its dependencies, if it is not installed."""
    name = address.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return (
        "try:\n    import book\nexcept ImportError:\n"
        f"    !git clone -q --depth 1 {address} {name} && pip install -q './{name}[book]'\n    %cd {name}"
    )


def chapter(text, authors, address):
    """Return a chapter with an installing cell before its first code, or without one if there is no address."""
    nb = json.loads(text)
    cells = [cell for cell in nb["cells"] if cell["id"] != "install"]
    first = next((i for i, cell in enumerate(cells) if cell["cell_type"] == "code"), None)
    if address and first is not None:
        lines = installing(address).splitlines(keepends=True)
        cells.insert(first, {"cell_type": "code", "execution_count": None, "id": "install",
                             "metadata": {"tags": ["remove-cell"]}, "outputs": [], "source": lines})  # fmt: skip
    return json.dumps(nb | {"cells": cells}, indent=1, ensure_ascii=False) + "\n"


FOLLOW = {"CITATION.cff": citation, "pyproject.toml": project, "LICENSE": licence}
FOLLOW |= {f"book/{path.name}": chapter for path in sorted((ROOT / "book").glob("*.ipynb"))}


def main():
    for name, written in FOLLOW.items():
        path = ROOT / name
        path.write_text(written(path.read_text("utf-8"), *load_config()), "utf-8")


if __name__ == "__main__":
    main()
