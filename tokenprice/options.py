"""What verbs take as options, for type checkers. Written by ``python -m book.site.tools.options``."""

from collections.abc import Mapping
from typing import TypedDict

from inferlib.system import Layout, System
from tokenprice.mix import Trace


class Fields(TypedDict, total=False):
    """The fields of a question but for its model, in words or typed."""

    machine: str | System
    batch: str | float
    context: str | float
    prompt: str | float
    output: str | float
    trace: str | Trace
    cached: str | float
    users: str | float
    max_num_seqs: str | int
    rounds: str | float
    equal: str | bool
    hold: str | float
    arrivals: str | float
    machines: str | int
    layout: str | Layout
    weights: str | float
    cache: str | float
    keep: str | Mapping
    engine: str
    memory: str | float
    drafted: str | int
    length: str | float
    reader: str | System
    readers: str | int
    chunk: str | float
    price: str | float
    highest: str | float
    electricity: str | float
    pue: str | float
    utilisation: str | float


class Promises(TypedDict, total=False):
    """The fields of a promise."""

    token: str | float
    first_token: str | float
    dollars: str | float
    request: str | float
    token_p99: str | float
    first_token_p99: str | float


class Asked(Fields, total=False):
    """What ``ask`` takes."""

    prices: Mapping


class Promised(Asked, Promises):
    """What ``change`` and ``simulate`` take."""


class Offered(Fields, Promises):
    """What ``decide`` takes, which has prices of its own."""
