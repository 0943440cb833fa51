"""Sphinx extension: a built book that loads nothing from other hosts."""

from __future__ import annotations

# Browsers then refuse to load anything from another host; scripts and styles are inside the pages.
POLICY = "default-src 'self' 'unsafe-inline' data: blob:"
GUARD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'


def guard(app, pagename, templatename, context, doctree):
    """Put the policy before everything that a page loads."""
    if app.builder.name == "html":
        context["metatags"] = GUARD + context.get("metatags", "")


def setup(app):
    app.connect("html-page-context", guard)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
