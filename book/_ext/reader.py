"""Sphinx extension: what the pages need beyond what Jupyter Book makes of the notebooks."""

from __future__ import annotations

import re

# Every explorer brings its style and its runtime, so that it works in a notebook; a page needs each once.
SHARED = re.compile(
    r"<style>\.inferlib.*?</style>|<script>window\.inferlib.*?</script>", re.S
)


def once(body):
    """The page with only the first of each repeated style and runtime."""
    seen = set()

    def keep(match):
        text = match.group()
        if text in seen:
            return ""
        seen.add(text)
        return text

    return SHARED.sub(keep, body)


def finish(app, pagename, templatename, context, doctree):
    """Change the page as it is about to be written."""
    if "body" in context:
        context["body"] = once(context["body"])


def setup(app):
    app.connect("html-page-context", finish, priority=900)
    return {
        "version": "1",
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
