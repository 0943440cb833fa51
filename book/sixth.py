"""What the sixth model says where a story gives a bound."""

import tokenprice


class Text:
    """Markdown that a cell shows, and its words where nothing is rendered."""

    def __init__(self, markdown):
        self.markdown = markdown

    def __repr__(self):
        return self.markdown

    def _repr_markdown_(self):
        return self.markdown


def says(model, machine, work):
    """One sentence: its time of the same step, with its interval.

    ``model``, ``machine``: as :func:`tokenprice.ask` takes them.
    """
    found = tokenprice.ask(model, machine, batch=work.batch, context=work.context)
    middle, low, high = (f"{1e3 * seconds:.1f}" for seconds in (found.seconds, found.low, found.high))
    return Text(
        f"*[The sixth model](sixth_model.ipynb), which is fitted to measurements, says {middle} ms for the same step "
        f"({low} to {high} in {100 * found.confidence:.0f} % of cases).*"
    )
