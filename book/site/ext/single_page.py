"""Sphinx extension: what the builder of one page for printing lacks."""

from __future__ import annotations

import re

from docutils import nodes


def share_handlers(app):
    """Let the builder of one page use what extensions registered for HTML.

    If an extension registers a node for 'singlehtml', that hides every handler registered for 'html' only.
    """
    handlers = app.registry.translation_handlers
    if "singlehtml" in handlers:
        handlers["singlehtml"] = {**handlers.get("html", {}), **handlers["singlehtml"]}


def settle(app, doctree, docname):
    """Replace dead links by their text."""
    if app.builder.name != "singlehtml":
        return
    # pages that are not in a book of the stories only, and slide decks
    for link in list(doctree.findall(nodes.reference)):
        inside = (child for child in link.children if isinstance(child, nodes.Element))
        if "sets" in link["classes"] or any("xref" in child.get("classes", ()) for child in inside):
            link.parent.replace(link, link.children)
    for raw in list(doctree.findall(nodes.raw)):
        if "../slides/" in raw.astext():
            raw[:] = [nodes.Text(re.sub(r' href="../slides/[^"]*"', "", raw.astext()))]


def setup(app):
    app.connect("builder-inited", share_handlers)
    app.connect("doctree-resolved", settle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
