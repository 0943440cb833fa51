"""A formula of the register as the cheat sheet shows it: typeset, with its letters and its running number."""

from IPython.display import Markdown

from book.teaching import slides
from book.teaching.problems.bank import say


def formula(unit, function, *inputs, **named):
    """An equation with what its source's letters mean, and its number for some inputs.

    ``unit``: in which the number is said.
    """
    equation = function.equation
    text = equation._repr_markdown_()
    letters, _ = slides.symbols_of(equation.source, text)
    value = float(function(*inputs, **named))
    number = f"{value / 1e9:.1f} billion" if unit == "1" and value > 1e9 else say(value, unit)
    return Markdown(
        f'{text}\n\n<span class="formula">**{number}**</span> for the running question. Here {letters}.\n'
    )
