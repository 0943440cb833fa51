"""What the source prints, recomputed."""

from inferlib.papers.tiny2026.equations import reading_time, speed

from book.audit.grading import WithNote, reproduces
from inferlib.system import Accelerator


def _chip(read):
    return Accelerator(flops=1e15, memory_bandwidth=read("bandwidth", artefact="Table 1"))


@reproduces("Table 1")
def _table_1(read):
    return {"time": lambda read: reading_time(_chip(read), read("weights"))}


@reproduces("Text 1")
def _text_1(read):
    made = "125 by its own table"
    return {"speed": lambda read: WithNote(speed(_chip(read), read("weights", artefact="Table 1")), made)}


@reproduces("Text 1")
def _claims(read, holds):
    holds("a token takes less than a hundredth of a second", lambda read: _time(read) < 0.01)
    holds("a token takes no time", lambda read: _time(read) == 0, "8 ms")


def _time(read):
    return reading_time(_chip(read), read("weights", artefact="Table 1"))
