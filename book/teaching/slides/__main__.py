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


def part_html(kind, content, render):
    """One part of a slide."""
    if kind == "figure":
        svg, alt = content
        code = base64.b64encode(svg.encode()).decode()
        return f'<img src="data:image/svg+xml;base64,{code}" alt="{html.escape(alt)}">'
    if kind == "html":
        content = re.sub(
            r'href="(?=[\w-]+\.html)', 'href="../book/', content
        )  # pages have a folder of their own
        return f'<div class="live">{content}</div>'
    if kind == "text":
        return f'<div class="text">{render(plain(content))}</div>'
    if kind == "symbols":
        return f'<div class="text symbols">{render("Here " + content + ".")}</div>'
    if kind == "page":
        return f'<iframe src="{content}" title="The page itself"></iframe>'
    return f'<pre class="{kind}">{html.escape(content)}</pre>'


def deck_html(title, deck):
    """The page of a deck."""
    render = markdown().render
    sections = []
    for number, slide in enumerate(deck, 1):
        body = "".join(part_html(kind, content, render) for kind, content in slide.show)
        several = r'(?s)(<pre class="out">((?!</pre>).)*</pre>){2,}'
        body = re.sub(several, r'<div class="row">\g<0></div>', body)
        # a list of one question would have the question's own name
        body = re.sub(r'(<div id="|inferlibMark\(")marked', r"\1list-marked", body)
        ask = f'<p class="ask">Ask: {html.escape(slide.ask)}</p>' if slide.ask else ""
        notes = ask + render(plain(slide.notes))
        state = f' data-state="{html.escape(json.dumps(slide.state))}"' if slide.state else ""
        sections.append(
            f'<section id="{number}" data-minutes="{slide.minutes}"{state}>'
            f"<h1>{render(slide.title)}</h1><div class=body>{body}</div><aside hidden>{notes}</aside></section>"
        )
    page = _frame("deck.html")
    # every explorer has its style and runtime; a deck needs them once
    return page.replace("{title}", html.escape(title)).replace("{slides}", once("\n".join(sections)))


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
