"""Mazurek & Schreiber 2025, "DeepSeek inference theoretical model": serving a mixture of experts."""

from inferlib.papers.mazurek2025.decode import *
from inferlib.papers.mazurek2025.equations.experts import *
from inferlib.papers.mazurek2025.equations.flops import *
from inferlib.papers.mazurek2025.equations.memory import *
from inferlib.papers.mazurek2025.equations.network import *
from inferlib.papers.mazurek2025.equations.throughput import *
from inferlib.papers.mazurek2025.records import *
