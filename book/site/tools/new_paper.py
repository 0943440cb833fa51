"""Write the folders, the story and the record of a new source, with content that runs: ``make paper KEY=mine2026``."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "tests" / "_tiny2026"  # a test copies it into a tree with this command
PLACES = {
    "room": "inferlib/papers/{}", "print": "book/papers/{}",
    "chapter.ipynb": "book/{}.ipynb", "record.ipynb": "book/{}_record.ipynb",
}  # fmt: skip


def write(key, root=ROOT):
    """Write a source under ``key`` (author and year); return the paths written."""
    if not re.fullmatch(r"[a-z]+[0-9]{4}", key):
        sys.exit(f"KEY is {key!r}, but must be a name and a year, such as mine2026")
    places = {name: root / place.format(key) for name, place in PLACES.items()}
    if there := [str(path) for path in places.values() if path.exists()]:
        sys.exit(f"KEY is {key!r}, but there is {', '.join(there)}")
    for file in (path for path in TEMPLATE.rglob("*.*") if path.suffix != ".pyc"):
        name, *rest = file.relative_to(TEMPLATE).parts
        path = places[name].joinpath(*rest)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text("utf-8").replace("tiny2026", key)
        path.write_text(text.replace("Tiny 2026", f"{key[:-4].title()} {key[-4:]}"), "utf-8")
    # imports of the new folders are first-party now
    sort = "-m ruff check -q --fix --select I --config".split()
    subprocess.run([sys.executable, *sort, ROOT / "pyproject.toml", *places.values()], cwd=root, check=True)
    return list(places.values())


if __name__ == "__main__":
    print("Written:", *write(*sys.argv[1:]), sep="\n  ")
    print(
        "Next: list story and record in _toc.yml and book/chapters.md, cite the paper in book/bibliography.md;"
    )
    print(f"make refresh CHAPTERS='book/{sys.argv[1]}*.ipynb'; then replace one thing after the other.")
