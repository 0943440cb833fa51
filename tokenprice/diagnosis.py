"""Is what was measured what should be: each number's interval, what would explain a miss, and what to try next."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Unpack

from inferlib.equation import frozen
from inferlib.system import Layout, System
from tokenprice import benchmark, constants, launch
from tokenprice.ask import Answer, sixth
from tokenprice.options import Asked
from tokenprice.question import Question, given, read
from tokenprice.speculation import acceptance
from tokenprice.words import durations, figures, in_words

NAMED = 2  # explanations that are named at most
BETTER = 1.03  # a flag that gains less is not worth trying
NEAR = 1.25  # widths within which all numbers lie where a cause is so: several have noise of their own
FAR = 3.0  # widths beyond which nothing here explains a number by chance
PLACES = 0.85  # of the users run at a time, or places are full


class Expected(NamedTuple):
    """What an answer says a benchmark should measure: the middle, and what holds it in 80 % of cases."""

    middle: float
    low: float
    high: float

    def misses(self, value):
        """How many widths of the interval a value lies from the middle, in logarithms."""
        width = self.high / self.middle if value > self.middle else self.middle / self.low
        return math.log(value / self.middle) / math.log(max(width, 1.02))


class Cause(NamedTuple):
    """What may hold an engine back: in words, the flag that mends it, and the question in which it is so."""

    name: str
    says: str
    remedy: str
    asked: Callable  # of a question and a benchmark; None where it cannot be so


def _places(q, seen):
    running = seen.measured.get("output_rate", 0) * seen.measured.get("tpot", 0)
    running = running / (q.length or 1) if q.drafted and not seen.load.get("length") else running
    users = q.users or 1
    copies = q.lies.dp
    if (
        not 1 <= running < PLACES * users
        or q.arrivals
        or q.max_num_seqs
        and q.max_num_seqs * copies <= running * 1.2
    ):
        return None
    return q.replace(max_num_seqs=max(round(running / copies), 1))


def _serving(q, engine):
    own = constants.engine(q.engine).name
    return q.replace(engine=engine) if own in ("serving", None) and q.engine != engine else None


def _boxes(q, seen):
    machine, at = q.machine, q.lies
    if machine.count < 2 or machine.domain < machine.count or max(at.tp, at.ep) < 2:
        return None
    return q.replace(machine=System(machine.chip, machine.count, machine.count // 2))


def _shared(q, seen):
    machine, at = q.machine, q.lies
    if max(at.tp, at.ep) < 2 or machine.chip.topology not in ("switch", "bridge"):
        return None
    return q.replace(machine=System(machine.chip, machine.count, 1))


def _weights(q, format, among):
    own = constants.format_name(q.formats[0])
    kept = None if format == "bf16" else q.keep
    return q.replace(weights=format, keep=kept) if own.partition(" ")[0] in among else None


CAUSES = (
    Cause("places", "only {n} of {users} users run at a time: places are full", "--max-num-seqs", _places),
    Cause("at once", "all prompts come at once", "--max-concurrency",
          lambda q, seen: q.replace(rounds=1, equal=True) if q.users and q.users > 1 and q.rounds is None else None),
    Cause("apart", "users start apart, not all at once", "--num-prompts",
          lambda q, seen: q.replace(rounds=None, equal=None) if q.rounds else None),
    Cause("eager", "kernels are started one by one (eager mode)", "--enforce-eager",
          lambda q, seen: _serving(q, "eager")),
    Cause("boxes", "one instance lies on two boxes", "--pipeline-parallel-size", _boxes),
    Cause("links", "chips send over PCIe, not over their own links", "--tensor-parallel-size", _shared),
    Cause("16 bits", "weights run in 16 bits", "--quantization",
          lambda q, seen: _weights(q, "bf16", ("fp8", "fp4", "int8", "int4", "mxfp4"))),
    Cause("weight-only", "weights of 4 bits are multiplied in 16", "--quantization",
          lambda q, seen: _weights(q, "int4", ("fp4", "mxfp4"))),
    Cause("fewer bits", "weights run in 8 bits", "--quantization",
          lambda q, seen: _weights(q, "fp8", ("bf16",)) if "fp8" in q.machine.chip.peaks else None),
    Cause("cache", "the cache is kept in 16 bits", "--kv-cache-dtype",
          lambda q, seen: q.replace(cache="bf16") if q.formats[1] != "bf16" else None),
    Cause("drafts", "drafts are not accepted", "--speculative-config",
          lambda q, seen: q.replace(length=1) if q.drafted else None),
    Cause("engine", "an engine of its time (vLLM of 2024)", "pip install --upgrade",
          lambda q, seen: _serving(q, "python-2024")),
    Cause("prefix", "prompts are in the cache already", "--no-enable-prefix-caching",
          lambda q, seen: q.replace(cached="95%") if isinstance(q.prompt, (int, float)) and not q.cached else None),
)  # fmt: skip


def expected(answer) -> dict:
    """What a benchmark of an answer's question should measure, by quantity."""
    q, r = answer.question, answer.request
    found = {"tpot": Expected(answer.seconds, *answer.span)}
    if r is None:
        rate = q.workload.batch / answer.seconds
        factor = answer.high / answer.seconds
        return found | {"output_rate": Expected(rate, rate / factor, rate * factor)}
    found["ttft"] = Expected(r.first_token, *r.first_span)
    rest = max(float(q.output) - 1, 0)
    ends = (
        r.seconds,
        *(first + rest * token for first, token in zip(r.first_span, r.token_span, strict=True)),
    )
    found["e2e"] = Expected(*ends)
    rate = answer.throughput
    if q.arrivals:
        spans = {"output_rate": Expected(rate, rate / 1.05, rate * 1.05)}  # as many as come
    else:
        spans = {"output_rate": Expected(rate, rate * ends[0] / ends[2], rate * ends[0] / ends[1])}
    per = {
        "total_rate": (float(q.prompt) + float(q.output)) / float(q.output),
        "requests": 1 / float(q.output),
    }
    one = spans["output_rate"]
    return found | spans | {name: Expected(*(by * value for value in one)) for name, by in per.items()}


@frozen
class Explanation:
    """A cause, the answer in which it is so, and how many widths its numbers miss the measured ones in the mean."""

    cause: Cause
    answer: Answer
    miss: float

    @property
    def says(self):
        """The cause in words."""
        q = self.answer.question
        n = (q.max_num_seqs or 0) * q.lies.dp
        return self.cause.says.format(n=n, users=figures(q.users or 1))


@frozen
class Check:
    """What :func:`check` found: an answer, what was measured, what explains a miss, and what to try next."""

    answer: Answer
    benchmark: benchmark.Benchmark
    expected: dict
    explained: tuple = ()
    next: tuple = ()
    notes: tuple = ()

    @property
    def outside(self) -> tuple:
        """The quantities whose measured number lies outside the interval."""
        return tuple(
            name for name, value in self._compared().items() if abs(self.expected[name].misses(value)) > 1
        )

    @property
    def inside(self) -> bool:
        """Whether every number lies in its interval."""
        return not self.outside

    def _compared(self):
        return {name: value for name, value in self.benchmark.measured.items() if name in self.expected}

    def to_dict(self) -> dict:
        """Everything as plain numbers and texts, in SI units."""
        rows = {
            name: {"measured": value, **self.expected[name]._asdict(), "inside": name not in self.outside}
            for name, value in self._compared().items()
        }
        explained = [
            {
                "cause": one.cause.name,
                "says": one.says,
                "flag": one.cause.remedy,
                "seconds": one.answer.seconds,
            }
            for one in self.explained
        ]
        nexts = [
            {"flag": flag, "seconds": one.seconds, "tokens_per_second": one.throughput}
            for flag, one in self.next
        ]
        return {
            "question": self.answer.question.words(), "inside": self.inside, "numbers": rows, "explained": explained,
            "next": nexts, "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self):
        names = benchmark.table()["measured"]
        lines = [str(self.answer).splitlines()[0]]
        for name, value in self._compared().items():
            one, verdict = self.expected[name], "outside" if name in self.outside else "inside"
            statistic = (
                "" if self.benchmark.statistics[name] == "mean" else f" ({self.benchmark.statistics[name]})"
            )
            span = f"{_said(name, one.low)} to {_said(name, one.high)}"
            ratio = f", {figures(value / one.middle)} times what it should be" if verdict == "outside" else ""
            lines.append(
                f"{names[name]}: expected {span}, yours {_said(name, value)}{statistic}: {verdict}{ratio}"
            )
        left = [names[name] for name in self.benchmark.measured if name not in self.expected]
        lines += [f"Not compared: {', '.join(left)} (give prompt and output)"] if left else []
        if self.outside and self.explained:
            lines.append("What would explain it, each asked:")
            for one in self.explained:
                told = expected(one.answer)
                each = (
                    f"{names[name]} {_said(name, told[name].middle)}"
                    for name in self._compared()
                    if name in told
                )
                lines.append(f"  {one.says}: {', '.join(each)}")
        elif self.outside:
            worst = max(
                self.outside, key=lambda name: abs(self.expected[name].misses(self.benchmark.measured[name]))
            )
            by = self.benchmark.measured[worst] / self.expected[worst].middle
            more = "; this far off something else differs, or the model is wrong" if self.far else ""
            lines.append(
                f"Nothing that was asked explains it ({', '.join(cause.name for cause in CAUSES)}); a clock, a power "
                "limit or other work on the chips would make all times alike "
                f"{figures(max(by, 1 / by))} times as long{more}"
            )
        for flag, one in self.next:
            lines.append(f"Try next: {flag}, which should give {_gives(one)}")
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    @property
    def far(self) -> bool:
        """Whether a number misses by so much that it is no matter of luck."""
        return any(
            abs(self.expected[name].misses(self.benchmark.measured[name])) > FAR for name in self.outside
        )


def _said(name, value):
    return durations(value) if name in ("tpot", "ttft", "e2e") and value >= 0.1 else (
        f"{figures(1e3 * value)} ms" if name in ("tpot", "ttft", "e2e") else figures(value)
    )  # fmt: skip


def _gives(answer):
    rate = f"{figures(answer.throughput)} tokens/s in all"
    low, high = (figures(1e3 * end) for end in answer.span)
    return f"{figures(1e3 * answer.seconds)} ms per token ({low} to {high}), {rate}"


def check(command, measured="", machine=None, /, *, chips=None, **options: Unpack[Asked]) -> Check:
    """Whether a benchmark is what a deployment should give, what would explain it if not, and which flag to try next.

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

    Examples
    --------
    >>> found = check("vllm serve Qwen/Qwen3-32B -tp 4", "TPOT 10.5 ms, 16 users, prompt 1k, output 500", "4x H100")
    >>> found.inside
    True
    """
    seen, q, notes = asked(command, measured, machine, chips, options)
    answer = sixth(q)
    if not answer.feasible:
        raise ValueError(f"nothing to compare: {answer.status}: {answer.reason}")
    base = expected(answer)
    compared = {name: value for name, value in seen.measured.items() if name in base}
    if not compared:
        raise ValueError("nothing to compare: give prompt and output, in tokens")
    found = Check(answer, seen, base, notes=notes)
    if not found.inside:
        found = replace(found, explained=tuple(_explained(q, seen, compared)))
    return replace(found, next=tuple(_next(q, answer, found.explained)))


def asked(command, measured, machine, chips, options):
    """The benchmark, the question that it is about, and sentences."""
    if isinstance(command, Question):
        said, notes = command.words() | {"machine": command.machine, "model": command.model}, ()
        seen = benchmark.read(measured)
    else:
        command, measured = _apart(_file(command), _file(measured))
        seen = benchmark.read(measured)
        length = {"length": seen.load["length"]} if "length" in seen.load and "length" not in options else {}
        said, notes = given({"model": command, "machine": machine, **options, **length})
        if "drafted" not in said:
            said = {name: one for name, one in said.items() if name != "length" or name not in length}
    load = dict(seen.load)
    load.pop("length", None)
    drawn = isinstance(said.get("output"), str)
    if load.get("arrivals") or said.get("arrivals"):
        for name in ("users", "rounds", "equal"):
            load.pop(name, None)
            said = {key: one for key, one in said.items() if key != name or options.get(name) is not None}
    said = {**{name: one for name, one in load.items() if not (drawn and name == "equal")}, **_kept(said)}
    if said.get("arrivals"):
        said.setdefault("machines", 1)
    if said.get("prompt") is None or said.get("output") is None:
        users = said.pop("users", None)
        said = {
            name: one
            for name, one in said.items()
            if name not in ("prompt", "output", "rounds", "equal", "chunk", "max_num_seqs")
        }
        said.setdefault("batch", users or 1)
        notes += (
            ("Prompt and output are not given: a step at 4,096 tokens is compared.",)
            if "context" not in said
            else ()
        )
    else:
        said.setdefault("users", 1) if not said.get("arrivals") else None
    return seen, read(Question, said, chips), notes


def _kept(said):
    return {name: one for name, one in said.items() if one is not None}


def _file(text):
    """The text of a file that is named, else the text."""
    from os.path import isfile

    if isinstance(text, str) and "\n" not in text and len(text) < 300 and isfile(text.strip()):
        if not text.strip().endswith("config.json"):
            with open(text.strip(), encoding="utf-8") as file:
                return file.read()
    return text


def _apart(command, measured):
    """A command and the benchmark that stands below it."""
    if measured or not isinstance(command, str):
        return command, measured
    begun = re_start(command)
    if begun is None:
        raise ValueError(
            "the benchmark is missing: give a printout, JSON, or words such as 'TPOT 21.3 ms, 64 users'"
        )
    return command[:begun], command[begun:]


def re_start(text):
    """Where a benchmark begins in a text; None where it holds none."""
    import re

    at = re.search(
        r"^[ \t]*(=+ ?Serving Benchmark Result|=+\s*\n= ?(PYTORCH|PERFORMANCE|REQUEST)|.*GenAI-Perf|.*AIPerf|\{)",
        text,
        re.MULTILINE,
    )
    return at and at.start()


def _explained(q, seen, compared):
    """The causes in which every number is inside, the nearest first."""
    found, start = [], _miss(expected(sixth(q)), compared)
    for cause in CAUSES:
        try:
            other = cause.asked(q, seen)
            answer = other and sixth(other)
        except (ValueError, LookupError):
            continue  # it cannot be so
        if not answer or not answer.feasible:
            continue
        miss, most = _miss(expected(answer), compared)
        if most <= NEAR and miss < start[0] / 2:
            found.append(Explanation(cause, answer, miss))
    return sorted(found, key=lambda one: one.miss)[:NAMED]


def _miss(told, compared):
    """Root mean square and greatest of the widths that measured numbers lie from what is expected."""
    miss = [abs(told[name].misses(value)) for name, value in compared.items() if name in told]
    return math.sqrt(sum(one**2 for one in miss) / len(miss)), max(miss)


def _next(q, answer, explained):
    """The flag to try next and what it should give: without what explains a miss, else what is fastest."""
    for one in explained:
        if one.cause.name in ("eager", "engine", "boxes", "links"):
            flag = f"leave out {one.cause.remedy}" if one.cause.name == "eager" else one.cause.remedy
            return [(flag, answer)]
    tries, engine = [], next((name for name in launch.ENGINES if q.engine and name in q.engine), "vllm")
    fp8 = "fp8" in q.machine.chip.peaks
    if fp8 and q.formats[1] == "bf16":
        tries.append(("cache", q.replace(cache="fp8")))
    if fp8 and constants.format_name(q.formats[0]) == "bf16":
        tries.append(("weights", q.replace(weights="fp8")))
    if q.engine == "eager":
        tries.append(("eager", q.replace(engine="serving")))
    at, count = q.lies, q.machine.count
    if q.model.sparse and count > 1 and at.pp == 1:
        tries += [
            ("layout", q.replace(layout=one))
            for one in (Layout(tp=count, ep=count), Layout(tp=1, ep=count, dp=count))
            if one != at
        ]
    if q.max_num_seqs and q.users and q.users > q.max_num_seqs * at.dp:
        tries.append(("places", q.replace(max_num_seqs=None)))
    if not q.drafted and "deepseek" in q.model.name.lower() and (q.users or 1) <= 32:
        tries.append(("drafts", q.replace(drafted=3, length=acceptance("DeepSeek R1, MTP", 3))))
    found = []
    for what, other in tries:
        try:
            one = sixth(other)
        except (ValueError, LookupError):
            continue
        if one.feasible and one.throughput > BETTER * answer.throughput:
            found.append((one.throughput, _flag(what, other, engine), one))
    return [(flag, one) for _, flag, one in sorted(found, key=lambda row: -row[0])[:1]]


def _flag(what, q, engine):
    """The flags of a change, as the engine calls them."""
    said = launch.command(q, engine) or launch.command(q, "vllm")
    words_ = {
        "cache": "kv-cache-dtype|cache_config.dtype", "weights": "quantization", "drafts": "speculative[a-z-]*",
        "layout": "tensor-parallel-size|data-parallel-size|enable-expert-parallel|enable-dp-attention|tp|dp|ep",
    }  # fmt: skip
    import re

    if what == "eager":
        return "leave out --enforce-eager"
    if what == "places":
        return "--max-num-seqs as many as there are users"
    parts = re.findall(rf"--(?:{words_[what]})(?:_size)?(?: (?!--)(?:'[^']*'|\S+))?", said)
    return " ".join(parts) or f"{what} {in_words(q.lies) if what == 'layout' else ''}".strip()
