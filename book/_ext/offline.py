"""Sphinx extension: a built book that asks nothing of any other host."""

from __future__ import annotations

import shutil
from importlib.metadata import files
from pathlib import Path

# The package holds all of MathJax, 24 MB; these pages load this much of it, 2 MB.
MATHJAX_PARTS = ("tex-mml-chtml.js", "output/chtml/fonts/woff-v2/", "input/tex/extensions/")


def copy_mathjax(app, exception):
    """Put the parts of MathJax that the pages load beside the book's other static files."""
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir, "_static", "mathjax")
    for file in files("sphinx-mathjax-offline"):
        part = file.as_posix().partition("/static/mathjax/")[2]
        if part.startswith(MATHJAX_PARTS):
            copy = target / part
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), copy)


def drop_thebe(app, pagename, templatename, context, doctree):
    """Leave out Thebe, which Jupyter Book loads unasked.

    It needs a remote kernel, and its settings come out twice, which throws on every page.
    """

    def is_thebe(script):
        body = getattr(script, "attributes", {}).get("body") or ""
        return "THEBE_JS_URL" in body or "sphinx-thebe" in str(getattr(script, "filename", script))

    context["script_files"] = [s for s in context.get("script_files", ()) if not is_thebe(s)]


def setup(app):
    # After every extension has added its scripts.
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
