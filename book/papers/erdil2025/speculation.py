"""Erdil 2025: speculative decoding with the best number of drafts, each pass in its best layout (section 4.1)."""

from functools import reduce

import numpy as np

from inferlib import validation
from inferlib.papers.erdil2025.records import PRINTED
from inferlib.papers.erdil2025.search import (
    MORE,
    expected_tokens,
    opened,
    over_points,
    pass_times,
    speculative_time,
)
from inferlib.system import count


def rounds(gamma_max, assumptions):
    """The rounds that speculative decoding may choose from: (draft passes, tokens verified) for each gamma."""
    free = 1 if assumptions.free_token else 0
    return [(gamma, gamma + free) for gamma in range(2 - free, gamma_max + 1)]


def speculative_latency(
    target,
    draft,
    chip,
    n_gpu,
    batch,
    *,
    acceptance,
    gamma_max=5,
    context=0,
    pipeline=True,
    assumptions=PRINTED,
):
    """Mean time per token with speculative decoding, at the best number of drafts and the best layouts.

    Parameters are :func:`token_latency`'s, for two models; a drafted token is accepted with the probability
    ``acceptance`` (below 1), and a round has at most ``gamma_max`` tokens. Not above :func:`token_latency`, since a
    round without drafts is one of the choices.

    Examples
    --------
    >>> from inferlib.papers.erdil2025 import load_chip, load_model
    >>> llama, small, h100 = load_model("Llama 3 70B 8-bit"), load_model("Llama 3 8B"), load_chip("H100")
    >>> round(1 / speculative_latency(llama, small, h100, 23.9, 1, acceptance=0.8))
    186
    """
    shape, gpu, assumptions = opened(target, chip, assumptions)
    small, small_gpu, _ = opened(draft, chip, assumptions)
    check_rounds(acceptance, gamma_max)

    def search(n_gpu, batch, context):
        return speculated(
            shape, gpu, small, small_gpu, n_gpu, batch, context, acceptance, gamma_max, pipeline, assumptions
        )[0]

    return over_points(search, n_gpu, batch, context)


def check_rounds(acceptance, gamma_max):
    """Raise if the acceptance is not a probability below one, or the tokens of a round are not a whole number."""
    validation.number("acceptance", acceptance, zero=True)
    if not acceptance < 1:
        raise ValueError(f"acceptance is {acceptance}, but must be at least 0 and below 1")
    count("gamma_max", gamma_max)


def speculated(
    shape, gpu, small, small_gpu, n_gpu, batch, context, acceptance, gamma_max, pipeline,
    assumptions=PRINTED, *, limit=np.inf,
):  # fmt: skip
    """Return the best mean time and its gamma at every point where the time is within a limit.

    Scoring more tokens never takes less time than scoring fewer: that, and the time of the drafts, leave few points for
    most numbers of drafts.
    """
    beside = ([small], [shape]) if assumptions.joint_capacity else ((), ())
    choices = rounds(int(gamma_max), assumptions)
    yields = [expected_tokens(acceptance, verified) for _, verified in choices]
    at = (n_gpu, batch, context)
    limit = np.broadcast_to(limit, n_gpu.shape) * MORE
    plain = pass_times(
        shape, gpu, *at, 1, pipeline, assumptions, beside=beside[0], limit=limit * max([1, *yields])
    )
    points = np.flatnonzero(np.isfinite(plain))
    at, plain, limit = [one[points] for one in at], plain[points], np.minimum(limit, plain * MORE)[points]
    # time left in a round whose scoring is as fast as that of a single token
    left = [(limit * y - plain) / drafts for (drafts, _), y in zip(choices, yields, strict=True)]
    most = reduce(np.maximum, left, np.zeros(points.shape))
    drafting = pass_times(small, small_gpu, *at, 1, pipeline, assumptions, beside=beside[1], limit=most)
    means = np.full((1 + len(choices), points.size), np.inf)
    means[0] = plain
    for i, (drafts, verified) in reversed(list(enumerate(choices))):
        allowed = limit * yields[i] - drafts * drafting
        some = np.flatnonzero(plain <= allowed)
        verifying = pass_times(
            shape, gpu, *(one[some] for one in at), verified, pipeline, assumptions,
            beside=beside[0], limit=allowed[some],
        )  # fmt: skip
        means[1 + i, some] = speculative_time(acceptance, drafts, verified, verifying, drafting[some])
        limit = np.minimum(limit, means[1 + i] * MORE)
    gammas = np.array([0 if assumptions.free_token else 1, *(drafts for drafts, _ in choices)])
    seconds = np.full(n_gpu.shape, np.inf)
    gamma = np.full(n_gpu.shape, gammas[0])
    best = means.min(axis=0)
    seconds[points] = np.where(best <= limit, best, np.inf)
    gamma[points] = gammas[means.argmin(axis=0)]
    return seconds, gamma
