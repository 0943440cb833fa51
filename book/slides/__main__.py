"""Write the decks beside the pages of the built book: ``python -m book.slides _build/html``."""

from __future__ import annotations

import argparse
import base64
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from book import slides
from book._tools.formats import BROWSERS, FLAGS, browser
from inferlib import papers

# Every explorer brings its style and its runtime; a deck needs each once.
SHARED = re.compile(r"<style>\.inferlib.*?</style>|<script>window\.inferlib.*?</script>", re.S)
ROLE = re.compile(r"\{(\w+)(?::\w+)?\}`([^`<]*?)\s*(?:<[^`]*>)?`")


def markdown():
    """Markdown as the chapters use it; equations are left to MathJax."""

    def math(text, options=None):
        inline = bool(options) and not options["display_mode"]
        return html.escape(rf"\({text}\)" if inline else rf"\[{text}\]")

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.use(dollarmath_plugin, renderer=math).use(amsmath_plugin, renderer=math)
    return reader


def plain(text):
    """A text without what only the book resolves: boxes, targets, references, citations."""

    def role(match):
        kind, words = match.groups()
        if kind == "cite":
            return ", ".join(named(key) for key in words.split(","))
        return {"numref": "the figure", "eq": "the equation"}.get(kind, words)

    text = slides.FENCE.sub(lambda fence: slides.OPTIONS.sub("", fence[4]), text)
    text = re.sub(r"(?m)^\(\S+\)=$|^# .*$", "", text)
    text = re.sub(r"\[([^\]]*)\]\((?:[\w#-]+|\w+\.(?:ipynb|md))\)", r"\1", text)
    return ROLE.sub(role, text)


def named(key):
    """Who is cited, without the year."""
    if key in papers.sources():
        return papers.label(key).removesuffix(key[-4:]).strip()
    return re.sub(r"\d{4}.*", "", key).title()


def part_html(kind, content, render):
    """One part of a slide."""
    if kind == "figure":
        svg, alt = content
        code = base64.b64encode(svg.encode()).decode()
        return f'<img src="data:image/svg+xml;base64,{code}" alt="{html.escape(alt)}">'
    if kind == "html":
        return f'<div class="live">{content}</div>'
    if kind == "text":
        return f'<div class="text">{render(plain(content))}</div>'
    return f'<pre class="{kind}">{html.escape(content)}</pre>'


def deck_html(name):
    """The page of a deck."""
    render = markdown().render
    title = slides.heading(name)
    sections = []
    for number, slide in enumerate(slides.deck(name), 1):
        body = "".join(part_html(kind, content, render) for kind, content in slide.show)
        body = re.sub(
            r'(?s)(<pre class="out">((?!</pre>).)*</pre>){2,}', r'<div class="row">\g<0></div>', body
        )
        ask = f'<p class="ask">Ask: {html.escape(slide.ask)}</p>' if slide.ask else ""
        notes = ask + render(plain("\n\n".join(slide.notes)))
        sections.append(
            f'<section id="{number}" data-minutes="{slide.minutes}"{" data-long" if slide.long else ""}>'
            f"<h1>{render(slide.title)}</h1><div class=body>{body}</div>"
            f"<aside hidden>{notes}</aside></section>"
        )
    seen = set()
    kept = SHARED.sub(
        lambda m: "" if m[0] in seen else seen.add(m[0]) or m[0],
        "\n".join(sections),
    )
    page = (Path(__file__).parent / "deck.html").read_text(encoding="utf-8")
    return page.replace("{title}", html.escape(title)).replace("{slides}", kept)


def index_html():
    """A page that leads to all decks."""
    rows = "".join(
        f"<tr><th>{html.escape(slides.heading(n))}</th>"
        + "".join(
            f'<td><a href="{n}.html?{cut}">{slides.minutes(n, cut)} minutes</a></td>' for cut in slides.CUTS
        )
        + "</tr>"
        for n in slides.decks()
    )
    page = (Path(__file__).parent / "index.html").read_text(encoding="utf-8")
    return page.replace("{rows}", rows)


def faults(page):
    """What does not fit on its slide, as the browser measures it."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser(), *FLAGS, f"--user-data-dir={profile}", "--window-size=1280,720"]
        command += ["--virtual-time-budget=60000", "--dump-dom", page.resolve().as_uri()]
        dom = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
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
    (target / "index.html").write_text(index_html(), encoding="utf-8")
    measured = args.measure and any(map(shutil.which, BROWSERS))
    if args.measure and not measured:
        print("There is no Chromium or Chrome: whether all fits on the slides was not measured.")
    wrong = []
    for name in slides.decks():
        page = target / f"{name}.html"
        page.write_text(deck_html(name), encoding="utf-8")
        if measured:
            wrong += [f"{name}: {fault}" for fault in faults(page)]
    print(f"Wrote {len(slides.decks())} decks to {target}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
