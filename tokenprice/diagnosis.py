"""Compare a benchmark with the prediction: is each number in its interval, what explains a miss, what to try next.

``causes.toml`` lists the possible causes. How often the true cause is named was counted on numbers that the model
itself predicted, with noise, for a deployment with one flag changed (``tests/test_check.py``). That measures how well
causes are told apart; it says nothing about machines for which the model is wrong.
"""

import math
from dataclasses import replace
from os.path import isfile
from typing import NamedTuple, Unpack

from inferlib import validation
from inferlib.equation import frozen
from inferlib.system import System
from tokenprice import benchmark, calibration, launch
from tokenprice.ask import Answer, ask_kernel_model, plain
from tokenprice.formatting import format_number, format_time
from tokenprice.question import Question, parse_options
from tokenprice.signatures import AskOptions
from tokenprice.speculation import acceptance
from tokenprice.workload import LengthDistribution

NAMED = 2  # largest number of explanations listed
BETTER = 1.03  # smallest speedup for which a flag is suggested
NEAR = 1.25  # widths within which a cause must bring all numbers; several numbers add noise
FAR = 3.0  # a miss of more interval widths than this cannot be chance
PLACES = (
    0.85  # fewer running sequences than this share of the users mean that the limit of sequences is reached
)
TIMES = ("tpot", "ttft", "e2e")
LENGTHS = ("prompt_tokens", "output_tokens")
LINKED = ("switch", "bridge")  # topologies with a direct link between chips
LOOP = ("concurrency", "requests_per_user")  # fields of a closed loop


def table():
    """``causes.toml``, read."""
    return validation.read_package_toml(__file__, "causes.toml")


class Expected(NamedTuple):
    """Predicted value of a benchmark's number, with the ends of its 80 % interval."""

    middle: float
    low: float
    high: float

    def misses(self, value):
        """Distance of a value from the middle, in widths of the interval, on a logarithmic scale."""
        width = self.high / self.middle if value > self.middle else self.middle / self.low
        return abs(math.log(value / self.middle)) / math.log(max(width, 1.02))


class Explanation(NamedTuple):
    """A possible cause, the answer with that cause applied, and the root sum of squares of its misses in widths."""

    cause: dict
    answer: Answer
    miss: float

    @property
    def says(self):
        """The cause in words."""
        q = self.answer.question
        return self.cause["says"].format(
            n=(q.max_num_seqs or 0) * q.resolved_layout.dp, users=format_number(q.concurrency or 1)
        )


def expected(answer) -> dict:
    """Predict what a benchmark of the answer's question measures: quantity to :class:`Expected`."""
    q = answer.question
    r = answer.request
    found = {"tpot": Expected(answer.seconds, *answer.interval)}
    if r is None:
        ends = (answer.seconds, answer.high, answer.low)
        return found | {"output_rate": Expected(*(q.workload.batch / one for one in ends))}
    rest = max(float(q.output_tokens) - 1, 0)
    spans = zip(r.ttft_interval, r.tpot_interval, strict=True)
    ends = (r.seconds, *(first + rest * token for first, token in spans))
    late = (
        (1, 1.05, 1 / 1.05) if q.request_rate else (1, ends[2] / ends[0], ends[1] / ends[0])
    )  # in an open loop the rate of requests is given
    rates = {
        "output_rate": 1,
        "total_rate": float(q.prompt_tokens) / float(q.output_tokens) + 1,
        "requests": 1 / float(q.output_tokens),
    }
    found |= {"ttft": Expected(r.ttft, *r.ttft_interval), "e2e": Expected(*ends)}
    return found | {
        name: Expected(*(by * answer.throughput / one for one in late)) for name, by in rates.items()
    }


def least_times(answer) -> dict:
    """Return the least seconds of a token and of a first token, at the peaks of the data sheet.

    A step reads the weights alone, and all drafts are accepted, so it holds for every load.
    """
    q = answer.question
    drafted = q.draft_tokens or 0
    deployment = q.deployment.replace(acceptance_length=drafted + 1) if drafted else q.deployment
    found = {"tpot": deployment.least_step(0, 1)}
    if answer.request:
        (_, found["ttft"]) = answer.request.at_peaks
    return found


@frozen
class Check:
    """Result of :func:`check`: the answer, the benchmark, explanations of a miss, and what to try next."""

    answer: Answer
    benchmark: benchmark.Benchmark
    explained: tuple = ()
    next: tuple = ()
    notes: tuple = ()

    @property
    def numbers(self) -> dict:
        """Map each compared quantity to its expected and its measured value."""
        told = expected(self.answer)
        measured = self.benchmark.measured
        return {name: (told[name], value) for name, value in measured.items() if name in told}

    @property
    def misses(self) -> dict:
        """Distance of each number from the middle of its interval, in widths."""
        return {name: one.misses(value) for name, (one, value) in self.numbers.items()}

    @property
    def outside(self) -> tuple:
        """The quantities whose measured number lies outside the interval."""
        return tuple(name for name, miss in self.misses.items() if miss > 1)

    @property
    def inside(self) -> bool:
        """Whether every number lies in its interval."""
        return not self.outside

    @property
    def faster(self) -> bool:
        """Whether the number that misses most is better than expected."""
        name = max(self.misses, key=lambda name: self.misses[name])
        one, value = self.numbers[name]
        return (value < one.middle) == (name in TIMES)

    @property
    def impossible(self) -> str:
        """Why a measured time cannot be, with the bounds and likely causes; ``""`` if all can be."""
        q = self.answer.question
        measured = dict(self.benchmark.measured)
        if "output_rate" in measured and not q.request_rate:
            paced = q.workload.batch / measured["output_rate"]  # by Little's law
            measured["tpot"] = min(measured.get("tpot", paced), paced)
        least = least_times(self.answer)
        if all(measured.get(name, math.inf) >= seconds for name, seconds in least.items()):
            return ""
        names = benchmark.table()["measured"]
        bounds = (f"{names[name]} at least {format_time(seconds)}" for name, seconds in least.items())
        return f"Impossible: {table()['impossible'].format(', '.join(bounds))}."

    @property
    def far(self) -> bool:
        """Whether a number misses by more than chance can explain."""
        return max(self.misses.values()) > FAR

    def to_dict(self) -> dict:
        """Everything as plain numbers and texts, in SI units."""
        return plain({
            "question": self.answer.question.words(), "inside": self.inside, "impossible": self.impossible,
            "numbers": {
                name: {"measured": value, **one._asdict(), "inside": name not in self.outside}
                for name, (one, value) in self.numbers.items()
            },
            "explained": [
                {"cause": one.cause["name"], "says": one.says, "seconds": one.answer.seconds} for one in self.explained
            ],
            "next": [
                {"flag": flag, "seconds": one.seconds, "tokens_per_second": one.throughput} for flag, one in self.next
            ],
            "notes": self.notes, "warnings": self.answer.warnings,
        })  # fmt: skip

    def __str__(self):
        names = benchmark.table()["measured"]
        lines = [str(self.answer).partition("\n")[0]]
        for name, (one, value) in self.numbers.items():
            statistic = self.benchmark.statistics[name]
            times = f"outside, {format_number(value / one.middle)} times what it should be"
            verdict = (times if name in self.outside else "inside") + f" ({statistic})" * (
                statistic != "mean"
            )
            end = "or more" if one.high == math.inf else f"to {_said(name, one.high)}"
            span = f"{_said(name, one.low)} {end}"
            lines.append(f"{names[name]}: expected {span}, yours {_said(name, value)}: {verdict}")
        left = [names[name] for name in self.benchmark.measured if name not in self.numbers]
        if left:
            lines.append(f"Not compared: {', '.join(left)} (give prompt and output)")
        if self.explained:
            lines.append("Possible explanations, each with its prediction:")
        for one in self.explained:
            told = expected(one.answer)
            each = (
                f"{names[name]} {_said(name, told[name].middle)}" for name in self.numbers if name in told
            )
            lines.append(f"  {one.says}: {', '.join(each)}")
        if self.impossible:
            lines.append(self.impossible)
        elif self.outside and not self.explained:
            asked = ", ".join(cause["name"] for cause in table()["cause"])
            more = "; a miss this large has another cause, or the model is wrong" if self.far else ""
            why = table()["faster" if self.faster else "slower"]
            lines.append(f"None of these causes explains it ({asked}); {why}{more}")
        for flag, one in self.next:
            gives = (
                f"TPOT {format_time(one.seconds, *one.interval)}, {format_number(one.throughput)} tokens/s"
            )
            if one is not self.answer:
                gain = one.throughput / self.answer.throughput
                gives = f"{gain:.3g} times the tokens per second; by the model {gives}"
            lines.append(f"Try next: {flag}, which should give {gives} in all")
        return "\n".join([*lines, *self.notes, *(f"Caution: {caution}." for caution in self.answer.warnings)])

    __repr__ = __str__


def _said(name, value):
    return (format_time if name in TIMES else format_number)(value)


def check(command, measured="", machine=None, /, *, chips=None, **options: Unpack[AskOptions]) -> Check:
    """Check whether a benchmark is as fast as it should be; if not, name possible causes and a flag to try next.

    Parameters
    ----------
    command : str
        A launch command of vLLM, SGLang or TensorRT-LLM, a model, or a Question; the benchmark may stand below it.
    measured : str
        What a benchmark printed or stored as JSON, or words, such as ``"TPOT 21.3 ms, TTFT 410 ms, 64 users"``.
    machine, chips, **options
        As for :func:`tokenprice.ask`. They win over what the command and the benchmark say.

    Raises
    ------
    LookupError, ValueError, TypeError
        Naming what is not understood, in one line.

    Notes
    -----
    Benchmarks print the mean TPOT over requests; predicted is the mean over tokens. By simulation both are within 0.5 %
    of each other in a closed loop, and at a request rate where answers are equally long or drawn from a range, as
    benchmarks do. With lengths that differ more (at a request rate a mean that is no whole number is taken as that of
    geometric lengths) they are up to 3 % apart, but where prompts are long and answers short the mean over requests was
    1.7 times that over tokens; :func:`tokenprice.simulate` gives both.

    Examples
    --------
    >>> found = check("vllm serve Qwen/Qwen3-32B -tp 4", "TPOT 10.5 ms, 16 users, prompt 1k, output 500", "4x H100")
    >>> found.inside
    True
    >>> printout = "Median TPOT (ms): 13.5\\nMean TTFT (ms): 400\\nMax request concurrency: 16"
    >>> print(check("vllm serve Qwen/Qwen3-32B -tp 4", printout, "4x H100"))  # doctest: +ELLIPSIS
    Qwen/Qwen3-32B on 4 × H100 SXM, weights in bf16, cache in bf16, TP4, batch 16, context 4,096, serving engine
    time between tokens: expected ..., yours 13.5 ms: outside, ...
    Not compared: time to the first token (give prompt and output)
    None of these causes explains it (full places, ...
    Try next: --quantization fp8, which should give ...
    Prompt and output are not given: a step at 4,096 tokens is compared.
    >>> # by Little's law 1400 * 0.011 = 15 run at a time
    >>> full = "TPOT 11 ms, TTFT 38 s, 1400 tok/s, 128 users, prompt 1000, output 500"
    >>> found = check("vllm serve Qwen/Qwen3-32B -tp 4", full, "4x H100")
    >>> print(found)  # doctest: +ELLIPSIS
    Qwen/Qwen3-32B on ...
    time between tokens: expected ..., yours 11 ms: ...
    Possible explanations, each with its prediction:
      only 15 of 128 users run at a time: places are full: time between tokens ... ms, ...
    Try next: more places (--max-num-seqs, or memory for them), which should give TPOT ... in all
    """
    seen, q, notes = _asked(command, measured, machine, chips, options)
    q.needs_machine()
    answer = ask_kernel_model(q)
    if not answer.feasible:
        raise ValueError(f"nothing to compare: {answer.status}: {answer.reason}")
    found = Check(answer, seen, notes=notes)
    if not found.numbers:
        raise ValueError("nothing to compare: give prompt and output, in tokens")
    if found.impossible:
        return found
    if not found.inside:
        found = replace(found, explained=tuple(_explained(found)))
    return replace(found, next=tuple(_next(found)))


def _asked(command, measured, machine, chips, options):
    """Return the benchmark, its question, and notes."""
    options = _without(options)
    notes = ()
    if isinstance(command, Question):
        seen = benchmark.read(_file(measured))
        said, *_ = parse_options({name: getattr(command, name) for name in command.words()} | options, chips)
    else:
        command = _file(command)
        measured = _file(measured)
        begun = benchmark.begins(command) if not measured and isinstance(command, str) else None
        if begun is not None:
            command, measured = command[:begun], command[begun:]
        if not measured:
            raise ValueError(f"the benchmark is missing: {benchmark.SUCH}")
        seen = benchmark.read(measured)
        drafts = {"acceptance_length": seen.load.get("acceptance_length")}
        asked = {"model": command, "machine": machine, **drafts, **options}
        said, notes, _ = parse_options(asked, chips)
        if said.keys().isdisjoint(("trace", "prompt_tokens")) and "prompt_tokens" in seen.load:
            # so that flags for requests are kept
            lengths = {name: seen.load[name] for name in LENGTHS if name in seen.load}
            said, notes, _ = parse_options(lengths | asked, chips)
        if said.get("draft_tokens") is None and "acceptance_length" not in options:
            said = _without(said, "acceptance_length")
    load = _without(seen.load, "acceptance_length")
    if "trace" in said:
        load = _without(load, "request_rate", *LENGTHS)
    if {"request_rate", "trace"} & {*load, *said}:  # open loop; one replica unless given
        load = _without(load, *LOOP) | {"replicas": 1}
        said = _without(said, *({*LOOP} - {*options}))
    if isinstance(said.get("output_tokens"), LengthDistribution):
        load = _without(load, "fixed_lengths")
    said = {**load, **said}
    if isinstance(said.get("concurrency"), float):  # by Little's law
        said["concurrency"] = max(round(said["concurrency"]), 1)
    if not said.keys() & {"concurrency", "request_rate", "trace", "batch"}:
        users = _users(seen.measured, float(said.get("output_tokens", 0)))
        said["concurrency"] = max(round(users), 1)
        how = f"{said['concurrency']:,} by Little's law, from rate and times" if users else "one is assumed"
        notes += (f"Users are not given: {how}.",)
    if "trace" not in said and not {*LENGTHS} <= {*said}:
        if "context" not in said:
            notes += ("Prompt and output are not given: a step at 4,096 tokens is compared.",)
        step = {"batch": said.get("concurrency", 1), "context": 4096, **said}
        said = _without(
            step, *LOOP, "fixed_lengths", *launch.REQUESTS, "prompt_tokens", "output_tokens", "replicas"
        )
    return seen, Question(**said), notes


def _users(measured, output):
    """Return the users of a closed loop by Little's law, from the rate and the time of an answer; 0 if not given.

    Examples
    --------
    >>> _users({"requests": 2, "e2e": 10}, 100), _users({"requests": 2, "ttft": 1, "tpot": 0.1}, 11)
    (20, 4.0)
    >>> _users({"output_rate": 22, "ttft": 1, "tpot": 0.1}, 11), _users({"output_rate": 640, "tpot": 0.05}, 0)
    (4.0, 32.0)
    """
    token = measured.get("tpot", 0)
    rate = measured.get("requests") or measured.get("output_rate", 0) / max(output, 1)
    whole = measured.get("ttft", 0) + (output - 1) * token if output and token else token
    return rate * measured.get("e2e", whole)


def _without(options, *names):
    """Return the options that are not None, without the named ones."""
    return {name: one for name, one in options.items() if one is not None and name not in names}


def _file(text):
    """Return the content of a file if the text is a path, else the text."""
    name = text.strip() if isinstance(text, str) else ""
    if "\n" in name or len(name) > 300 or name.endswith("config.json") or not isfile(name):
        return text
    with open(name, encoding="utf-8") as file:
        return file.read()


def changed(row, q, seen):
    """Return the question with a row's changes applied; None if the row does not apply or changes nothing."""
    changes = {name: None if one == "" else one for name, one in row["changes"].items()}
    own = calibration.format_name(q.formats[0]).partition(" ")[0]
    engine = calibration.engine(q.engine).name
    n = q.machine.count
    fits = (
        own in row.get("weights", (own,)), engine in row.get("engines", (engine,)),
        row.get("models", "") in q.model.name.lower(), (q.concurrency or 1) <= row.get("most_users", math.inf),
        not row.get("linked") or q.machine.chip.topology in LINKED and q.machine.domain >= n > 1,
    )  # fmt: skip
    if not all(fits):
        return None
    if (part := changes.pop("domain", None)) is not None:
        changes["machine"] = System(q.machine.chip, n, max(int(part * n), 1))
    if changes.get("max_num_seqs") == "running":
        running = seen.measured.get("output_rate", 0) * seen.measured.get("tpot", 0)
        if q.draft_tokens and not seen.load.get("acceptance_length"):
            running /= acceptance(q.acceptance_length, q.draft_tokens)
        full = 1 <= running < PLACES * (q.concurrency or 1) and not q.request_rate
        if not full:
            return None
        changes["max_num_seqs"] = max(round(running / q.resolved_layout.dp), 1)
    changes = {name: one.format(n=n) if isinstance(one, str) else one for name, one in changes.items()}
    other = q.replace(**changes)
    return other if other != q else None


def _answers(rows, q, seen):
    """Yield each row with the answer to its changed question; skip rows that do not apply or are infeasible."""
    for row in rows:
        try:
            other = changed(row, q, seen)
            answer = other and ask_kernel_model(other)
        except (ValueError, LookupError):
            continue  # impossible for this deployment
        if answer and answer.feasible:
            yield row, answer


def _explained(found):
    """Return the causes with which every number is near its interval, best match first."""
    explained = []
    for row, answer in _answers(table()["cause"], found.answer.question, found.benchmark):
        misses = replace(found, answer=answer).misses.values()
        one = Explanation(row, answer, math.hypot(*misses))
        if max(misses) <= NEAR and one.miss < math.hypot(*found.misses.values()) / 2:
            explained.append(one)
    return sorted(explained, key=lambda one: one.miss)[:NAMED]


def _next(found):
    """Return the flag to try next with its answer: the remedy of the best explanation, else the fastest change."""
    answer = found.answer
    q = answer.question
    if found.outside and found.faster:  # a flag's own prediction may be slower than the run
        return []
    if found.explained and (remedy := found.explained[0].cause.get("remedy")):
        return [(remedy, answer)]
    tried = (one for _, one in _answers(table()["try"], q, found.benchmark))
    best = max(tried, key=lambda one: one.throughput, default=answer)
    if best.throughput <= BETTER * answer.throughput:
        return []
    engine = {"sglang": "sglang", "compiled": "trtllm"}.get(q.engine, "vllm")
    flags, own = (_flags(one, engine) for one in (best.question, q))
    kept = {flag.split()[0] for flag in flags}  # of these only a value changes
    gone = ", ".join(flag for flag in sorted(own - flags) if flag.split()[0] not in kept)
    told = [" ".join(sorted(flags - own)), gone and f"leave out {gone}"]
    return [("; ".join(filter(None, told)) or f"a checkpoint in {best.question.weights}", best)]


def _flags(q, engine):
    """Return the flags that start an engine as a question has it, and the lines of its file of settings."""
    flags, file = launch.written(q, engine)
    return {*flags, *(f"{line} in extra.yml" for line in file)}
