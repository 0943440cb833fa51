"""Figures and explorers of the chapter on first principles."""
