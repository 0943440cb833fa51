"""Make one PDF of the book or of its stories, or print one page, after the builder has run."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

# Parts of the contents that are stories, and the page they cite.
STORIES, SOURCES = ("Foundations", "Sources", "Synthesis", "From a step to a price"), "book/bibliography"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Without these a browser contacts its maker, or refuses to run as root in a container.
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--no-pdf-header-footer",
]  # fmt: skip


def browser():
    """Return the browser's command, or exit with what to install."""
    for name in BROWSERS:
        if shutil.which(name):
            return name
    sys.exit(
        "The PDF is printed by a browser, and there is none: install Chromium "
        "(Debian, Ubuntu: apt install chromium) or Google Chrome."
    )


def stories(target):
    """Write the contents of a book of the stories only, and a configuration for it."""
    toc = yaml.safe_load(Path("_toc.yml").read_text("utf-8"))
    toc["parts"] = [part for part in toc["parts"] if part["caption"] in STORIES]
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            chapter.pop("sections", None)  # the records
    toc["parts"].append({"caption": "Bibliography", "chapters": [{"file": SOURCES}]})
    config = yaml.safe_load(Path("_config.yml").read_text("utf-8"))
    config["title"] += ": the stories"
    settings, own = config["sphinx"]["config"], config["sphinx"]["local_extensions"]
    # relative to the original configuration
    own.update({name: str(Path(folder).resolve()) for name, folder in own.items()})
    # links to records and tools become plain text
    settings["suppress_warnings"] += ["ref", "myst.xref_missing"]
    target.mkdir(parents=True, exist_ok=True)
    for name, content in (("_toc.yml", toc), ("_config.yml", config)):
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        (target / name).write_text(text, "utf-8")


# Handouts for students: no solutions, and a size for reading at a desk.
HANDED_OUT = """<style>@media print{@page{size:A4;margin:13mm 15mm}body{zoom:.7}
.solution,.tag_hide-input summary{display:none!important}img,svg,table,pre,.admonition{break-inside:avoid}}</style>"""


def pdf(built, target, students=False):
    """Print the single page of the book, with solutions or for students."""
    (page,) = (built / "book").glob("*.html")
    # its links to assets assume a page at the top
    top = built / "print.html"
    text = page.read_text("utf-8")
    top.write_text(text.replace("</head>", HANDED_OUT + "</head>", 1) if students else text, "utf-8")
    print_page(top, target)


def print_page(page, target):
    """Print one page to PDF."""
    done = opened(page, "--virtual-time-budget=120000", f"--print-to-pdf={target}")
    if done.returncode or not target.is_file():
        sys.exit(f"{browser()} could not print:\n{done.stderr}")


def opened(page, *options):
    """Open a page once in a browser with an empty profile; return the finished process."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser(), *FLAGS, f"--user-data-dir={profile}", *options, page.resolve().as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=1800)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", choices=("pdf", "page", "browser", "stories"))
    parser.add_argument("built", type=Path, nargs="?")
    parser.add_argument("target", type=Path, nargs="?")
    parser.add_argument("--students", action="store_true", help="a PDF without solutions, in a smaller type")
    args = parser.parse_args()
    if args.format == "browser":
        browser()
        return
    if args.format == "stories":
        stories(args.built)
        return
    if args.format == "pdf":
        pdf(args.built, args.target, args.students)
    else:
        print_page(args.built, args.target)
    size = args.target.stat().st_size / 1e6
    print(f"Wrote {args.target} ({size:.1f} MB)")


if __name__ == "__main__":
    main()
