"""Steinhardt 2022, "How fast can we perform a forward pass?": the least time of one pass through a model."""

from inferlib.papers.steinhardt2022.equations import *
