"""Steinhardt 2022 as the book shows it: what it prints, its claims and errata, tables and figures."""
