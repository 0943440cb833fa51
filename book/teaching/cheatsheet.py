"""Formulas of the cheat sheet: an equation, typeset, with its symbols and its value for some inputs."""

from IPython.display import Markdown

from book.teaching import slides
from book.teaching.problems.bank import say


def formula(unit, function, *inputs, **named):
    """Return an equation with the meanings of its source's symbols, and its value for some inputs.

    ``unit``: unit of the value.

    Examples
    --------
    >>> from inferlib import load_model
    >>> from inferlib.papers import pope2022
    >>> small = pope2022.load_model(load_model("Llama 3.2 1B"))
    >>> formula("1", pope2022.parameters, small).data.split("**")[1]
    '1.2 billion'
    """
    equation = function.equation
    text = equation._repr_markdown_()
    letters, _ = slides.symbols_of(equation.source, text)
    value = float(function(*inputs, **named))
    number = f"{value / 1e9:.1f} billion" if unit == "1" and value > 1e9 else say(value, unit)
    return Markdown(
        f'{text}\n\n<span class="formula">**{number}**</span> with these inputs. Here {letters}.\n'
    )
