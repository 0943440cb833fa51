"""Sphinx extension: changes to the pages that Jupyter Book makes from notebooks.

One copy of what all explorers share, icons without their 1.5 MB script, figures that load lazily and can be saved, the
commit of a page, and no launch buttons until the repository's address is set.
"""

from __future__ import annotations

import html
import re
import subprocess
from functools import cache
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from docutils.transforms import Transform
from sphinx import addnodes

from book import prose_numbers
from book.audit import filter_table

# Every explorer has its style and runtime, so that it works in a notebook; a page needs them once. The same holds
# for explanations of numbers, which two cells may share.
SHARED = re.compile(
    r"<style>\.inferlib.*?</style>|<script>window\.inferlib.*?</script>|<div popover.*?</div>(?=</td>)", re.S
)
# What pages load without need: the script of icons, which the theme's style sheet draws from a font; Sphinx's search,
# replaced by book/site/ext/search.py; cards, grids and tabs, which the book does not use; and Thebe, which needs a
# remote kernel, and whose settings are written twice, an error on every page.
UNUSED = re.compile(
    r"\s*<(?:link|script)\b[^>]*(?:fontawesome\.js|searchtools|language_data|searchindex|sphinx-design|design-tabs"
    r"|sphinx-thebe)[^>]*>(?:</script>)?|\s*<script>[^<]*THEBE_JS_URL[^<]*</script>"
)

# Accessible names of buttons and folds that override their visible text.
NAMED = re.compile(
    r'(<(?:button class="btn search-button-field|summary)[^>]*?) aria-label="(?:Search|Toggle[^"]*)"'
)
# Folds of the contents show only an icon and have no name.
UNNAMED = '<summary><span class="toctree-toggle"'
# every exercise and solution would have the same id
REPEATED = re.compile(r' id="(?:exercise|solution)-content"')
# The book's title is outside of all landmarks.
TITLE = re.compile(r'<div( class="sidebar-primary-item">\s*<a class="navbar-brand)')
# The 256 colours of a terminal, each as text and as background: 33 kB that no output of the book uses.
COLOURS = re.compile(r"div\.highlight \.-Color\[class\*=-\w+\][^}]*\}\s*")


def once(body):
    """Keep only the first copy of each style and runtime on a page."""
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
    """Return the output of a git command in the book's folder; ``""`` without git."""
    try:
        done = subprocess.run(["git", *command], capture_output=True, text=True, cwd=Path(__file__).parent)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def stamp(source):
    """Return a text with the commit that stored a page's outputs, and the commit it was built from."""
    built = git("log", "-1", "--format=%h of %cs")
    if not built:
        return "Built outside of a repository: no commit is known."
    stored = git("log", "-1", "--format=%h of %cs", "--", str(source))
    if not stored or git("status", "--porcelain", "--", str(source)):
        return f"Outputs not committed yet. Built from commit {built}."
    what = "Executed, compared and stored" if source.suffix == ".ipynb" else "Written"
    return f"{what} in commit {stored}. Built from commit {built}."


FIGURE = re.compile(
    r'(?s)(<figure[^>]*>(?:(?!</figure>).)*?<img[^>]*src="([^"]*_images/[^"]*\.svg)"[^>]*>.*?)(</figcaption>)'
)


def downloads(body):
    """Add a link under each figure that saves it."""
    return FIGURE.sub(r'\1<a class="save" href="\2" download>SVG</a>\3', body)


# Parts that do not count towards the minutes: exercises, folds, what is gathered from above, drawings, scripts.
UNREAD = ".exercise, .solution, .stamp, .takeaways, .dropdown, details, [popover], script, style, svg"
MINUTES = {"[data-slug]": 3, "div.math": 0.7, "figure": 0.5}


def minutes(body):
    """Estimate minutes to read a chapter: 3 per explorer, 0.7 per equation, 0.5 per figure, and 200 words a minute.

    Examples
    --------
    >>> minutes("<p>" + 1000 * "word " + "</p>" + 10 * "<figure></figure>" + "<details>folded</details>")
    10
    """
    page, found = BeautifulSoup(body, "html.parser"), 0.0
    for part in page.select(UNREAD):
        part.decompose()
    for kind, each in MINUTES.items():
        found += each * len(page.select(kind))
    for part in page.select("[data-slug], div.math"):
        part.decompose()
    found += len(page.get_text(" ").split()) / 200
    return max(5, 5 * round(found / 5))


TAKEAWAYS = '<p class="admonition-title">Takeaways</p>'


def timed(body):
    """Add the reading time below the title of a story (a page with takeaways)."""
    if TAKEAWAYS not in body:
        return body
    return body.replace("</h1>", f'</h1>\n<p class="minutes">About {minutes(body)} minutes</p>', 1)


# One switch per page for all folded code, without a script; each cell also has a small mark.
SWITCH = (
    '<p class="minutes code-switch"><label><input type="checkbox" id="all-code" autocomplete="off"> '
    "show the code</label></p>"
)
CODE = '<details class="admonition hide above-input">'
SHOWN = '<p class="collapsed">‹›</p><p class="expanded">‹›</p>'
MARK = f'<summary aria-label="Code" title="the code of this">{SHOWN}</summary>'
SUMMARY = re.compile(rf"(?s){CODE}\n<summary.*?</summary>")


def switched(body):
    """Add the switch below the title, and a mark for each cell with folded code."""
    if CODE not in body:
        return body
    body = SUMMARY.sub(f"{CODE}\n{MARK}", body)
    return body.replace("</h1>", f"</h1>\n{SWITCH}", 1)


ROW_OF_HEADS = re.compile(r"(?s)(<tr[^>]*>\s*)((?:<th(?:\s[^>]*)?>\s*</th>\s*)*)(.*?</tr>)")
EMPTY_HEAD = re.compile(r"<th((?:\s[^>]*)?)>\s*</th>")


def headed(body):
    """Name the empty header cells at the left of tables for screen readers; turn other empty ones into plain cells."""

    def named(match):
        names = iter(("row", "column", "part"))
        hidden = '<span class="visually-hidden">{}</span>'
        left = EMPTY_HEAD.sub(
            lambda head: f"<th{head[1]}>{hidden.format(next(names, 'part'))}</th>", match[2]
        )
        return match[1] + left + EMPTY_HEAD.sub(r"<td\1></td>", match[3])

    return ROW_OF_HEADS.sub(named, body)


def finish(app, pagename, templatename, context, doctree):
    """Change a page before it is written."""
    if "body" not in context:
        return
    body = REPEATED.sub("", filtered(context["body"], context.get("title", "")))
    body = UNDATED.sub(r"\1\2\3", body)
    context["body"] = headed(once(body))
    source = app.env.doc2path(pagename) if doctree is not None else ""
    if app.builder.name == "html":
        context["body"] = answered(app, context["body"], context["pathto"])
        if source:
            context["body"] = timed(downloads(switched(context["body"])))
    if source:
        text = html.escape(stamp(Path(source)))
        context["body"] += f'\n<p class="stamp">{text}</p>\n'


KNOWN = re.compile(r"(?s)<script>(window\.inferlibKnown=.*?)</script>")


# On a slide of the course, a page is shown without navigation. A presenter's remote still turns the slide after
# a click into the page.
SLIDE = """<script>if(location.search==="?slide"){document.documentElement.classList.add("slide");
addEventListener("keydown",(e)=>{if(e.key.startsWith("Page")){e.preventDefault();parent.postMessage({turn:e.key},"*")}})}
</script>"""


def answered(app, body, pathto):
    """Move the kernel model's functions into a file that a page fetches when an explorer asks the model."""

    def script(name):
        return f'<script src="{pathto(f"_static/{name}", 1)}"></script>'

    if found := KNOWN.search(body):
        file = Path(app.outdir) / "_static" / "kernel_model.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(found[1], "utf-8")
        body = SLIDE + body[: found.start()] + script(file.name) + body[found.end() :]
    return script("beside.js") + body if 'class="asked"' in body else body


# Web pages have no year: show the title instead of "NVIDIA, n.d.".
UNDATED = re.compile(r'(<a [^>]*title="[^"]*?\. ([^"]*?)\. n\.d\.[^"]*">)[^<]*n\.d\.(</a>)')
FILTER = re.compile(r'<div class="finder" data-of="([^"]*)" data-menus="([^"]*)"></div>')


def filtered(body, title):
    """Replace an empty element that asks for a filter by a filter of the page's entries."""
    return FILTER.sub(lambda box: filter_table.of_page(box[1], box[2].split(), f"Search: {title}"), body)


class Numbers(Transform):
    """Show each number bound to an expression as the chapter computed it, and drop the comment."""

    default_priority = 4

    def apply(self):
        path = Path(self.document.get("source") or "")
        if path.suffix == ".ipynb":
            say_numbers(self.document, iter(prose_numbers.stored(path.stem)))


def say_numbers(document, computed):
    """Replace the number before each expression comment by the next one that the chapter ``computed``."""
    for comment in list(document.findall(nodes.raw)):
        if not prose_numbers.MARKS.fullmatch(comment.astext()):
            continue
        parent, at = comment.parent, comment.parent.index(comment)
        parent.remove(comment)
        if not prose_numbers.COMMENT.match(comment.astext()):
            continue
        first = at
        while first and isinstance(parent[first - 1], nodes.Text):  # docutils makes one text node per line
            first -= 1
        text = "".join(line.astext() for line in parent[first:at]).replace("\n", " ")
        written, (said, _) = prose_numbers.read(text)[0], next(computed, (None, None))
        if said and said != written:
            parent[first:at] = [nodes.Text(text[: -len(written)] + said)]


class Takeaways(Transform):
    """Gather all boxes titled "Takeaway" in one list, in the box of class ``takeaways``."""

    default_priority = 860  # before links are resolved

    def apply(self):
        boxes = [box for box in self.document.findall(nodes.admonition) if box[0].astext() == "Takeaway"]
        for gathered in self.document.findall(nodes.admonition):
            if "takeaways" in gathered["classes"]:
                items = [nodes.list_item("", *(part.deepcopy() for part in box[1:])) for box in boxes]
                gathered[1:] = [nodes.bullet_list("", *items)]


class Headings(Transform):
    """Turn second-level headings in a cell's output into sections, which appear in the contents and have addresses."""

    default_priority = 5

    def apply(self):
        for output in reversed(list(self.document.findall(nodes.container))):
            if "cell_output" not in output["classes"]:
                continue
            cell, sections = output.parent, []
            for bundle in list(output):
                kinds = (kind for kind in bundle if isinstance(kind, nodes.container))
                shown = next((kind for kind in kinds if kind.get("mime_type") == "text/markdown"), None)
                if not shown or not isinstance(shown[0], nodes.rubric):
                    continue
                title = nodes.title("", "", *shown[0].children)
                inside = nodes.container("", *shown[1:], classes=output["classes"])
                section = nodes.section("", title, nodes.container("", inside, classes=cell["classes"]))
                section["ids"], section["names"] = shown[0]["ids"], shown[0]["names"]
                self.document.ids.update(dict.fromkeys(section["ids"], section))
                sections.append(section)
                output.remove(bundle)
            if sections:
                chapter = self.document.next_node(nodes.section)
                before = cell if cell.parent is chapter else cell.parent
                chapter.insert(chapter.index(before) + 1, sections)


class Words(Transform):
    """Give every term of a definition list an address."""

    default_priority = 5

    def apply(self):
        for term in self.document.findall(nodes.term):
            name = nodes.make_id(term.astext())
            if not term["ids"] and f"word-{name}" not in self.document.ids:
                term["ids"].append(f"word-{name}")
                self.document.ids[f"word-{name}"] = term


class Links(Transform):
    """Links to notebook cells, `[the record](x_record.ipynb#cell-id=x-top)`, lead to a place of that name in the page:
    a figure becomes its number, another place an anchor of the book, and a link with a title, `[16
    GPUs](#cell-id=one-layout "n_gpu=16")`, the state of an explorer. A link to the bibliography becomes a citation.
    """

    default_priority = 870  # before MyST looks for anchors

    def apply(self):
        for link in list(self.document.findall(addnodes.pending_xref)):
            place = link.get("reftargetid")
            if place and link["reftarget"].endswith("bibliography"):
                self.become(link, "cite", "p" if link.astext().startswith("(") else "t", place)
            elif place:  # only the notebook needs the file; in the book every place has a unique name
                link.replace_self(nodes.reference("", "", *link.children, refuri=f"#{place}", id_link=True))
        for link in list(self.document.findall(nodes.reference)):
            if not link.get("id_link"):
                continue
            target = link["refuri"].removeprefix("#").removeprefix("cell-id=")
            link["refuri"] = f"#{target}"
            if target.startswith("fig-"):
                self.become(link, "std", "numref", target)
            elif state := link.attributes.pop("reftitle", ""):
                del link["id_link"]
                link["refuri"] += f"?{state}"
                link["classes"], link["internal"] = ["sets"], True

    def become(self, link, domain, kind, target):
        """Replace a link by the result of the role `{domain:kind}` for its target."""
        env = self.document.settings.env
        told = dict(refdomain=domain, reftype=kind, reftarget=target, refdoc=env.docname)
        words = nodes.inline("", link.astext(), classes=["xref", domain, f"{domain}-{kind}"])
        link.replace_self(addnodes.pending_xref("", words, refexplicit=False, refwarn=True, **told))


def launch(app, config):
    """Remove launch buttons until the repository's address is set."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        options.pop("launch_buttons", None)


def lighter(svg):
    """Remove metadata from an SVG, and digits that no screen shows."""
    number = re.compile(r"-?\d+\.\d{3,}")

    def rounded(match):
        path = number.sub(lambda n: f"{float(n.group()):.2f}", match[1])
        return f' d="{" ".join(path.split())}"'

    svg = re.sub(r"(?s)\s*<metadata>.*?</metadata>", "", svg)
    return re.sub(r'(?s) d="([^"]*)"', rounded, svg)


PHONE = 358  # width of a figure on a phone in pixels; a wider figure scrolls, with a style of its own


def patient(page, sizes):
    """Load figures lazily, each with its size reserved."""

    def placed(match):
        width, height = sizes[match[1]]
        wide = ' data-wide=""' if float(width) > PHONE else ""
        return f'<img loading="lazy"{wide} width="{width}" height="{height}"{match[0][4:]}'

    names = "|".join(map(re.escape, sizes))
    return re.sub(rf'<img(?! loading)[^>]*? src="[^"]*_images/({names})"', placed, page)


ICON = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"[^"]*"\}')
GLYPH = re.compile(r'"\\([ef][0-9a-f]{3})"')


def few_icons(static, pages):
    """Keep only the icons that a page, script or style uses, of about 2,000 in the theme's style sheet and font."""
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
    style = style.replace('fa-solid-900.woff2) format("woff2")', 'fa-solid-900.woff) format("woff")')
    sheet.write_text(style, "utf-8")


def tidy(app, exception):
    """Remove the icons' script from pages and source maps from the build, and shrink figures, icons and styles."""
    if exception or app.builder.name not in ("html", "singlehtml"):
        return
    root, sizes = Path(app.outdir), {}
    for drawing in (root / "_images").glob("*.svg"):
        drawn = lighter(drawing.read_text("utf-8"))
        drawing.write_text(drawn, "utf-8")
        size = re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', drawn)
        if size:
            # 96 pixels of a page are 72 points
            sizes[drawing.name] = [round(float(points) * 4 / 3) for points in size.groups()]
    for page in root.rglob("*.html"):
        text = page.read_text("utf-8")
        finished = TITLE.sub(r'<div role="navigation" aria-label="First page"\1', UNUSED.sub("", text))
        finished = NAMED.sub(r"\1", finished)
        finished = finished.replace(
            UNNAMED, UNNAMED.replace("<summary>", '<summary aria-label="Its sections">')
        )
        if sizes:
            finished = patient(finished, sizes)
        if finished != text:
            page.write_text(finished, "utf-8")
    for file in (root / "_static" / "scripts").glob("fontawesome.js*"):
        file.unlink()
    few_icons(root / "_static", [page.read_text("utf-8") for page in root.rglob("*.html")])
    for file in (root / "_static").rglob("*.map"):
        file.unlink()
    for sheet in (root / "_static").glob("mystnb*.css"):
        sheet.write_text(COLOURS.sub("", sheet.read_text("utf-8")), "utf-8")


def records(app, env):
    """Number the figures of records with an R and their story's chapter, and those of unnumbered pages with the page's
    initial, so that every figure number is unique.
    """
    chapters = {page: n[""][0] for page, n in env.toc_secnumbers.items() if n.get("")}
    own = [page for page in env.toc_fignumbers if page.endswith("_record") or page not in chapters]
    pages = [page for page in own if page != env.config.root_doc]
    for page in pages:
        name = f"R{chapters[page]}" if page in chapters else page.rpartition("/")[2][0].upper()
        for figures in env.toc_fignumbers[page].values():
            for count, figure in enumerate(sorted(figures, key=figures.get), 1):
                figures[figure] = (name, count)
    return pages


def setup(app):
    app.add_transform(Links)
    app.add_transform(Numbers)
    app.add_transform(Headings)
    app.add_transform(Takeaways)
    app.add_transform(Words)
    app.connect("env-get-updated", records, priority=900)
    app.connect("config-inited", launch, priority=900)
    app.connect("html-page-context", finish, priority=900)
    app.connect("build-finished", tidy, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
