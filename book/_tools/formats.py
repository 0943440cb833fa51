"""Make the whole book one PDF or one ePub, or print one of its pages, after the builder has run."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Without these a browser phones home, or refuses to run as root in a container.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pdf-header-footer",
]


def browser():
    """The program that prints, or an end with what to install."""
    for name in BROWSERS:
        if shutil.which(name):
            return name
    sys.exit(
        "The PDF is printed by a browser, and there is none: install Chromium "
        "(Debian, Ubuntu: apt install chromium) or Google Chrome."
    )


def pdf(built, target):
    """Print the single page of the book."""
    (page,) = (built / "book").glob("*.html")
    # Its links to assets are those of a page at the top.
    top = built / "print.html"
    shutil.copyfile(page, top)
    print_page(top, target)


def print_page(page, target):
    """Print one page."""
    program = browser()
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            "--virtual-time-budget=120000",
            f"--print-to-pdf={target}",
            page.resolve().as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode or not target.is_file():
        sys.exit(f"{program} could not print:\n{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", choices=("pdf", "epub", "page", "browser"))
    parser.add_argument("built", type=Path, nargs="?")
    parser.add_argument("target", type=Path, nargs="?")
    args = parser.parse_args()
    if args.format == "browser":
        browser()
        return
    if args.format == "pdf":
        pdf(args.built, args.target)
    elif args.format == "page":
        print_page(args.built, args.target)
    else:
        (made,) = args.built.glob("*.epub")
        shutil.copyfile(made, args.target)
    size = args.target.stat().st_size / 1e6
    print(f"Wrote {args.target} ({size:.1f} MB)")


if __name__ == "__main__":
    main()
