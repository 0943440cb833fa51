"""Sphinx extension: page metadata for search engines and link previews.

Every page has title and description. Addresses follow from ``repository: url`` in ``_config.yml``: while it is empty,
there is no canonical address, no sitemap and no preview image, which need a full address.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

LONGEST = 200  # characters of a description that previews show
PICTURE = "_static/calculator.png"


def pages_of(repository):
    """Return the address at which a repository's pages are served, if it is on GitHub.

    Examples
    --------
    >>> pages_of("https://github.com/owner/name")
    'https://owner.github.io/name/'
    """
    found = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+?)(?:\.git)?/?", repository or "")
    return f"https://{found[1].lower()}.github.io/{found[2]}/" if found else ""


def address(app, config):
    """Set the book's address before the theme writes canonical links."""
    if not config.html_baseurl:
        config.html_baseurl = pages_of(config.html_theme_options.get("repository_url"))


def description(doctree):
    """Return the first paragraph of a page, no longer than previews show."""
    from docutils import nodes

    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40:
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"
    return ""


def tags(config, pagename, title, told, pictured):
    """Return the metadata tags of one page."""
    found = {"og:type": "article", "og:site_name": config.project, "og:title": title}
    if told:
        found["og:description"] = told
    if config.html_baseurl:
        found["og:url"] = f"{config.html_baseurl}{pagename}.html"
        if pictured:
            found["og:image"] = config.html_baseurl + PICTURE
    lines = [f'<meta property="{name}" content="{html.escape(text)}" />' for name, text in found.items()]
    if told:
        lines.append(f'<meta name="description" content="{html.escape(told)}" />')
    return "\n".join(lines)


def describe(app, pagename, templatename, context, doctree):
    """Put the tags into the head of a page."""
    if doctree is None or app.builder.name != "html":
        return
    title = re.sub("<[^>]*>", "", context.get("title", ""))
    pictured = (Path(app.srcdir) / "book" / PICTURE).exists()
    made = tags(app.config, pagename, html.unescape(title), description(doctree), pictured)
    context["metatags"] = f"{context.get('metatags', '')}\n{made}\n"


def sitemap(app, exception):
    """List every page for search engines."""
    base = app.config.html_baseurl
    if exception or app.builder.name != "html" or not base:
        return
    urls = [f"<url><loc>{html.escape(base + name)}.html</loc></url>" for name in sorted(app.env.found_docs)]
    schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{schema}">\n' + "\n".join(urls)
    Path(app.outdir, "sitemap.xml").write_text(text + "\n</urlset>\n", "utf-8")
    robots = f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n"
    Path(app.outdir, "robots.txt").write_text(robots, "utf-8")


def setup(app):
    app.connect("config-inited", address)
    app.connect("html-page-context", describe)
    app.connect("build-finished", sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
