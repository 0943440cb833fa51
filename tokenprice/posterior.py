"""What was measured on one's own machine conditions the answer: a level and two slopes, known better by every row.

The logarithm of measured over predicted is a + b (log2(users) - 6) / 3 + c (log2(prompt) - 11) / 3, and noise. The
model's errors on public deployments say how far a, b and c are from zero (``[own]`` in ``calibration.toml``); rows of
one's own make of that a posterior, three by three.
"""

import csv
import math
import re
from dataclasses import replace
from os.path import isfile

from inferlib.equation import frozen
from inferlib.extras import np
from tokenprice import answerers, benchmark, bounds, words
from tokenprice.estimate import stated

FAR = 3  # widths of an interval beyond which a row is no calibration
FROM = 3  # rows from which times to the first token are conditioned
SHARE = 1.2816  # standard deviations that hold 80 % of a normal distribution, each way
LOAD = ("users", "prompt", "output", "batch", "context")
_ROW = re.compile(r"\s*((?:(?:users|prompt|output|batch|context)[ =]+\S+[ ,]*)+):\s*(.+)", re.DOTALL)


def features(users, tokens):
    """What multiplies the level and both slopes.

    Examples
    --------
    >>> [float(x) for x in features(64, 2048)], [float(x) for x in features(512, 16384)]
    ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    return np.array([1.0, (math.log2(users) - 6) / 3, (math.log2(max(tokens, 1)) - 11) / 3])


@frozen
class Posterior:
    """Level and slopes after some rows: their mean, their covariance, and the noise of a single row."""

    mean: "np.ndarray"
    covariance: "np.ndarray"
    noise: float

    def ratio(self, x) -> float:
        """How many times as long as predicted."""
        return float(np.exp(x @ self.mean))

    def width(self, x) -> float:
        """The factor that holds 80 % of rows, each way."""
        return float(np.exp(SHARE * np.sqrt(x @ self.covariance @ x + self.noise**2)))


def conditioned(widths, x, logs) -> Posterior:
    """The posterior of rows: features a line each, and logarithms of measured over predicted.

    ``widths``: standard deviations of the level, both slopes, and the noise.
    """
    *widths, noise = widths
    prior = np.diag(np.square(widths))
    x = np.asarray(x, dtype=float).reshape(-1, 3)
    if not len(x):
        return Posterior(np.zeros(3), prior, noise)
    gain = prior @ x.T @ np.linalg.inv(x @ prior @ x.T + noise**2 * np.eye(len(x)))
    return Posterior(gain @ np.asarray(logs), prior - gain @ x @ prior, noise)


def before(kind, factor, x) -> tuple:
    """The widths of public deployments, so much wider that without rows they give an answer its own interval."""
    *widths, noise = stated()["own"][kind]
    own = math.sqrt(x @ np.diag(np.square(widths)) @ x + noise**2)
    by = max(math.log(factor) / SHARE / own, 1)
    return tuple(by * width for width in (*widths, noise))


def read(measured) -> list:
    """Rows of what was measured: fields of a question, and seconds of a token and of a first token.

    Each is a text (``"users 32: 21.3 ms"``, ``"users 1 prompt 8k: 9.1 ms, TTFT 410 ms"``), what a benchmark printed,
    or the path of a CSV with columns ``users``, ``prompt``, ``output``, ``tpot_ms`` and perhaps ``ttft_ms``.

    Examples
    --------
    >>> read(["users 32: 21.3 ms"])
    [({'users': 32}, {'tpot': 0.0213})]
    """
    rows = []
    for text in [measured] if isinstance(measured, str) else measured:
        found = _ROW.fullmatch(text)
        if found:
            pairs = re.findall(r"(\w+)[ =]+([^\s,]+)", found[1])
            times = found[2] if re.match(r"\s*[A-Za-z]", found[2]) else f"TPOT {found[2]}"
            rows.append(({name: words.count(name, n) for name, n in pairs}, benchmark.read(times).measured))
        elif isfile(text) and text.endswith(".csv"):
            with open(text, encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    load = {name: float(row[name]) for name in LOAD if row.get(name)}
                    times = {name: row.get(f"{name}_ms") for name in ("tpot", "ttft")}
                    rows.append((load, {name: 1e-3 * float(ms) for name, ms in times.items() if ms}))
        else:
            seen = benchmark.read(open(text, encoding="utf-8").read() if isfile(text) else text)
            rows.append((seen.load, seen.measured))
    return rows


def condition(answer, measured, answered):
    """An answer that knows what was measured on its machine.

    ``answered``: the function of a question that answers it. ValueError where a row is no calibration: beyond three
    widths something else differs, or the model is wrong; and faster than the data sheet allows nothing runs.
    """
    q = answer.question
    if q.arrivals or not answer.feasible:
        raise ValueError("measured belongs to a step, or to users who ask again, that has an answer")
    sequences, length = ("users", "prompt") if q.is_request else ("batch", "context")
    same = {"users": sequences, "batch": sequences, "prompt": length, "context": length}
    taken = (sequences, length, *(("output", "rounds", "equal") if q.is_request else ()))
    logs: dict = {"token": [], "first": []}
    asked: dict = {"token": [], "first": []}
    for load, times in read(measured):
        load = {same.get(name, name): one for name, one in load.items()}
        load = {name: one for name, one in load.items() if name in taken}
        other = answered(q.replace(**load))
        if not other.feasible:
            raise ValueError(f"measured at {load}, where there is no answer: {other.reason}")
        x = features(_users(other), _tokens(other))
        told = {"token": ("tpot", other.seconds, other.factor)}
        if other.request is not None:
            told["first"] = "ttft", other.request.first_token, other.request.first_factor
        for kind, (name, predicted, factor) in told.items():
            if name not in times:
                continue
            by = times[name] / predicted
            if abs(math.log(by)) > FAR * math.log(factor):
                how = f"{max(by, 1 / by):.3g} times {'as long as' if by > 1 else 'faster than'}"
                raise ValueError(
                    f"measured {1e3 * times[name]:,.4g} ms, {how} the model says ({1e3 * predicted:,.3g} ms), beyond "
                    "three widths of its interval: something else differs, or the model is wrong; check says what "
                    "would explain it"
                )
            logs[kind].append(math.log(by))
            asked[kind].append(x)
    if not logs["token"]:
        raise ValueError("measured holds no time between tokens, such as 'users 32: 21.3 ms'")
    return _applied(answer, logs, asked)


def _users(answer):
    return float(answer.question.workload.batch)


def _tokens(answer):
    q = answer.question
    return float(q.prompt if q.is_request else q.workload.context)


def _applied(answer, logs, asked):
    q, x = answer.question, features(_users(answer), _tokens(answer))
    found = conditioned(before("token", answer.factor, x), asked["token"], logs["token"])
    ratio, factor = found.ratio(x), found.width(x)
    step = slowed(answer.step, ratio)
    request, was = answer.request, answer.factor
    if request is None:
        broken = bounds.of_step(step.total, factor)
    else:
        changed = {"step": step, "token": request.token * ratio, "step_factor": factor}
        if len(logs["first"]) >= FROM:
            first = conditioned(before("first", request.first_factor, x), asked["first"], logs["first"])
            changed |= {"first_token": request.first_token * first.ratio(x), "first_factor": first.width(x)}
        request = replace(request, **changed)
        broken = bounds.of_step(request.token, factor)
    least = None if q.drafted else answerers.ask("principles", q.model, q.machine, q.workload)
    if least is not None and least.status == "ok" and step.total < least.total:
        broken = f"a step would be faster than the data sheet allows, {1e3 * least.total:.3g} ms"
    if broken:
        raise ValueError(f"measured rows make an answer that cannot be: {broken}")
    many = len(logs["token"])
    slower = f"{ratio:.2f} times slower" if ratio >= 1 else f"{1 / ratio:.2f} times faster"
    told = (
        f"By {many} measured {'row' if many == 1 else 'rows'} your machine is {slower} than the model says; "
        f"80 % within {factor:.2f} (was {was:.2f})."
    )
    return step, request, factor, told


def slowed(step, ratio):
    """A breakdown whose every term takes so many times as long."""

    def times(part):
        return {name: times(one) for name, one in part.items()} if hasattr(part, "items") else part * ratio

    return replace(step, stages=tuple(times(stage) for stage in step.stages))
