"""The sixth model: a step, a prompt and a request from kernels that somebody timed, and what they cost."""

from inferlib.serving.change import must_change
from inferlib.serving.decide import Decision, decide
from inferlib.serving.decode import decode_step
from inferlib.serving.estimate import Estimate, estimate
from inferlib.serving.request import Request, estimate_request, within
from inferlib.serving.speculation import with_drafts

__all__ = [
    "Decision",
    "Estimate",
    "Request",
    "decide",
    "decode_step",
    "estimate",
    "estimate_request",
    "must_change",
    "with_drafts",
    "within",
]
