"""The registers of print: scorecard, errata, equations, claims, and the tree behind a number."""

from book.audit.explanation import explain
from book.audit.ledger import equations, errata, notes, scorecard, summary

__all__ = ["equations", "errata", "explain", "notes", "scorecard", "summary"]
