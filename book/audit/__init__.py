"""The registers of print: scorecard, errata, equations, claims, and the tree behind a number."""

from book.audit.explanations import explain
from book.audit.grading import equations, errata, notes, scorecard, summary

__all__ = ["equations", "errata", "explain", "notes", "scorecard", "summary"]
