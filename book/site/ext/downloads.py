"""Sphinx extension: download buttons offer notebooks that any Jupyter shows correctly."""

from pathlib import Path

from book.site.tools.standalone_notebooks import notebook


def rewrite(app, exception):
    """Rewrite the notebooks that pages offer for download."""
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir, "_sources").rglob("*.ipynb"):
            path.write_text(notebook(path.read_text("utf-8")), "utf-8")


def setup(app):
    """Register the extension."""
    app.connect("build-finished", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
