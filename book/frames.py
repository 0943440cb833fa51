"""Tables of rows that a function yields."""

from functools import wraps

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

    def decorate(function):
        @wraps(function)
        def made(*args, **kwargs):
            return pd.DataFrame(function(*args, **kwargs), columns=columns or None)

        return made

    return decorate
