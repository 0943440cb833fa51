"""Write the decks beside the pages of the built book: ``python -m book.teaching.slides _build/html``."""

from __future__ import annotations

import argparse
import base64
import html
import json
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from book import stored
from book.site.ext.maths import typeset
from book.site.ext.offline import GUARD
from book.site.ext.page_transforms import once
from book.site.tools.formats import BROWSERS, opened
from book.site.tools.standalone_notebooks import FENCE, OPTIONS, plain as unresolved
from book.teaching import slides


def markdown():
    """Markdown as the chapters use it."""

    def math(text, options=None):
        return typeset(text, not options or options["display_mode"])

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    # "$3 against $9" is money.
    reader.use(dollarmath_plugin, renderer=math, allow_space=False, allow_digits=False)
    return reader.use(amsmath_plugin, renderer=math)


def plain(text):
    """Return text of a chapter for a slide, without titles of boxes."""
    text = FENCE.sub(lambda fence: OPTIONS.sub("", fence[4]), text)
    text = re.sub(r"(?m)^# .*$", "", text)
    return unresolved(re.sub(r"\[([^\]]*)\]\(\w+\.(?:ipynb|md|html)[^)]*\)", r"\1", text))


def settled(body):
    """Put printed lines beside one another, and give a list of one question another name than its question."""
    several = r'(?s)(<pre class="out">((?!</pre>).)*</pre>){2,}'
    body = re.sub(several, r'<div class="row">\g<0></div>', body)
    return re.sub(r'(<div id="|inferlibMark\(")marked', r"\1list-marked", body)


def deck_html(title, deck):
    """The page of a deck."""
    sections = stored.filled(
        "teaching/slides/sections.jinja", deck=deck, render=markdown().render, plain=plain, settled=settled,
        # pages have a folder of their own
        nearer=lambda content: re.sub(r'href="(?=[\w-]+\.html)', 'href="../book/', content),
        code=lambda svg: base64.b64encode(svg.encode()).decode(), state=json.dumps,
    )  # fmt: skip
    page = _frame("deck.html")
    # every explorer has its style and runtime; a deck needs them once
    return page.replace("{title}", html.escape(title)).replace("{slides}", once(sections))


def index_html():
    """A page that leads to all decks."""
    rows = ""
    for name in slides.SESSIONS:
        minutes = sum(slide.minutes for slide in slides.deck(name))
        link = f'<a href="{name}.html">{minutes:g} minutes</a>'
        rows += f"<tr><th>{html.escape(slides.heading(name))}</th><td>{link}</td></tr>"
    return _frame("index.html").replace("{rows}", rows)


def _frame(name):
    """Return a page without content, with the content security policy of all pages."""
    page = (Path(__file__).parent / name).read_text("utf-8")
    return page.replace("<head>", f"<head>\n{GUARD}", 1)


SCREENS = ("1920,1080", "1440,1080")


def faults(page, size):
    """Return what does not fit on its slide or is too small for the last row, as measured by a browser."""
    dom = opened(page, f"--window-size={size}", "--virtual-time-budget=60000", "--dump-dom").stdout
    found = re.search(r'data-faults="([^"]*)"', dom)
    return json.loads(html.unescape(found[1])) if found else ["the slides were not laid out"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("built", type=Path)
    parser.add_argument("--measure", action="store_true", help="see in a browser that everything fits")
    args = parser.parse_args()
    target = args.built / "slides"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "index.html").write_text(index_html(), "utf-8")
    measured = args.measure and any(map(shutil.which, BROWSERS))
    if args.measure and not measured:
        print("There is no Chromium or Chrome: whether all fits on the slides was not measured.")
    written = slides.SESSIONS
    for name in written:
        made = deck_html(slides.heading(name), slides.deck(name))
        (target / f"{name}.html").write_text(made, "utf-8")
    print(f"Wrote {len(written)} decks to {target}")

    def wrong(at):
        name, size = at
        return [f"{name}, {size}: {fault}" for fault in faults(target / f"{name}.html", size)]

    with ThreadPoolExecutor(os.cpu_count()) as browsers:
        found = sum(browsers.map(wrong, product(written, SCREENS) if measured else ()), [])
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
