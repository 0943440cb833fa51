"""Sphinx extension: the whole book as one page for printing, and as an ePub.

It adds what Jupyter Book's other builders lack.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup
from docutils import nodes

# Parts that need scripts or a screen.
DEAD = "script, noscript, style, input, select, button[data-act], .said, [popover], svg:not(:has(*))"
# XHTML needs the SVG namespace and capitals in attributes, which the HTML parser loses.
SVG = {"xmlns": "http://www.w3.org/2000/svg", "xmlns:xlink": "http://www.w3.org/1999/xlink", "role": "img"}
CAPITALS = {name.lower(): name for name in ("viewBox", "preserveAspectRatio", "textLength", "lengthAdjust")}


def share_handlers(app):
    """Let the other builders use what extensions registered for HTML.

    If an extension registers a node for 'singlehtml', that hides every handler registered for 'html' only.
    """
    handlers = app.registry.translation_handlers
    for name in ("singlehtml", "epub"):
        if name in handlers:
            handlers[name] = {**handlers.get("html", {}), **handlers[name]}


def still(text):
    """Return a cell's HTML for a reader without scripts, as valid XML."""
    soup = BeautifulSoup(text, "html.parser")
    for dead in soup.select(DEAD):
        dead.decompose()
    for empty in soup.select(".control, .acts, label"):
        empty.decompose()
    for button in soup.select("button"):
        button.unwrap()
    for link in soup.select("a[href]"):
        if re.search("#[^?]*[?]", link["href"]):  # sets an explorer's state, which needs a script
            link.unwrap()
        elif not link["href"].startswith("http"):
            link["href"] = link["href"].replace(".html", ".xhtml", 1)
    for picture in soup.select("svg"):
        picture.attrs |= SVG
        for part in (picture, *picture.find_all()):
            part.attrs = {CAPITALS.get(name, name): value for name, value in part.attrs.items()}
        for link in picture.select("a:not(:has(title))"):
            title = soup.new_tag("title")
            title.string = link.get("aria-label") or link.get_text(" ", strip=True) or "source"
            link.insert(0, title)
    for cell in soup.select("[halign], [valign]"):  # attributes that pandas writes and HTML does not allow
        cell.attrs = {name: value for name, value in cell.attrs.items() if name not in ("halign", "valign")}
    return soup.decode(formatter="minimal")


def style_page(app, pagename, templatename, context, doctree):
    """Give a page of the ePub its only style sheet."""
    if app.builder.name == "epub":
        context["css_files"] = [sheet for sheet in context["css_files"] if "epub" in str(sheet.filename)]


def settle(app, doctree, docname):
    """Replace dead links by their text; in an ePub, show explorers with their initial numbers."""
    if app.builder.name not in ("singlehtml", "epub"):
        return
    # pages that are not in a book of the stories only, and slide decks
    for link in list(doctree.findall(nodes.reference)):
        inside = (child for child in link.children if isinstance(child, nodes.Element))
        if "sets" in link["classes"] or any("xref" in child.get("classes", ()) for child in inside):
            link.parent.replace(link, link.children)
    for raw in list(doctree.findall(nodes.raw)):
        if "../slides/" in raw.astext():
            raw[:] = [nodes.Text(re.sub(r' href="../slides/[^"]*"', "", raw.astext()))]
    if app.builder.name != "epub":
        return
    for raw in list(doctree.findall(nodes.raw)):
        if "html" in raw.get("format", ""):
            # the two ends of an inline link are nodes of their own; the text stays
            alone = re.fullmatch(r"</?a\b[^>]*>", raw.astext().strip())
            raw[:] = [nodes.Text("" if alone else still(raw.astext()))]


def setup(app):
    app.connect("builder-inited", share_handlers)
    app.connect("doctree-resolved", settle)
    app.connect("html-page-context", style_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
