"""LIMINAL 2025: what limits decode on today's and tomorrow's chips."""

from inferlib.papers.liminal2025.decode import *
from inferlib.papers.liminal2025.equations import *
from inferlib.papers.liminal2025.records import *
