"""First principles: what a token costs in arithmetic, bytes and waiting, before any model of a system.

The arithmetic all five sources stand on. Nothing here is an estimate: amounts are counted from the shape of
a model, times are the least that a chip's peaks allow.
"""

from inferlib.principles.profile import Profile, profile_of
from inferlib.principles.roofline import (
    arithmetic_intensity,
    arithmetic_time,
    attainable_flops,
    cache_data,
    cost_per_million,
    critical_batch,
    decode_intensity,
    decode_step,
    decode_work,
    exchange_time,
    in_turn_stages,
    in_turn_time,
    largest_batch,
    memory_held,
    memory_time,
    overlapped_time,
    prefill_intensity,
    prefill_work,
    ridge_point,
    roofline_time,
    weight_data,
    weights_read,
)

__all__ = [
    "Profile", "arithmetic_intensity", "arithmetic_time", "attainable_flops", "cache_data", "cost_per_million",
    "critical_batch", "decode_intensity", "decode_step", "decode_work", "exchange_time", "in_turn_stages",
    "in_turn_time", "largest_batch", "memory_held", "memory_time", "overlapped_time", "prefill_intensity",
    "prefill_work", "profile_of", "ridge_point", "roofline_time", "weight_data", "weights_read",
]  # fmt: skip
