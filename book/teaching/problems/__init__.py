"""Problems with marking: a bank whose parameters differ by student, and a marker that knows the usual mistakes.

:data:`BANK` maps names such as ``"memory-3"`` to problems; ``BANK[name].asked(student)`` has a student's parameters,
:func:`mark` marks an answer, :func:`sheet` shows problems in a page or a notebook, where they are marked in place.
"""

from book.teaching.problems import rows  # noqa: F401  it fills the bank
from book.teaching.problems.bank import BANK, LEVELS, TOPICS, problems
from book.teaching.problems.marking import mark
from book.teaching.problems.page import sheet

__all__ = ["BANK", "LEVELS", "TOPICS", "mark", "problems", "sheet"]
