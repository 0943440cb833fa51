"""Mazurek & Schreiber 2025, "DeepSeek inference theoretical model": serving a mixture of experts."""

from inferlib.papers.mazurek2025.decode import *
from inferlib.papers.mazurek2025.equations import *
from inferlib.papers.mazurek2025.records import *
