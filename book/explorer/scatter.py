"""Scatter plots with menus: dots that link to their sources, a model's lines, and the point that meets an SLO."""

import json
from dataclasses import field
from math import log10

from book.explorer.page import _identity, _json, _shared, boxed
from book.explorer.static_start import paint_svg
from inferlib.equation import frozen


@frozen
class Menu:
    """A menu of labels; with ``any`` the first label filters nothing."""

    key: str
    label: str
    options: list
    any: bool = False


@frozen
class Scatter:
    """Dots, and lines if a model draws some.

    ``x`` and ``y`` are lists of axes (label, low, high; ``right`` if a line marks correct answers); the menu named in
    ``by`` chooses one. A dot has values for each axis (``x``, ``y``), its option in every menu that filters it (``f``),
    a title, an address and a colour. A line has points, and factors of its interval. ``asks`` maps each menu to the
    name that each of its options has in a link to the calculator. The same script draws the initial state at build
    time.
    """

    title: str
    menus: list
    x: list
    y: list
    dots: list
    by: dict = field(default_factory=dict)
    lines: list | None = None
    prices: list | None = None
    sliders: list = field(default_factory=list)
    key: dict = field(default_factory=dict)
    asks: dict | None = None

    def spec(self):
        """Return the data for the script; addresses shared by many dots are stored once."""
        urls = sorted({dot["u"] for dot in self.dots})
        dots = [dot | {"u": urls.index(dot["u"])} for dot in self._placed(self.dots)]
        menus, lines = [vars(menu) for menu in self.menus], self.lines and self._placed(self.lines)
        return vars(self) | {"menus": menus, "lines": lines, "dots": dots, "urls": urls}

    def _placed(self, ones):
        return [one | {"f": [one["f"].get(menu.key) for menu in self.menus]} for one in ones]

    def drawn(self, **state):
        """Return the picture and the text of a state, as the page shows them."""
        from py_mini_racer import MiniRacer

        start = {menu.key: 0 for menu in self.menus} | {one["key"]: one["start"] for one in self.sliders}
        call = f"inferlibScatterDrawn({_json(self.spec())},{_json(start | state)})"
        return json.loads(
            MiniRacer().eval(f"{_shared('shared.js')}{_shared('scatter.js')};JSON.stringify({call})")
        )

    def _repr_html_(self):
        identity = _identity(self.title, self.spec(), "scatter")
        start = self.drawn()
        call = f"inferlibScatter({_json(self.spec() | {'id': identity})});"
        return boxed(
            "scatter", identity, self.title, ("shared.js", "scatter.js"), call, menus=self.menus,
            sliders=self.sliders, key=self.key, picture=paint_svg(start["svg"]), said=start["said"], log10=log10,
        )  # fmt: skip

    def __repr__(self):
        return f"Scatter({self.title!r}, {len(self.dots)} dots, menus: {', '.join(menu.key for menu in self.menus)})"
