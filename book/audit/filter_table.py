"""Search and filter in the page without a kernel: tables of rows, or existing elements of the page."""

import base64
import gzip
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
        menus = [
            (name, columns.index(name), sorted(set(map(_shown, self.frame[name])), key=_natural))
            for name in self.filters
        ]
        # many rows link to one place, so each address is stored once
        addresses = dict.fromkeys(a for one in self.links.values() for a in one)
        places = {address: k for k, address in enumerate(addresses)}
        rows = [[[c[0], places[c[1]]] if isinstance(c, list) else c for c in row] for row in self.rows()]
        config = {"rows": rows, "links": list(places), "numbers": numbers, "page": self.page, "noun": "rows"}
        return _box(self.title, config, menus, columns)

    def __repr__(self):
        return f"Finder({self.title!r}, {len(self.frame)} rows of {', '.join(map(str, self.frame))})"


def of_page(selector, menus, title):
    """Return HTML that filters elements of the page, chosen by a CSS selector, by their text and by menus.

    A menu is a ``data-`` attribute of the elements, or the heading above them if they have no such attribute.
    """
    config = {"of": f":is({selector})", "noun": "entries"}
    # wait until the entries further down the page exist
    start = 'addEventListener("DOMContentLoaded",()=>'
    return _box(title, config, [(name, None, ()) for name in menus], (), start)


def of_book(rows):
    """Return HTML of the book's search; each row is title, address and text, compressed because there are many."""
    packed = base64.b64encode(gzip.compress(_json(rows).encode(), 9, mtime=0)).decode()
    unpacked = (
        f'new Response(new Blob([Uint8Array.from(atob("{packed}"),(c)=>c.charCodeAt(0))]).stream()'
        '.pipeThrough(new DecompressionStream("gzip"))).json()'
    )
    config = {"ranked": True, "page": 20, "noun": "sections"}
    heads = "section", "what it says"
    return _box("Search the book", config, (), heads, f"{unpacked}.then((rows)=>", ",rows")


def _box(title, config, menus, heads, start="", also=""):
    """Return the HTML of a filter; ``menus``: name, column of a table or None, and values."""
    identity = _identity(title, config, "finder")
    return stored.filled(
        "audit/filter_table.jinja", id=identity, title=title, menus=menus, heads=heads, start=start,
        runtime=stored.text("audit/filter_table.js").strip(),
        data=f"{_json(config | {'id': identity})[:-1]}{also}}}",
    )  # fmt: skip


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
