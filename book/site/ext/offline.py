"""Sphinx extension: a built book that asks nothing of any other host."""

from __future__ import annotations

# A browser refuses what a page would ask of another host; scripts and styles stand within the pages.
POLICY = "default-src 'self' 'unsafe-inline' data: blob:"
GUARD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'


def guard(app, pagename, templatename, context, doctree):
    """Put the policy before all that a page loads."""
    if app.builder.name == "html":
        context["metatags"] = GUARD + context.get("metatags", "")


def drop_thebe(app, pagename, templatename, context, doctree):
    """Leave out Thebe, which Jupyter Book loads unasked.

    It needs a remote kernel, and its settings come out twice, which throws on every page.
    """

    def is_thebe(script):
        body = getattr(script, "attributes", {}).get("body") or ""
        return "THEBE_JS_URL" in body or "sphinx-thebe" in str(getattr(script, "filename", script))

    context["script_files"] = [s for s in context.get("script_files", ()) if not is_thebe(s)]


def setup(app):
    app.connect("html-page-context", guard)
    # After every extension has added its scripts.
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
