"""Tables of rows that a function yields."""

from functools import partial, wraps

import pandas as pd


def frame(*columns):
    """Decorate a function that yields rows, so that it returns a frame with these columns.

    Rows are tuples; without ``columns`` they are dictionaries from column to value.

    Examples
    --------
    >>> @frame("chips", "times as fast")
    ... def speeds(most):
    ...     for n in range(1, most + 1):
    ...         yield n, n**0.5
    >>> list(speeds(4)), len(speeds(4))
    (['chips', 'times as fast'], 4)
    """
    return _made(partial(pd.DataFrame, columns=columns or None))


def labelled(*columns):
    """Do the same for rows in pairs: a label, for the frame's index, and the cells."""
    made = partial(pd.DataFrame.from_dict, orient="index", columns=columns or None)
    return _made(lambda rows: made(dict(rows)))


def _made(table):
    def decorate(function):
        @wraps(function)
        def made(*args, **kwargs):
            return table(function(*args, **kwargs))

        return made

    return decorate
