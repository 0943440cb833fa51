"""Erdil 2025: every number and statement of its text, checked, section by section."""
