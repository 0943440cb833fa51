"""A table that a reader searches and filters in the page, with no kernel: rows as JSON, a few lines of JavaScript."""

import html
from importlib.resources import files
from numbers import Number

from inferlib.explorer.page import _identity, _json
from inferlib.style import _digits


class Finder:
    """A searchable table. Make one with :func:`finder`."""

    def __init__(self, frame, filters, links, title, page):
        self.frame, self.filters, self.links, self.title, self.page = (frame, filters, links, title, page)

    def rows(self):
        """The cells as the page holds them: text, or a pair of text and address."""
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
        config = {"rows": self.rows(), "numbers": numbers, "page": self.page}
        identity = _identity(self.title, config, "finder")
        selects = "".join(self._select(identity, columns, name) for name in self.filters)
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
        runtime = (files("book.synthesis") / "finder.js").read_text("utf-8").strip()
        data = _json(config | {"id": identity})
        return (
            f'<div class="finder" id="{identity}" role="group" aria-label="{html.escape(self.title)}">'
            f'<div class="controls"><label>Search <input type="search" autocomplete="off"></label>{selects}</div>'
            '<div class="readout" role="status" aria-live="polite"></div>'
            f'<table class="readable"><thead><tr>{head}</tr></thead><tbody></tbody></table>'
            '<button type="button">Show more</button>'
            "<noscript>This table needs JavaScript; the data are in the notebook.</noscript>"
            f"<script>{runtime}({data});</script></div>"
        )

    def _select(self, identity, columns, name):
        values = sorted({_shown(value) for value in self.frame[name]}, key=_natural)
        options = "".join(
            f'<option value="{html.escape(v, quote=True)}">{html.escape(v)}</option>' for v in values
        )
        at = columns.index(name)
        return (
            f"<label>{html.escape(str(name))} "
            f'<select data-column="{at}" autocomplete="off"><option value="">all</option>{options}</select></label>'
        )

    def __repr__(self):
        return f"Finder({self.title!r}, {len(self.frame)} rows of {', '.join(map(str, self.frame))})"


def finder(frame, *, filters=(), links=None, title, page=40):
    """Show a frame as a table that can be searched and filtered in the page.

    Parameters
    ----------
    frame : pandas.DataFrame
    filters : sequence of str
        Columns with a menu of their values (not a column of links).
    links : dict, optional
        Column to a list of addresses, one a row; empty for none.
    title : str
        What the table is, for readers who do not see it.
    page : int
        Rows shown at once.

    Returns
    -------
    Finder
    """
    links = links or {}
    for name in (*filters, *links):
        if name not in frame:
            raise LookupError(f"no column {name!r} to filter or link; there are {', '.join(map(str, frame))}")
    if set(filters) & set(links):
        raise ValueError(f"a column is filtered or linked, not both: {sorted(set(filters) & set(links))}")
    for name, addresses in links.items():
        if len(addresses) != len(frame):
            raise ValueError(f"{len(addresses)} addresses for the {len(frame)} rows of column {name!r}")
    return Finder(frame, tuple(filters), links, title, page)


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
