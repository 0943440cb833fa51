"""Sphinx extension: what the pages need beyond what Jupyter Book makes of the notebooks.

One copy of what all explorers share, icons without their 1.5 MB script, figures that wait for their reader and
can be saved with their data, the commit a page comes from, and no launch buttons while nobody knows where the
repository is.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from functools import cache
from pathlib import Path

from book._tools.still import drawn

# Every explorer brings its style and its runtime, so that it works in a notebook; a page needs each once.
SHARED = re.compile(r"<style>\.inferlib.*?</style>|<script>window\.inferlib.*?</script>", re.S)
# The theme's style sheet draws the same icons from a font; the script only turns them into pictures.
ICONS = re.compile(r"\s*<script[^>]*fontawesome\.js[^>]*></script>")

# Loaded at the head of every page for a search as one types, which is off; the page of search has its own.
SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>')
# Style and script of cards, grids and tabs, of which the book has none (their classes begin with sd-).
CARDS = re.compile(r"\s*<(?:link|script)[^>]*(?:sphinx-design|design-tabs)[^>]*>(?:</script>)?")


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


@cache
def git(*command):
    """What git says of the folder of the book, or nothing where there is no git."""
    try:
        done = subprocess.run(["git", *command], capture_output=True, text=True, cwd=Path(__file__).parent)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def stamp(source):
    """Which commit the outputs of a page were stored in, and which one the page was built from."""
    built = git("log", "-1", "--format=%h of %cs")
    if not built:
        return "Built outside of a repository: no commit is known."
    stored = git("log", "-1", "--format=%h of %cs", "--", str(source))
    if not stored or git("status", "--porcelain", "--", str(source)):
        return f"Outputs not committed yet. Built from commit {built}."
    what = "Executed, compared and stored" if source.suffix == ".ipynb" else "Written"
    return f"{what} in commit {stored}. Built from commit {built}."


FIGURE = re.compile(
    r'(?s)(<figure[^>]*id="([^"]*)"[^>]*>(?:(?!</figure>).)*?'
    r'<img[^>]*src="([^"]*)(_images/[^"]*\.svg)"[^>]*>.*?)(</figcaption>)'
)


def figure_data(source):
    """The data of each figure of a notebook: name to text with commas."""
    if source.suffix != ".ipynb":
        return {}
    found = {}
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        figure = cell["metadata"].get("mystnb", {}).get("figure", {})
        for output in cell.get("outputs", ()):
            if "text/csv" in output.get("data", {}):
                found[figure.get("name")] = "".join(output["data"]["text/csv"])
    return found


def downloads(body, data, folder):
    """Links under each figure that save it, and its data where it shows any."""
    link = '<a class="save" href="{}" download>{}</a>'

    def linked(match):
        start, name, root, image, end = match.groups()
        links = link.format(root + image, "SVG")
        if name in data:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.csv").write_text(data[name], encoding="utf-8")
            links += link.format(f"{root}_data/{name}.csv", "CSV")
        return start + links + end

    return FIGURE.sub(linked, body)


ROW_OF_HEADS = re.compile(r"(?s)(<tr[^>]*>\s*)((?:<th(?:\s[^>]*)?>\s*</th>\s*)*)(.*?</tr>)")
EMPTY_HEAD = re.compile(r"<th((?:\s[^>]*)?)>\s*</th>")


def headed(body):
    """The page with no head of a table empty: those at the left are named for who listens, others are no heads."""

    def named(match):
        names = iter(("row", "column", "part"))
        left = EMPTY_HEAD.sub(
            lambda head: f'<th{head[1]}><span class="visually-hidden">{next(names, "part")}</span></th>',
            match[2],
        )
        return match[1] + left + EMPTY_HEAD.sub(r"<td\1></td>", match[3])

    return ROW_OF_HEADS.sub(named, body)


def finish(app, pagename, templatename, context, doctree):
    """Change the page as it is about to be written."""
    if "body" not in context:
        return
    context["body"] = drawn(headed(once(context["body"])))
    source = app.env.doc2path(pagename) if doctree is not None else ""
    if app.builder.name == "html" and source:
        data, folder = figure_data(Path(source)), Path(app.outdir) / "_data"
        context["body"] = downloads(context["body"], data, folder)
    if source:
        text = html.escape(stamp(Path(source)))
        context["body"] += f'\n<p class="stamp">{text}</p>\n'


def launch(app, config):
    """Launch buttons only where they lead somewhere: once the repository's address is set."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        options.pop("launch_buttons", None)


def lighter(svg):
    """A drawing without the digits that no screen shows, and without metadata."""
    number = re.compile(r"-?\d+\.\d{3,}")

    def rounded(match):
        path = number.sub(lambda n: f"{float(n.group()):.2f}", match[1])
        return f' d="{" ".join(path.split())}"'

    svg = re.sub(r"(?s)\s*<metadata>.*?</metadata>", "", svg)
    return re.sub(r'(?s) d="([^"]*)"', rounded, svg)


def patient(page, sizes):
    """The page with its figures loaded as the reader comes near, each in a place kept for it."""

    def placed(match):
        width, height = sizes[match[1]]
        return f'<img loading="lazy" width="{width}" height="{height}"{match[0][4:]}'

    names = "|".join(map(re.escape, sizes))
    return re.sub(rf'<img(?! loading)[^>]*? src="[^"]*_images/({names})"', placed, page)


ICON = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"[^"]*"\}')
GLYPH = re.compile(r'"\\([ef][0-9a-f]{3})"')


def few_icons(static, pages):
    """Of some two thousand icons in the theme's style sheet and font, those that a page, script or style names."""
    from fontTools import subset, ttLib

    sheet = static / "styles" / "pydata-sphinx-theme.css"
    fonts = static / "vendor" / "fontawesome" / "webfonts"
    named = "".join([*pages, *(script.read_text("utf-8") for script in static.rglob("*.js"))])
    used = set(re.findall(r"\bfa-[a-z0-9-]+", named))

    def kept(match):
        return match[0] if used & set(re.findall(r"fa-[a-z0-9-]+", match[1])) else ""

    style = ICON.sub(kept, sheet.read_text("utf-8"))
    others = [style, *(other.read_text("utf-8") for other in static.rglob("*.css") if other != sheet)]
    glyphs = {int(code, 16) for text in others for code in GLYPH.findall(text)}
    font = ttLib.TTFont(fonts / "fa-solid-900.ttf", recalcTimestamp=False)
    cut = subset.Subsetter()
    cut.populate(unicodes=glyphs)
    cut.subset(font)
    font.flavor = "woff"
    font.save(fonts / "fa-solid-900.woff")
    sheet.write_text(
        style.replace('fa-solid-900.woff2) format("woff2")', 'fa-solid-900.woff) format("woff")'), "utf-8"
    )


def tidy(app, exception):
    """Take the icons' script out of the pages, maps of scripts out of the build, and weight off figures and icons."""
    if exception or app.builder.name not in ("html", "singlehtml"):
        return
    root, sizes = Path(app.outdir), {}
    for drawing in (root / "_images").glob("*.svg"):
        drawn = lighter(drawing.read_text(encoding="utf-8"))
        drawing.write_text(drawn, encoding="utf-8")
        size = re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', drawn)
        if size:
            # 96 pixels of a page are 72 points
            sizes[drawing.name] = [round(float(points) * 4 / 3) for points in size.groups()]
    for page in root.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        finished = ICONS.sub("", text)
        if 'class="sd-' not in finished:
            finished = CARDS.sub("", finished)
        if page.name != "search.html":
            finished = SEARCH.sub("", finished)
        if sizes:
            finished = patient(finished, sizes)
        if finished != text:
            page.write_text(finished, encoding="utf-8")
    for file in (root / "_static" / "scripts").glob("fontawesome.js*"):
        file.unlink()
    few_icons(root / "_static", [page.read_text(encoding="utf-8") for page in root.rglob("*.html")])
    for file in (root / "_static").rglob("*.map"):
        file.unlink()


def setup(app):
    app.connect("config-inited", launch, priority=900)
    app.connect("html-page-context", finish, priority=900)
    app.connect("build-finished", tidy, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
