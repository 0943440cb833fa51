"""Read benchmark results (printouts and JSON of the engines' tools, or words) as numbers in SI units.

``benchmark.toml`` lists the labels of each tool.
"""

import json
import re

from inferlib import validation
from inferlib.equation import frozen
from tokenprice import launch, parsing

_NUMBER = r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?"
SUCH = "give words such as 'TPOT 21.3 ms, 64 users'"


def table():
    """``benchmark.toml``, parsed."""
    return validation.read_package_toml(__file__, "benchmark.toml")


@frozen
class Benchmark:
    """Measured numbers of a benchmark (seconds, tokens a second), and the load that it reports."""

    measured: dict
    load: dict
    statistics: dict

    def __post_init__(self):
        if not self.measured:
            few = "a time between tokens, to the first token, or tokens/s"
            raise ValueError(f"the benchmark holds no number that is compared: {few}")


def _plain(label):
    return " ".join(re.findall(r"[a-z0-9]+", label.lower()))


def begins(text):
    """Return where a benchmark's printout begins in a text, or None."""
    headings = "ENGINE|PYTORCH|PERFORMANCE|REQUEST"  # of trtllm-bench
    pattern = rf"^[ \t]*(=+ ?Serving Benchmark Result|=+\s*\n= ?({headings})|.*GenAI-Perf|.*AIPerf|\{{)"
    found = re.search(pattern, text, re.MULTILINE)
    return found and found.start()


def read(text):
    """Parse a benchmark from a printout, JSON, or words.

    Raises
    ------
    ValueError
        In one line, if the text is truncated, holds two benchmarks, or is not understood.

    Examples
    --------
    >>> read("TPOT 20 ms, TTFT 400 ms, 64 users").measured
    {'tpot': 0.02, 'ttft': 0.4}
    """
    said = validation.instance("measured", text, str).strip()
    if not said:
        raise ValueError(f"the benchmark is empty: give a printout, JSON, or {SUCH[5:]}")
    if said.startswith(("{", "[")):
        pairs = _of_json(said)
    elif "Out Tok/sec" in said:
        pairs = _of_guide(said)
    elif (starts := [start for start in table()["starts"] if start in _plain(said)]) or _lines(said) > 2:
        pairs = _of_printout(said, starts)
    else:
        words = {}
        for name, number in _of_words(said):
            if words.setdefault(name, number) != number:
                raise ValueError(f"{name} is given twice: {words[name]:g} and {number:g}")
        found = {(name, "mean"): number for name, number in words.items()}
        return _made(found, {name: number for name, number in words.items() if name in table()["load"]})
    found = _printed(pairs := list(pairs))
    load = _load({name: number for (name, _), number in sorted(found.items(), reverse=True)})
    return _made(found, load | _cache_format(pairs))


def _lines(text):
    """Number of lines that have a known label."""
    return sum(_plain(line.rpartition(":")[0]) in table()["labels"] for line in text.splitlines())


def _of_printout(text, starts):
    lines = [line.strip() for line in text.splitlines()]
    for start in starts:
        begun = next(k for k, line in enumerate(lines) if start in _plain(line))
        if not any(re.match(table()["starts"][start], line) for line in lines[begun + 2 :]):
            raise ValueError(
                f"the printout is cut: the line that ends it is missing after {lines[-1][:60]!r}"
            )
    found = []
    for line in lines:
        label, *cells = re.split(r"[│┃|]", line.strip("|│┃"))
        if found and cells and not cells[0].strip():  # a label that did not fit on the line above
            found[-1][0] += f" {label}"
        else:
            found.append([label, cells[0]] if cells else [*line.rpartition(":")[::2]])
    return found


def _of_guide(text):
    """Yield labels and values of GuideLLM's table: a heading of two lines, and one row per load."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if "|" in line
    ]
    at = next(k for k, row in enumerate(rows) if "Out Tok/sec" in row)
    if len(rows) < at + 3:
        raise ValueError("the printout is cut: GuideLLM's table has a heading and no row")
    if len(rows) > at + 3:
        raise ValueError(f"{len(rows) - at - 2} benchmarks in one table: give one row of it")
    group = ""
    for heading, statistic, value in zip(*rows[at : at + 3], strict=False):
        group = heading or group
        yield f"{statistic} {group}", value


def _of_json(text):
    try:
        tree = json.loads(text)
    except json.JSONDecodeError:
        try:
            tree = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as mistake:
            where = f"line {mistake.lineno}, column {mistake.colno}"
            raise ValueError(f"the JSON is cut or broken at {where}") from None
    trees = tree.get("benchmarks", tree) if isinstance(tree, dict) else tree
    trees = trees if isinstance(trees, list) else [trees]
    if len(trees) != 1:
        raise ValueError(f"{len(trees)} benchmarks in one file: give one")
    if not isinstance(trees[0], dict):
        raise ValueError("the JSON holds no benchmark: an object of names and numbers was expected")
    return (
        (name, str(value)) for name, value in launch.flat(trees[0]) if not isinstance(value, (bool, list))
    )


def _of_words(text):
    for part in re.split(r"[;\n]|,(?=\s)|\b(?:and|at|for)\b", text):
        said = part.strip().rstrip(".")
        for label, (name, read) in table()["words"].items():
            ahead = "(?:output )?" if name == "output_rate" else ""
            ends = rf"\s*[:=@]?\s*(?P<after>\d.*)|{ahead}(?:throughput )?(?P<before>\d.*?)\s*(?:{label})"
            of = rf"(?:mean |median |average )?(?:{label}){ends}"
            if said and (found := re.fullmatch(of, said, re.IGNORECASE)):
                number = found["after"] or found["before"]
                if read != "parse_seconds":  # "1,234 ms" may mean 1.234
                    number = re.sub(r"(?<=\d),(?=\d{3})", "", number)
                yield name, getattr(parsing, read)(name, number)
                break
        else:
            if said:
                missing = ", and there is no such file" if re.fullmatch(r"\S*[a-z_]\.[a-z]\w*", said) else ""
                raise ValueError(f"{validation.short(repr, said)} is not understood{missing}: {SUCH}")


def _printed(pairs):
    """Return the numbers of labelled values, by quantity and statistic."""
    labels = table()["labels"]
    found = {}
    said = {}
    for label, value in pairs:
        name = _plain(label)
        number = re.match(_NUMBER, value.strip())
        ends = (
            name,
            *(" ".join(name.split()[k:]) for k in (1, 2, 3) if name.split()[k : k + 1] == ["metrics"]),
        )
        row = next((labels[end] for end in ends if end in labels), None)
        if row is None or not number:
            continue
        key = (row[0], row[1])
        number = float(number[0].replace(",", "")) * row[2]
        if found.setdefault(key, number) != number:
            raise ValueError(f"two benchmarks in one: {label.strip()!r} is {said[key]} and {value.strip()}")
        said[key] = value.strip()
    return found


def _cache_format(pairs):
    """Return the format of the KV cache if a printout states one, in an engine's words."""
    engine = launch.Launch("trtllm")
    for label, value in pairs:
        if _plain(label).endswith("kv cache dtype"):
            engine.take("kv-cache-dtype", value.strip())
    return engine.said


def _made(found, load):
    """Build the record: means rather than medians; inter-token latency stands in for a missing TPOT."""
    best = {name: (found[name, statistic], statistic) for name, statistic in sorted(found, reverse=True)}
    if "itl" in best:
        best.setdefault("tpot", best["itl"])
    measured = {name: best[name][0] for name in table()["measured"] if best.get(name, (0,))[0] > 0}
    return Benchmark(measured, load, {name: best[name][1] for name in measured})


def _load(n):
    """Return the load that a printout reports: mean lengths, concurrency or rate, and requests per user.

    Examples
    --------
    >>> _load({"completed": 100, "total_input": 50_000, "total_output": 20_050, "concurrency": 8})
    {'concurrency': 8, 'prompt_tokens': 500.0, 'output_tokens': 200.5, 'requests_per_user': 12.5}
    >>> _load({"completed": 4, "concurrency": 8, "output_tokens": 200})  # no more at once than requests
    {'concurrency': 4, 'output_tokens': 200, 'requests_per_user': 1.0, 'fixed_lengths': True}
    >>> _load({"completed": 100, "request_rate": 2}), _load({"requests": 2, "e2e": 10.2})  # an open loop; Little's law
    ({'request_rate': 2}, {'concurrency': 20})
    >>> _load({"acceptance_length": 1, "prompt_tokens": 0}), _load({"acceptance_length": 1.5})  # no draft
    ({}, {'acceptance_length': 1.5})
    """
    load = {name: n[name] for name in table()["load"] if n.get(name, 0) > 0}
    done = n.get("completed")
    for name, tokens in (("prompt_tokens", "total_input"), ("output_tokens", "total_output")):
        if done and n.get(tokens):
            load.setdefault(name, n[tokens] / done)
    if load.get("acceptance_length", 2) <= 1:
        del load["acceptance_length"]
    if done and "request_rate" not in load:
        load["concurrency"] = min(load.get("concurrency", done), done)
        load.setdefault("requests_per_user", max(done / load["concurrency"], 1))
    if not done and not {"concurrency", "request_rate"} & set(load) and {"requests", "e2e"} <= set(n):
        load["concurrency"] = max(round(n["requests"] * n["e2e"]), 1)  # Little's law
    if load.get("output_tokens", 0.5) == int(load.get("output_tokens", 0.5)):
        load["fixed_lengths"] = True
    return load
