"""Options of the verbs, for type checkers. Written by ``python -m book.site.tools.signatures``."""

from collections.abc import Mapping
from typing import TypedDict

from inferlib.system import Layout, System
from tokenprice.workload import Trace


class QuestionFields(TypedDict, total=False):
    """Fields of a question except its model, as text or typed."""

    machine: str | System
    batch: str | float
    context: str | float
    prompt_tokens: str | float
    output_tokens: str | float
    trace: str | Trace
    cached: str | float
    shared_prefix: str | float
    concurrency: str | float
    requests_per_user: str | float
    fixed_lengths: str | bool
    batching_wait_iters: str | float
    request_rate: str | float
    replicas: str | int
    layout: str | Layout
    weights: str | float
    kv_cache_dtype: str | float
    layer_formats: str | Mapping
    engine: str
    memory_utilization: str | float
    draft_tokens: str | int
    acceptance_length: str | float
    prefill_machine: str | System
    prefill_replicas: str | int
    max_num_batched_tokens: str | float
    max_num_seqs: str | float
    order: str
    router: str
    dp_balance: str | float
    price: str | float
    price_max: str | float
    electricity: str | float
    pue: str | float
    paid_hours_used: str | float


class SLOFields(TypedDict, total=False):
    """Fields of an SLO."""

    tpot: str | float
    ttft: str | float
    usd_per_million: str | float
    request_latency: str | float
    tpot_p99: str | float
    ttft_p99: str | float


class AskOptions(QuestionFields, total=False):
    """Options of ``ask``."""

    prices: Mapping | str


class ChangeOptions(AskOptions, SLOFields):
    """Options of ``change`` and ``simulate``."""


class DecideOptions(QuestionFields, SLOFields):
    """Options of ``decide``, which has a ``prices`` argument of its own."""
