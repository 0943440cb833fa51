"""Audit of the sources: scorecard, errata, equations, claims, and explanations of single numbers."""

from book.audit.explanations import explain
from book.audit.grading import equations, errata, notes, scorecard, summary

__all__ = ["equations", "errata", "explain", "notes", "scorecard", "summary"]
