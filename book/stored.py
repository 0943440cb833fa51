"""Files that lie beside the code of the book, by their place in it: ``serving/judged.toml``."""

import html
import re
import tomllib
from functools import cache
from importlib.resources import files

import pandas as pd


def text(place):
    """Return the text of a file."""
    return (files("book") / place).read_text("utf-8")


@cache
def toml(place, optional=False):
    """Return the content of a TOML file; empty if it is ``optional`` and there is none."""
    return {} if optional and not (files("book") / place).is_file() else tomllib.loads(text(place))


def rows(place, **how):
    """Return the rows of a CSV file; ``how``: options of pandas."""
    return pd.read_csv(files("book") / place, **how)


@cache
def _templates():
    from jinja2 import Environment, FunctionLoader

    def joined(place):
        """Between elements, line ends and indentation of HTML do not count; elsewhere they are a blank."""
        if ".toml" in place:
            return text(place)
        return re.sub(r"\n\s*", " ", re.sub(r"(?<=[>}])\n\s*|\n\s*(?=[<{])", "", text(place)))

    made = Environment(
        loader=FunctionLoader(joined), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    made.filters["e"] = html.escape
    made.filters["numbers"] = lambda values: "[" + ", ".join(f"{value:.4g}" for value in values) + "]"
    return made


def filled(place, **values):
    """Return a template (Jinja) filled with values; in it ``| e`` escapes text for HTML, ``| numbers`` writes TOML."""
    return _templates().get_template(place).render(values)
