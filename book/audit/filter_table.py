"""Search and filter in the page without a kernel: tables of rows, or existing elements of the page."""

import base64
import gzip
import html
from collections.abc import Mapping
from dataclasses import field
from numbers import Number

from pandas import DataFrame

from book import stored
from book.explorer.page import _identity, _json
from book.style import _digits
from inferlib.equation import frozen


@frozen
class Finder:
    """A table that can be searched and filtered in the page.

    ``title``: for screen readers. ``filters``: columns with a menu of their values (not columns of links). ``links``:
    column to a list of addresses, one per row; empty for none. ``page``: rows shown at once.
    """

    frame: DataFrame
    title: str
    filters: tuple = ()
    links: Mapping = field(default_factory=dict)
    page: int = 40

    def rows(self):
        """Return the cells as stored in the page: text, or a pair of text and address."""
        columns = list(self.frame)
        found = []
        for values in self.frame.itertuples(index=False, name=None):
            cells = [_shown(value) for value in values]
            for name, addresses in self.links.items():
                at = columns.index(name)
                cells[at] = [cells[at], addresses[len(found)]] if addresses[len(found)] else cells[at]
            found.append(cells)
        return found

    def _repr_html_(self):
        columns = list(self.frame)
        numbers = [i for i, name in enumerate(columns) if _numeric(self.frame[name])]
        selects = "".join(self._select(columns, name) for name in self.filters)
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
        # many rows link to one place, so each address is stored once
        addresses = dict.fromkeys(a for one in self.links.values() for a in one)
        places = {address: k for k, address in enumerate(addresses)}
        rows = [[[c[0], places[c[1]]] if isinstance(c, list) else c for c in row] for row in self.rows()]
        config = {"rows": rows, "links": list(places), "numbers": numbers, "page": self.page, "noun": "rows"}
        return _box(self.title, config, selects, f"<thead><tr>{head}</tr></thead>")

    def _select(self, columns, name):
        values = sorted({_shown(value) for value in self.frame[name]}, key=_natural)
        values = map(html.escape, values)
        options = "".join(f'<option value="{v}">{v}</option>' for v in values)
        return _menu(str(name), options, f' data-column="{columns.index(name)}"')

    def __repr__(self):
        return f"Finder({self.title!r}, {len(self.frame)} rows of {', '.join(map(str, self.frame))})"


def of_page(selector, menus, title, noun="entries"):
    """Return HTML that filters elements of the page, chosen by a CSS selector, by their text and by menus.

    A menu is a ``data-`` attribute of the elements, or the heading above them if they have no such attribute.
    """
    config = {"of": f":is({selector})", "noun": noun}
    # wait until the entries further down the page exist
    start = 'addEventListener("DOMContentLoaded",()=>'
    return _box(title, config, "".join(_menu(name, "") for name in menus), "", start)


def of_book(rows):
    """Return HTML of the book's search; each row is title, address and text, compressed because there are many."""
    packed = base64.b64encode(gzip.compress(_json(rows).encode(), 9, mtime=0)).decode()
    unpacked = (
        f'new Response(new Blob([Uint8Array.from(atob("{packed}"),(c)=>c.charCodeAt(0))]).stream()'
        '.pipeThrough(new DecompressionStream("gzip"))).json()'
    )
    config = {"ranked": True, "page": 20, "noun": "sections"}
    head = "<thead><tr><th>section</th><th>what it says</th></tr></thead>"
    return _box("Search the book", config, "", head, f"{unpacked}.then((rows)=>", ",rows")


def _menu(name, options, also=""):
    name = html.escape(name)
    return (
        f'<label>{name} <select data-key="{name}"{also} autocomplete="off"><option value="">all</option>'
        f"{options}</select></label>"
    )


def _box(title, config, selects, head, start="", also=""):
    """Return the HTML of a filter: fields, number of matches, and a table if it has rows of its own."""
    identity = _identity(title, config, "finder")
    runtime = stored.text("audit/filter_table.js").strip()
    data = f"{_json(config | {'id': identity})[:-1]}{also}}}"
    return (
        f'<div class="finder" id="{identity}" data-slug="find" role="search" aria-label="{html.escape(title)}">'
        '<div class="controls"><label>Search <input type="search" data-key="q" autocomplete="off" '
        f'spellcheck="false"></label>{selects}</div>'
        '<div class="readout" role="status" aria-live="polite"></div>'
        f'<table class="readable"{"" if head else " hidden"}>{head}<tbody></tbody></table>'
        '<button type="button">Show more</button>'
        "<noscript>To search here needs JavaScript.</noscript>"
        f"<script>{start}{runtime}({data}){')' if start else ''};</script></div>"
    )


def _shown(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return " to ".join(_shown(v) for v in value)
    if isinstance(value, Number):
        return "" if value != value else _digits(float(value))
    return "" if value is None else str(value)


def _numeric(column):
    values = [value for value in column if value not in ("", None)]
    plain = [isinstance(value, Number) and not isinstance(value, bool) for value in values]
    return bool(plain) and sum(plain) > len(plain) / 2


def _natural(text):
    try:
        return (0, float(text.replace(",", "")), text)
    except ValueError:
        return (1, 0.0, text)
