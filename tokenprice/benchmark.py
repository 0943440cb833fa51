"""What a benchmark measured: printouts and JSON of the engines' tools, or words, read to numbers in SI units.

What a line says stands in ``benchmark.toml``, a row each.
"""

import json
import re
import tomllib
from functools import cache

from inferlib import checks
from inferlib.equation import frozen
from tokenprice import words

_NUMBER = r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?"
_UNIT = "ms|us|seconds|sec|s|tok(?:en)?s?/s(?:ec)?|req(?:uest)?s?/s"
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "": 1.0}


@cache
def table():
    """``benchmark.toml``, read."""
    return tomllib.loads(checks.beside(__file__, "benchmark.toml"))


@frozen
class Benchmark:
    """Numbers that a tool measured, in seconds and tokens a second, and the load that it says it put on the engine."""

    measured: dict
    load: dict
    statistics: dict

    def __post_init__(self):
        if not self.measured:
            raise ValueError(
                "the benchmark holds no number that is compared: a time between tokens, to the first token, or tokens/s"
            )


def _plain(label):
    return " ".join(re.findall(r"[a-z0-9]+", label.lower()))


def read(text):
    """The benchmark that a text holds: a printout, JSON, the path of a file of either, or words.

    Raises
    ------
    ValueError
        In one line, where the text is cut, holds two benchmarks, or holds what is not understood.

    Examples
    --------
    >>> read("TPOT 20 ms, TTFT 400 ms, 64 users").measured
    {'tpot': 0.02, 'ttft': 0.4}
    """
    said = text.strip()
    if not said:
        raise ValueError(
            "the benchmark is empty: give a printout, JSON, or words such as 'TPOT 21.3 ms, 64 users'"
        )
    if said.startswith(("{", "[")):
        return _made(_of_json(said), printed=True)
    starts = [start for start in table()["starts"] if start in _plain(said)]
    if "Out Tok/sec" in said:
        return _made(_of_guide(said), printed=True)
    if starts or sum(_plain(line.rpartition(":")[0]) in table()["labels"] for line in said.splitlines()) > 2:
        return _made(_of_printout(said, starts), printed=True)
    return _made(_of_words(said))


def _of_printout(text, starts):
    lines = [line.strip().strip("|│┃").strip() for line in text.splitlines()]
    for start in starts:
        begun = next(k for k, line in enumerate(lines) if start in _plain(line))
        ends = table()["starts"][start]
        raw = text.strip().splitlines()
        if not any(re.match(ends, line.strip()) for line in raw[begun + 2 :]):
            raise ValueError(
                f"the printout is cut: the line that ends it is missing after {lines[-1][:60]!r}"
            )
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"[│┃|]", line)]
        if len(cells) > 1:
            label, value = cells[0], cells[1]
        else:
            label, sign, value = line.rpartition(":")
            if not sign:
                continue
        yield label, value


def _of_guide(text):
    """The table of GuideLLM: a heading of two lines, and a row for each load."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if "|" in line
    ]
    at = next(k for k, row in enumerate(rows) if "Out Tok/sec" in row)
    groups, last = [], ""
    for cell in rows[at]:
        last = cell or last
        groups.append(last)
    if len(rows) < at + 3:
        raise ValueError("the printout is cut: GuideLLM's table has a heading and no row")
    if len(rows) > at + 3:
        raise ValueError(f"{len(rows) - at - 2} benchmarks in one table: give one row of it")
    for group, statistic, value in zip(groups, rows[at + 1], rows[at + 2], strict=False):
        yield f"{statistic} {group}", value


def _of_json(text):
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        tree = json.loads(text)
    except json.JSONDecodeError:
        try:
            trees = [json.loads(line) for line in lines]
        except json.JSONDecodeError as mistake:
            raise ValueError(
                f"the JSON is cut or broken at line {mistake.lineno}, column {mistake.colno}"
            ) from None
        tree = trees
    trees = tree.get("benchmarks", tree) if isinstance(tree, dict) else tree
    if isinstance(trees, list):
        if len(trees) != 1:
            raise ValueError(f"{len(trees)} benchmarks in one file: give one")
        trees = trees[0]
    if not isinstance(trees, dict):
        raise ValueError("the JSON holds no benchmark: an object of names and numbers was expected")
    yield from _leaves(trees, "")


def _leaves(tree, at):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{at}{key} ")
        elif isinstance(value, (int, float, str)) and not isinstance(value, bool):
            yield f"{at}{key}", str(value)


def _of_words(text):
    for part in re.split(r"[;\n]|,(?=\s)|\band\b", text):
        part = part.strip().rstrip(".")
        if not part:
            continue
        found = re.search(
            rf"(?<![\w.])({_NUMBER})\s*([kKmM](?![a-zA-Z]))?\s*({_UNIT})?(?![\w/])",
            part,
        )
        if not found:
            raise ValueError(
                f"{checks.short(repr, part)} is not understood: give words such as 'TPOT 21.3 ms, 64 users'"
            )
        label = (part[: found.start()] + part[found.end() :]).strip(" :=@").lower()
        number, large, unit = found[1].replace(",", ""), found[2] or "", found[3] or ""
        if unit.startswith("tok"):
            user = "user" in label
            name = (
                "tpot" if user else "total_rate" if "total" in label or "prompts" in label else "output_rate"
            )
            yield name, str(1 / float(number) if user else float(number))
            continue
        if unit.startswith("req"):
            yield ("arrivals" if "arriv" in label else "requests"), number
            continue
        name = next(
            (
                name
                for words_, name in table()["words"].items()
                if re.fullmatch(rf"(?:mean |median |average )?(?:{words_})", label)
            ),
            None,
        )
        if name is None or (unit == "") == (name in ("tpot", "itl", "ttft", "e2e")):
            raise ValueError(
                f"{checks.short(repr, part)} is not understood: give words such as 'TPOT 21.3 ms, 64 users'"
            )
        scale = _UNITS[unit.removesuffix("onds")] if unit else {"": 1, "k": 1024, "m": 1024**2}[large.lower()]
        yield name, str(float(number) * scale)


def _made(pairs, printed=False):
    """The record of labels and values."""
    labels, found = table()["labels"], {}
    plain = {*table()["measured"], *table()["words"].values(), "arrivals"}
    for label, value in pairs:
        name = _plain(label)
        row = labels.get(name)
        if row is None and label in plain:
            row = [label, "mean", 1.0]
        if row is None:
            row = next(
                (
                    labels[end]
                    for end in (" ".join(name.split()[k:]) for k in (1, 2, 3))
                    if end.startswith("metrics") and end in labels
                ),
                None,
            )
        number = re.match(_NUMBER, str(value).strip())
        if row is None or not number:
            continue
        quantity, statistic, scale = row
        number = float(number[0].replace(",", "")) * scale
        key = quantity, statistic
        if key in found and found[key][0] != number:
            raise ValueError(
                f"two benchmarks in one: {label.strip()!r} is {found[key][1]} and {value.strip()}"
            )
        found[key] = number, str(value).strip()
    values = {}
    for (quantity, statistic), (number, _) in sorted(found.items()):
        if quantity not in values or statistic == "mean":
            values[quantity] = number, statistic
    numbers = {name: number for name, (number, _) in values.items()}
    if "tpot" not in numbers and "itl" in numbers:
        numbers["tpot"], values["tpot"] = numbers["itl"], values["itl"]
    measured = {name: numbers[name] for name in table()["measured"] if numbers.get(name, 0) > 0}
    return Benchmark(measured, _load(numbers, printed), {name: values[name][1] for name in measured})


def _load(n, printed):
    """The load that numbers of a printout say: lengths in the mean, users, how often each asked."""
    load = {
        name: n[name]
        for name in ("users", "arrivals", "prompt", "output", "length", "rounds")
        if n.get(name, 0) > 0
    }
    done = n.get("completed")
    for name, tokens in (("prompt", "input_tokens"), ("output", "output_tokens")):
        if done and n.get(tokens) and name not in load:
            load[name] = n[tokens] / done
    if load.get("length", 2) <= 1:
        load.pop("length")
    if done and "arrivals" not in load:
        load["users"] = min(load.get("users", n.get("running", done) if "users" in load else done), done)
        load.setdefault("rounds", max(done / load["users"], 1))
    if printed and not done and not {"users", "arrivals"} & set(load) and {"requests", "e2e"} <= set(n):
        load["users"] = max(round(n["requests"] * n["e2e"]), 1)  # Little's law
    if printed and load.get("output", 0.5) == int(load.get("output", 0.5)):
        load["equal"] = True
    return load


def lengths(load):
    """A load in words."""
    return ", ".join(f"{name} {words.figures(value)}" for name, value in load.items() if name != "equal")
