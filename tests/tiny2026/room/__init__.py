"""Tiny 2026: a made-up source of two equations, to see what a sixth one takes."""

from inferlib.papers.tiny2026.decode import *
from inferlib.papers.tiny2026.equations import *
