"""Sphinx extension: the notebook behind a page's download button is one that a plain Jupyter shows as it should."""

from pathlib import Path

from book.site.tools.standalone_notebooks import notebook


def rewrite(app, exception):
    """Rewrite the notebooks that the pages offer."""
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir, "_sources").rglob("*.ipynb"):
            path.write_text(notebook(path.read_text("utf-8")), "utf-8")


def setup(app):
    """Enter the extension."""
    app.connect("build-finished", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
