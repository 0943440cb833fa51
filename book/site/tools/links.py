"""Check a built book: every internal link has a target, and no asset comes from outside.

Sphinx checks its own references but not raw HTML, and does not report remote scripts and styles.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from bs4 import BeautifulSoup

# Attributes that name another file. Only an <a> may lead out of the book.
REFERENCES = dict.fromkeys(("audio", "embed", "iframe", "img", "script", "source", "video"), "src") | {
    "a": "href", "image": "href", "link": "href", "object": "data",
}  # fmt: skip


@cache
def parse(page):
    return BeautifulSoup(page.read_text("utf-8"), "html.parser")


@cache
def anchors(page):
    named = {tag["name"] for tag in parse(page).find_all("a", attrs={"name": True})}
    # the stored state of an explorer follows its name: #calculator?batch=8
    explorers = {tag["data-slug"] for tag in parse(page).find_all(attrs={"data-slug": True})}
    return named | explorers | {tag["id"] for tag in parse(page).find_all(id=True)}


def fault(page, root, tag, address):
    """Return what is wrong with one reference, or None."""
    url = urlsplit(address)
    if url.scheme in ("data", "mailto"):
        return None
    if url.scheme or url.netloc:
        return None if tag == "a" else "asset from outside"
    target = (page.parent / unquote(url.path)).resolve() if url.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(root):
        return "leads out of the book"
    if not target.is_file():
        return "no such file"
    if not url.fragment or target.suffix != ".html":
        return None
    if unquote(url.fragment).split("?")[0] not in anchors(target):
        return "no such anchor"
    return state(target, *url.fragment.split("?", 1)) if "?" in url.fragment else None


def state(page, slug, pairs):
    """Return which part of a link's state an explorer does not offer, or None."""
    box = parse(page).find(attrs={"data-slug": slug})
    for name, value in parse_qsl(pairs, keep_blank_values=True):
        if "finder" in box.get("class", ()) and box.find(attrs={"data-key": name}):
            continue  # the search accepts any words, and menus are filled when the page opens
        if box.find("input", attrs={"data-key": name, "type": "text"}):
            continue  # parsed by the page, which reports what it cannot read
        typed = box.find("input", attrs={"data-key": name, "type": "number"})
        options = box.select(f'select[data-key="{name}"] option')
        offered = {option.text for option in options} | {option.get("value") for option in options}
        offered |= {radio["value"] for radio in box.select(f'input[type="radio"][data-key="{name}"]')}
        try:
            right = float(typed["min"]) <= float(value) <= float(typed["max"]) if typed else value in offered
        except ValueError:
            right = False
        if not right:
            return f"the box has no {name}={value}"
    return None


def check(root):
    """Return all faults of the pages below ``root``, as (page, address, what is wrong)."""
    faults = []
    for page in sorted(root.rglob("*.html")):
        if "_static" in page.relative_to(root).parts:
            continue  # templates of the theme, not pages
        for element in parse(page).find_all(list(REFERENCES)):
            address = element.get(REFERENCES[element.name])
            if "canonical" in element.get("rel", ()):
                continue  # the address of the page itself
            wrong = fault(page, root, element.name, address) if address else None
            if wrong:
                faults.append((str(page.relative_to(root)), address, wrong))
    return faults


def main():
    root = Path(sys.argv[1]).resolve()
    faults = check(root)
    for page, address, wrong in faults:
        print(f"{page}: {address}: {wrong}")
    if faults:
        sys.exit(1)
    print("Links: every one leads somewhere, no asset from outside")


if __name__ == "__main__":
    main()
