"""Tiny 2026 as the book shows it."""
