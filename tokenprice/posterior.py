"""Condition a prediction on measurements of the user's own machine: Bayesian regression of a level and two slopes.

The logarithm of measured over predicted is a + b (log2(users) - 6) / 3 + c (log2(prompt) - 11) / 3 plus noise. The
model's errors on public deployments give the prior widths of a, b and c (``[own]`` in ``calibration.toml``); the
user's rows give the posterior. Where an answer is less certain than those deployments, all four widths grow by the
same factor. Letting the noise grow too was chosen on 184 rows of seven publishers: with constant noise, intervals held
half of them after three rows. Elsewhere this is too careful: of 45 rows of four deployments on MI300X, intervals hold
100 % after three rows (95 to 99 % with constant noise); of 17 deployments of 2026 they hold 96 % (92 %).
"""

import csv
import math
import re
from dataclasses import replace
from os.path import isfile

from inferlib import validation
from inferlib.equation import frozen
from inferlib.optional_imports import np
from tokenprice import benchmark
from tokenprice.uncertainty import load_calibration

FAR = 3  # interval widths beyond which a row is refused as calibration
FROM = 3  # rows needed before TTFT is conditioned
SHARE = 1.2816  # standard deviations that hold 80 % of a normal distribution, each way
# Fields of a question of requests, and of a step, that the fields of a measured row give.
REQUEST_FIELDS = {
    name: name
    for name in ("concurrency", "prompt_tokens", "output_tokens", "requests_per_user", "fixed_lengths")
}
STEP_FIELDS = {"concurrency": "batch", "prompt_tokens": "context", "batch": "batch", "context": "context"}


def features(users, tokens):
    """Return the features of the level and of both slopes.

    Examples
    --------
    >>> [float(x) for x in features(64, 2048)], [float(x) for x in features(512, 16384)]
    ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    return np.array([1.0, (math.log2(users) - 6) / 3, (math.log2(max(tokens, 1)) - 11) / 3])


@frozen
class Posterior:
    """Level and slopes after some rows: mean, covariance, and the noise of a single row."""

    mean: "np.ndarray"
    covariance: "np.ndarray"
    noise: float

    def ratio(self, x) -> float:
        """Predicted ratio of measured to predicted time."""
        return float(np.exp(x @ self.mean))

    def width(self, x) -> float:
        """Factor, each way, that holds 80 % of rows."""
        return float(np.exp(SHARE * np.sqrt(x @ self.covariance @ x + self.noise**2)))


def conditioned(widths, x, logs) -> Posterior:
    """Return the posterior given rows: ``x`` has their features, ``logs`` the logarithms of measured over predicted.

    ``widths``: standard deviations of the level, both slopes, and the noise.
    """
    *widths, noise = widths
    x = np.reshape(x, (-1, 3))
    logs = np.asarray(logs, dtype=float)
    covariance = np.linalg.inv(np.diag(1 / np.square(widths)) + x.T @ x / noise**2)
    return Posterior(covariance @ x.T @ logs / noise**2, covariance, noise)


def before(kind, factor, x) -> tuple:
    """Return the prior widths, scaled so that without rows the answer keeps its own interval."""
    widths = np.array(load_calibration()["own"][kind])
    return tuple(math.log(factor) / math.log(conditioned(widths, [], []).width(x)) * widths)


def read(measured) -> list:
    """Parse measured rows: fields of a question, and TPOT and TTFT in seconds.

    Each is a text (``"users 32: 21.3 ms"``, ``"users 1 prompt 8k: 9.1 ms, TTFT 410 ms"``), what a benchmark printed,
    or the path of such a file, or of a CSV with columns such as ``concurrency``, ``isl``, ``osl``, ``tpot_ms``.

    Examples
    --------
    >>> read(["users 32: 21.3 ms"])
    [({'concurrency': 32}, {'tpot': 0.0213})]
    """
    rows = []
    validation.instance("measured", measured, (str, list, tuple))
    for text in [measured] if isinstance(measured, str) else measured:
        if isfile(validation.instance("measured", text, str)):
            with open(text, encoding="utf-8", newline="") as file:
                lines = list(csv.DictReader(file)) if text.endswith(".csv") else [file.read()]
        else:
            lines = [text]
        for line in lines:
            if isinstance(line, dict):
                cells = (f"{name} {value}" for name, value in line.items() if value)
                line = ", ".join(re.sub(r"(\w+)_ms (.+)", r"\1 \2 ms", cell) for cell in cells)
            elif found := re.fullmatch(r"\s*([a-z_]+[\s=]+\d[^:]*):\s*(.+)", line):
                time = "" if found[2][:1].isalpha() else "tpot "
                line = re.sub(r"[\s,]+(?=[a-z_]{3})", ", ", found[1]) + f", {time}{found[2]}"
            seen = benchmark.read(line)
            rows.append((seen.load, seen.measured))
    return rows


def condition(answer, measured, answered):
    """Condition an answer on measurements of its machine.

    ``answered``: function that answers a question. Raises ValueError if a row is beyond three widths of its interval
    (something else differs, or the model is wrong), or if the result would be faster than the data sheet allows.
    """
    request = answer.request
    if answer.question.request_rate or not answer.feasible:
        raise ValueError("measured needs a step or a closed loop (concurrency) that has an answer")
    rows = _compared(answer.question, read(measured), answered)
    if not rows["token"]:
        raise ValueError("measured holds no time between tokens, such as 'users 32: 21.3 ms'")
    x = _at(answer)
    token = conditioned(before("token", answer.factor, x), *zip(*rows["token"], strict=True))
    ratio = token.ratio(x)
    factor = token.width(x)
    stages = tuple({term: seconds * ratio for term, seconds in stage.items()} for stage in answer.step.stages)
    step = replace(answer.step, stages=stages)
    if request is not None:
        # where the same machine prefills, TPOT holds the prompts of others
        reads = 1 if request.prefill_machine else ratio
        request = replace(
            request, step=step, tpot=request.tpot * ratio, step_factor=factor,
            fresh_seconds=request.fresh_seconds * reads, cached_seconds=request.cached_seconds * reads,
        )  # fmt: skip
        if len(rows["first"]) >= FROM:
            first = conditioned(before("first", request.first_factor, x), *zip(*rows["first"], strict=True))
            request = replace(request, ttft=request.ttft * first.ratio(x), first_factor=first.width(x))
    if step.total < answer.at_peaks:
        raise ValueError(
            "measured rows lead to an impossible answer: a step would be faster than the data sheet allows, "
            f"{1e3 * answer.at_peaks:.3g} ms"
        )
    many = len(rows["token"])
    slower = f"{max(ratio, 1 / ratio):.2f} times {'slower' if ratio >= 1 else 'faster'}"
    told = (
        f"By {many} measured {'row' if many == 1 else 'rows'} your machine is {slower} than the model says; "
        f"80 % within {factor:.2f} (was {answer.factor:.2f})."
    )
    return replace(
        answer, step=step, request=request, factor=factor, question_notes=(told, *answer.question_notes)
    )


def _compared(question, measured, answered):
    """Return, for TPOT (``token``) and TTFT (``first``), features and the logarithm of measured over predicted."""
    rows: dict = {"token": [], "first": []}
    fields = REQUEST_FIELDS if question.is_request else STEP_FIELDS
    for load, times in measured:
        answer = answered(
            question.replace(**{fields[name]: value for name, value in load.items() if name in fields})
        )
        if not answer.feasible:
            raise ValueError(f"measured at {load}, where there is no answer: {answer.reason}")
        told = {"tpot": ("token", answer.seconds, answer.factor)}
        if answer.request is not None:
            told["ttft"] = ("first", answer.request.ttft, answer.request.first_factor)
        for name in told.keys() & times.keys():
            kind, predicted, factor = told[name]
            ratio = times[name] / predicted
            if abs(math.log(ratio)) > FAR * math.log(factor):
                how = f"{max(ratio, 1 / ratio):.3g} times {'as long as' if ratio > 1 else 'faster than'}"
                raise ValueError(
                    f"measured {1e3 * times[name]:,.4g} ms, {how} the model says ({1e3 * predicted:,.3g} ms), beyond "
                    "three widths of its interval: something else differs, or the model is wrong; check says what "
                    "would explain it"
                )
            rows[kind].append((_at(answer), math.log(ratio)))
    return rows


def _at(answer):
    question = answer.question
    tokens = question.prompt_tokens if question.is_request else question.workload.context
    return features(float(question.workload.batch), float(tokens))
