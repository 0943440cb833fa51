"""What a person fills in stands in one place and the rest follows; what previews read; workflows without passwords."""

import re
import runpy
import tomllib
import xml.etree.ElementTree as xml
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PUBLIC = runpy.run_path(str(ROOT / "book" / "site" / "ext" / "page_metadata.py"))
IDENTITY = runpy.run_path(str(ROOT / "book" / "site" / "tools" / "metadata.py"))
WHO, WHERE = ["Ada Lovelace", "Charles Babbage"], "https://github.com/ada/engine"


@pytest.mark.parametrize("name", IDENTITY["FOLLOW"])
def test_authors_and_address_follow_the_one_place(name):
    text = (ROOT / name).read_text("utf-8")
    written = IDENTITY["FOLLOW"][name]
    assert text == written(text, *IDENTITY["load_config"]()), "run python book/site/tools/metadata.py"
    filled = written(text, WHO, WHERE)
    assert all(who in filled for who in WHO if not name.endswith("ipynb"))
    assert filled == written(filled, WHO, WHERE)
    assert written(filled, *IDENTITY["load_config"]()) == text


def test_what_is_filled_in_is_well_formed():
    project = tomllib.loads(IDENTITY["project"]((ROOT / "pyproject.toml").read_text("utf-8"), WHO, WHERE))[
        "project"
    ]
    assert project["authors"] == [{"name": who} for who in WHO] and project["urls"] == {"Repository": WHERE}
    cited = yaml.safe_load(IDENTITY["citation"]((ROOT / "CITATION.cff").read_text("utf-8"), WHO, WHERE))
    assert cited["authors"] == [{"name": who} for who in WHO] and cited["repository-code"] == WHERE
    assert cited["version"] == project["version"] and cited["license"] == project["license"]
    assert yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["title"] == cited["title"]


def config(base):
    return SimpleNamespace(html_baseurl=base, project="The book", html_theme_options={})


def test_addresses_follow_from_the_repository():
    assert PUBLIC["pages_of"](WHERE) == PUBLIC["pages_of"](WHERE + ".git") == "https://ada.github.io/engine/"
    assert PUBLIC["pages_of"]("") == PUBLIC["pages_of"]("https://example.org/ada/engine") == ""
    made = config("")
    made.html_theme_options["repository_url"] = WHERE
    PUBLIC["address"](None, made)
    assert made.html_baseurl == "https://ada.github.io/engine/"


def test_tags_of_a_page():
    tags = PUBLIC["tags"](config("https://ada.github.io/engine/"), "book/price", 'A "price"', "1 < 2", True)
    assert '<meta property="og:url" content="https://ada.github.io/engine/book/price.html" />' in tags
    assert "og:image" in tags and 'content="A &quot;price&quot;"' in tags
    assert '<meta name="description" content="1 &lt; 2" />' in tags
    without = PUBLIC["tags"](config(""), "book/price", "A price", "", True)
    assert "og:url" not in without and "og:image" not in without and "description" not in without


def test_a_description_is_the_first_paragraph_and_ends_at_a_word():
    from docutils import frontend, utils
    from docutils.parsers.rst import Parser

    settings = frontend.get_default_settings(Parser)
    page = utils.new_document("page", settings)
    Parser().parse("Short.\n\n" + "word " * 100, page)
    told = PUBLIC["description"](page)
    assert told.endswith("word …") and len(told) <= 203


def test_sitemap(tmp_path):
    app = SimpleNamespace(
        config=config("https://ada.github.io/engine/"), builder=SimpleNamespace(name="html"), outdir=tmp_path,
        env=SimpleNamespace(found_docs={"book/price", "book/a&b"}),
    )  # fmt: skip
    PUBLIC["sitemap"](app, None)
    found = [place[0].text for place in xml.parse(tmp_path / "sitemap.xml").getroot()]
    assert found == [f"https://ada.github.io/engine/book/{name}.html" for name in ("a&b", "price")]
    assert "Sitemap: https://ada.github.io/engine/sitemap.xml" in (tmp_path / "robots.txt").read_text()
    app.config, app.outdir = config(""), tmp_path / "none"
    PUBLIC["sitemap"](app, None)
    assert not app.outdir.exists()


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem
)
def test_workflows_need_no_password_and_few_rights(path):
    text = path.read_text("utf-8")
    made = yaml.safe_load(text)
    assert made["permissions"] == {"contents": "read"} and "secrets." not in text
    for name, job in made["jobs"].items():
        assert "timeout-minutes" in job, name
        rights = job.get("permissions", {})
        assert set(rights) <= {"pages", "id-token"}, name
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", action) for action in uses), name
        # who may publish runs nothing of the repository
        assert not rights or not any("run" in step for step in job["steps"]), name


def test_targets_of_the_workflows_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text("utf-8")
    assert set(re.findall(r"run: make ([a-z]+)", text)) <= targets
