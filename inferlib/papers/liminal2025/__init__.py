"""LIMINAL 2025: what limits decode on today's and tomorrow's chips."""

from inferlib.papers.liminal2025.equations import *
