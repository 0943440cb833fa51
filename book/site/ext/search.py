"""Sphinx extension: a search of the built book that leads to sections, shows the match, and needs no server.

Sphinx's own search finds only pages, fetches each for its excerpt (which pages opened as files may not do), and splits
words at the characters of numbers and symbols.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from docutils import nodes

from book.audit import catalogue, filter_table
from book.explorer.page import digits
from inferlib import papers
from tokenprice.catalog import same_shapes

ARTICLE = re.compile(r"(?s)<article[^>]*>(.*)</article>")
# Parts that are not searched: code, drawings, popovers, marks beside headings.
SILENT = re.compile(
    r"(?s)<(script|style|svg|noscript|select|button)\b.*?</\1>|<div popover.*?</div></td>|"
    r'<a class="headerlink".*?</a>|<div class="highlight-ipython3.*?</pre>|<p class="stamp">.*?</p>'
)
# Elements that a result can link to.
PLACE = re.compile(
    r'<(?:section|div class="(?:entry|citation)"|dt)(?= )[^>]*? id="(?!\w+-content)([^"]+)"[^>]*>'
)
HEADING = re.compile(r"(?s)^\s*(?:<span[^>]*></span>\s*)*<h[1-6][^>]*>(.*?)</h[1-6]>")
ENTRY = re.compile(r"(?s)^\s*(?:<p>(.*?), |<dt[^>]*>(.*?) <a |(.*?)</(?:dt|span)>)")
BREAKS = re.compile(r"(?i)<(?=/?(?:p|li|td|th|tr|div|dd|dt|h\d|br|math|summary|figcaption|pre)\b)")
# Styles and scripts that the search page, without code, explorers or figures, does not need.
NEEDLESS = re.compile(
    r"<(?:link|script)\b[^>]*(?:mystnb|copybutton|clipboard|togglebutton|proof|exercise|thebe|pygments)[^>]*>"
    r"(?:</script>)?"
)
SEARCHES = ("searchindex.js", "_static/searchtools.js", "_static/language_data.js")


def words(markup):
    """Return the visible text of HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", BREAKS.sub(" <", markup))).split())


def sections(page, text):
    """Return the search rows of a page: title with address, and text."""
    found = ARTICLE.search(text)
    parts = PLACE.split(SILENT.sub(" ", found[1])) if found else [""]
    rows, chapter, above = [], "", ""
    for anchor, part in zip(parts[1::2], parts[2::2], strict=True):
        heading = HEADING.match(part)
        if heading:
            above = words(heading[1])
            chapter = chapter or above
            title, part = above if above == chapter else f"{chapter} · {above}", part[heading.end() :]
        else:
            entry = ENTRY.match(part)
            title = f"{chapter} · {above}: {words(next(filter(None, entry.groups()), '')) if entry else ''}"
        rows.append([[title, f"{page}#{anchor}"], words(part)])
    return rows


def printed(text):
    """Return search rows of what the sources print, one per table, figure or section, from the scorecard's page."""
    found = re.search(r'\((\{"[^\n]*?"rows".*?\})\);</script>', text)
    card = json.loads(found[1].replace("<\\/", "</")) if found else {"rows": ()}
    places = {}
    for source, place, what, kind, value, *_ in card["rows"]:
        if kind not in ("claim", "identity"):
            name, at = place if isinstance(place, list) else (place, None)
            address = "scorecard.html" if at is None else card["links"][at]
            places.setdefault((f"{source} prints, {name}", f"book/{address}"), []).append(f"{what}: {value}")
    return [[list(place), "; ".join(rows)] for place, rows in places.items()]


# Names of the catalogue's columns in the search.
CALLED = {
    "active": "active parameters, billions", "cache": "KiB of cache per token", "memory": "memory, GB",
    "bandwidth": "memory bandwidth, TB/s", "usd/h": "price, dollars an hour",
}  # fmt: skip


def listed():
    """Return search rows of the catalogue, one per model and chip."""
    rows, also = [], {}
    for other, shape in same_shapes().items():
        also.setdefault(shape["like"], []).append(other)
    for anchor, frame in (("models", catalogue.models()), ("chips", catalogue.chips())):
        for name, *values in frame.itertuples(index=False, name=None):
            told = [f"of the same shape: {', '.join(also[name])}"] if name in also else []
            told += (
                f"{CALLED.get(column, column)}: {digits(value) if isinstance(value, float) else value or 'none'}"
                for column, value in zip(frame.columns[1:], values, strict=True)
            )
            rows.append([[f"Catalogue, {name}", f"book/catalogue.html#{anchor}"], "; ".join(told)])
    return rows


def pages(text):
    """Return the pages listed in the contents, in order: chapters, and records below their stories."""
    return list(dict.fromkeys(re.findall(r'toctree-l\d[^>]*>\s*<a [^>]*href="(book/[\w.]+\.html)"', text)))


def search(app, exception):
    """Write the search into its page, in place of Sphinx's."""
    root = Path(app.outdir)
    page = root / "search.html"
    if exception or app.builder.name != "html" or not page.exists():
        return
    text = page.read_text("utf-8")
    # among equally good matches the first row wins: definitions, printed numbers, then pages in order
    found = {name: sections(name, (root / name).read_text("utf-8")) for name in pages(text)}
    rows = [*listed(), *found.pop("book/notation.html", [])]
    rows += printed((root / "book/scorecard.html").read_text("utf-8"))
    rows += [row for own in found.values() for row in own]
    own = f'<div class="bd-search-container"><h1>Search</h1>{filter_table.of_book(rows)}</div>'
    text = re.sub(r'(?s)<div class="bd-search-container">.*?</script>', lambda _: own, NEEDLESS.sub("", text))
    page.write_text(text, "utf-8")
    for name in SEARCHES:
        (root / name).unlink(missing_ok=True)


NUMBERED = re.compile(r"(?:\b(\w+)['’]s )?[Ee]quation (\d+)")


def numbered(app, doctree, docname):
    """Link "equation 8" in a source's chapters, and "LIMINAL's equation 8" anywhere, to that equation."""
    if app.builder.name != "html":
        return
    register = app.env.get_doctree("book/equations")
    shown = " ".join(raw.astext() for raw in register.findall(nodes.raw))
    known = set(re.findall(r'id="(eq-\S+?)"', shown))
    stem = docname.split("/")[-1]
    keys = {papers.label(key).split()[0]: key for key in papers.sources()}
    own = next((key for key in keys.values() if stem.startswith(key)), None)
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.paragraph | nodes.emphasis | nodes.strong):
            continue
        made, end = [], 0
        for match in NUMBERED.finditer(text):
            name = f"eq-{keys.get(match[1], own)}-{match[2]}"
            if name in known:
                at = match.start(2) - len("equation ")
                says = text[at : match.end()]
                link = nodes.reference("", says, refuri=f"equations.html#{name}", internal=True)
                made += [nodes.Text(text[end:at]), link]
                end = match.end()
        if made:
            text.parent.replace(text, [*made, nodes.Text(text[end:])])


def setup(app):
    app.connect("doctree-resolved", numbered)
    # after the pages are finished
    app.connect("build-finished", search, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
