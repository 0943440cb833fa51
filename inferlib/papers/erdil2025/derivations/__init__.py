"""Derivations of the toy model and of the complete model."""
