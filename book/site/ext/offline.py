"""Sphinx extension: a built book that loads nothing from other hosts."""

from __future__ import annotations

# Browsers then refuse to load anything from another host; scripts and styles are inside the pages.
POLICY = "default-src 'self' 'unsafe-inline' data: blob:"
GUARD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'


def guard(app, pagename, templatename, context, doctree):
    """Put the policy before everything that a page loads."""
    if app.builder.name == "html":
        context["metatags"] = GUARD + context.get("metatags", "")


def drop_thebe(app, pagename, templatename, context, doctree):
    """Leave out Thebe, which Jupyter Book loads by default.

    It needs a remote kernel, and its settings are written twice, which raises an error on every page.
    """

    def is_thebe(script):
        body = getattr(script, "attributes", {}).get("body") or ""
        return "THEBE_JS_URL" in body or "sphinx-thebe" in str(getattr(script, "filename", script))

    context["script_files"] = [s for s in context.get("script_files", ()) if not is_thebe(s)]


def setup(app):
    app.connect("html-page-context", guard)
    # after every extension has added its scripts
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
