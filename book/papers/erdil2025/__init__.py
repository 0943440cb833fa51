"""Erdil 2025 as the book shows it: what it prints, its claims and errata, tables and figures."""
