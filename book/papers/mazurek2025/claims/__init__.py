"""Mazurek & Schreiber 2025: what it says in words, each statement once where it is checked."""
