"""The command ``inferlib``: ask, decide, change, chips, models."""

import argparse
import json
import os
import sys
from difflib import get_close_matches

EXIT = "Exit code 0: answered; 1: no answer, with the reason; 2: a mistake in the question."


def main(argv=None):
    """Answer one command line.

    Parameters
    ----------
    argv : list of str, optional
        Those of the process when not given.

    Returns
    -------
    int
        0: answered; 1: no answer (it does not fit, nobody describes it, nothing keeps the promise); 2: a mistake,
        told in one line on the error stream.
    """
    try:
        asked = _parser().parse_args(argv)
        said, text, code = asked.run(asked)
        print(json.dumps(said, indent=1) if asked.json else text)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # somebody reads the first lines only
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, LookupError, TypeError, OSError) as mistake:
        print("inferlib:", " ".join(str(mistake).split()), file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line, with near names."""

    def error(self, message):
        words = message.split("'")
        if "invalid choice" in message and len(words) > 1:
            near = get_close_matches(words[1], _COMMANDS, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            message = f"no command '{words[1]}'{hint} Known: {', '.join(_COMMANDS)}"
        elif message.startswith("unrecognized arguments: "):
            typed = message.removeprefix("unrecognized arguments: ").split()[0].partition("=")[0]
            near = get_close_matches(typed, dict.fromkeys(_options()), n=2)
            message += f"; did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(message)


def _options():
    return [name for make in _COMMANDS.values() for name in _named(make)]


def _named(make):
    parser = argparse.ArgumentParser(add_help=False)
    make(parser)
    return [name for action in parser._actions for name in action.option_strings]


def _parser():
    parser = _Parser(
        prog="inferlib", epilog=EXIT,
        description="How fast and how cheaply can a large language model generate tokens, and what stops it?",
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for name, make in _COMMANDS.items():
        told = make.__doc__.strip().splitlines()[0]
        command = commands.add_parser(name, help=told, description=told, epilog=EXIT)
        make(command)
        command.add_argument("--json", action="store_true", help="numbers in SI units, for programs")
    return parser


def _model(parser):
    parser.add_argument("model", help="a name such as 'Llama 3.3 70B', or the path of a config.json")
    parser.add_argument("--weights", help="number format; that of the checkpoint, or bf16")
    parser.add_argument("--cache", help="number format of the cache; that of the checkpoint, or bf16")
    parser.add_argument(
        "--keep", nargs="+", default=[], metavar="PART=FORMAT", help="parts in another format: attention=bf16"
    )
    parser.add_argument(
        "--engine", help="compiled, serving (when not given, with a wider interval), python-2024"
    )
    parser.add_argument(
        "--chip-file", metavar="TOML", help="chips of your own, as in the catalogue's chips.toml"
    )


def _machine(parser):
    parser.add_argument("--chip", required=True, metavar="'4x H100'", help="how many of which chip")
    parser.add_argument("--layout", help="'TP8' (when not given), 'PP2 x TP8', 'DP8 EP8'")
    parser.add_argument("--batch", help="sequences decoded together; 1")
    parser.add_argument("--context", help="tokens behind each sequence, such as 8k; 4,096")
    parser.add_argument("--price", type=float, metavar="USD", help="of one chip for an hour; the catalogue's")


def _request(parser, required=False):
    parser.add_argument("--prompt", required=required, help="tokens of a question")
    parser.add_argument("--output", required=required, help="tokens of an answer")
    parser.add_argument("--cached", default=0, help="tokens of the prompt that are in the cache from before")
    parser.add_argument("--utilisation", type=float, default=1.0, help="part of the paid hours that are used")


def _ask(parser):
    """How fast is this model on these chips, how sure is that, what does it cost, what would help?"""
    _model(parser)
    _machine(parser)
    _request(parser)
    parser.add_argument("--users", help="users at a time who send such requests")
    parser.add_argument("--drafted", type=int, help="tokens proposed in each step")
    parser.add_argument("--length", help="tokens that a step yields: 2.6, or whose: 'DeepSeek R1, MTP'")
    parser.set_defaults(run=_run_ask)


def _decide(parser):
    """What is the cheapest machine that keeps a promise of speed and of the first token?"""
    _model(parser)
    parser.add_argument("--speed", type=float, help="tokens per second of each user, at least")
    parser.add_argument("--first-token", type=float, metavar="SECONDS", help="until the first token, at most")
    parser.add_argument(
        "--sure", action="store_true", help="the slow end of the interval keeps the promise too"
    )
    _request(parser, required=True)
    parser.add_argument("--chips", help="such as 'H100, B200'; all with a price and timed operators")
    parser.add_argument("--counts", help="chips of a machine, such as 1,2,4,8")
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="CHIP=USD",
        help="for a chip and hour: H100=2.5, H100=2-4",
    )
    parser.add_argument("--price-file", metavar="TOML", help="a line for each chip: H100 = 2.5, or [2, 4]")
    parser.add_argument("--top", type=int, default=5, help="how many offers to print")
    parser.set_defaults(run=_run_decide)


def _change(parser):
    """What must change, each resource alone, to reach a time or a price?"""
    _model(parser)
    _machine(parser)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--ms", type=float, help="milliseconds a token to reach")
    target.add_argument("--usd", type=float, help="dollars for a million output tokens to reach")
    parser.set_defaults(run=_run_change)


def _chips(parser):
    """The chips of the catalogue."""
    parser.add_argument("word", nargs="?", default="", help="only names that hold this")
    parser.set_defaults(run=_run_chips)


def _models(parser):
    """The models of the catalogue."""
    parser.add_argument("word", nargs="?", default="", help="only names that hold this")
    parser.set_defaults(run=_run_models)


_COMMANDS = {"ask": _ask, "decide": _decide, "change": _change, "chips": _chips, "models": _models}


def _run_ask(asked):
    from inferlib.serving.answer import answer

    said = answer(
        asked.model, asked.chip, batch=asked.batch, context=asked.context, prompt=asked.prompt, output=asked.output,
        cached=asked.cached, users=asked.users, price=asked.price, utilisation=asked.utilisation,
        layout=asked.layout, drafted=asked.drafted, length=asked.length, **_formats(asked), chips=_own(asked),
    )  # fmt: skip
    return said.to_dict(), str(said), 0 if said.feasible else 1


def _run_decide(asked):
    from inferlib.serving.answer import choose

    chips = [name.strip() for name in asked.chips.split(",")] if asked.chips else None
    counts = [_whole("--counts", n) for n in asked.counts.split(",")] if asked.counts else None
    shown = sys.stderr.isatty() and not asked.json
    found = choose(
        asked.model, speed=asked.speed, first_token=asked.first_token, prompt=asked.prompt, output=asked.output,
        cached=asked.cached, utilisation=asked.utilisation, sure=asked.sure, only=chips, counts=counts,
        prices=_prices(asked), progress=_progress if shown else None, **_formats(asked), chips=_own(asked),
    )  # fmt: skip
    return found.to_dict(), found.text(asked.top), 0 if found.offers else 1


def _run_change(asked):
    from inferlib.serving.answer import needed

    seconds = None if asked.ms is None else asked.ms / 1e3
    found = needed(
        asked.model, asked.chip, seconds=seconds, dollars_per_million=asked.usd, batch=asked.batch,
        context=asked.context, price=asked.price, layout=asked.layout, **_formats(asked), chips=_own(asked),
    )  # fmt: skip
    return found.to_dict(), str(found), 0


def _run_chips(asked):
    from inferlib.catalog import chips, load_chip
    from inferlib.serving.constants import lender

    rows = []
    for name in chips():
        chip = load_chip(name)
        if asked.word.lower() in name.lower():
            rows.append({
                "name": name, "memory_capacity": chip.memory_capacity, "memory_bandwidth": chip.memory_bandwidth,
                "peaks": dict(chip.peaks), "price": chip.price, "price_source": chip.sources.get("price"),
                "operators": lender(name),
            })  # fmt: skip
    lines = [f"{'chip':16} {'GB':>5} {'TB/s':>6} {'16-bit TFLOP/s':>14} {'$/h':>6}  operators timed on"]
    for row in rows:
        peak = row["peaks"].get("bf16") or row["peaks"].get("fp16")
        numbers = [
            _number(row["memory_capacity"], 1e9, 5), _number(row["memory_bandwidth"], 1e12, 6),
            _number(peak, 1e12, 14), _number(row["price"], 1, 6),
        ]  # fmt: skip
        timed = "itself" if row["operators"] == row["name"] else row["operators"]
        lines.append(" ".join([f"{row['name']:16}", *numbers]) + f"  {timed}")
    return rows, "\n".join(lines), 0 if rows else 1


def _number(value, unit, width):
    return f"{'-' if value is None else format(value / unit, '.4g'):>{width}}"


def _run_models(asked):
    from inferlib import catalog

    names = [*catalog.models(), *catalog.same_shapes(), *catalog.served()]
    rows = []
    for name in names:
        if asked.word.lower() not in name.lower():
            continue
        try:
            model = catalog.load_model(name)
        except ValueError:  # what the catalogue holds only to say what it lacks
            continue
        rows.append({"name": name, "parameters": float(model.n_params), "active": float(model.n_active)})
    lines = [f"{'model':50} {'parameters':>11} {'active':>8}"]
    lines += [f"{r['name']:50} {r['parameters'] / 1e9:9.4g} B {r['active'] / 1e9:6.3g} B" for r in rows]
    return rows, "\n".join(lines), 0 if rows else 1


def _formats(asked):
    keep = dict(_pair("--keep", text) for text in asked.keep) or None
    return {"weights": asked.weights, "cache": asked.cache, "keep": keep, "engine": asked.engine}


def _own(asked):
    if asked.chip_file is None:
        return None
    from inferlib.catalog import load_chips

    return load_chips(asked.chip_file)


def _prices(asked):
    """Dollars for a chip and hour: a number, or the lowest and the highest."""
    found = {}
    if asked.price_file is not None:
        import tomllib
        from pathlib import Path

        try:
            found = tomllib.loads(Path(asked.price_file).read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{asked.price_file} is not TOML: {error}") from None
    for text in asked.price:
        name, price = _pair("--price", text)
        try:
            numbers = [float(part) for part in price.split("-")]
        except ValueError:
            raise ValueError(f"--price is {text!r}, but must be like H100=2.5 or H100=2-4") from None
        found[name] = numbers[0] if len(numbers) == 1 else numbers
    return found


def _pair(option, text):
    name, sign, value = text.partition("=")
    if not (name.strip() and sign and value.strip()):
        raise ValueError(f"{option} is {text!r}, but must be like NAME=VALUE")
    return name.strip(), value.strip()


def _whole(option, text):
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{option} is {text.strip()!r}, but must hold whole numbers") from None


def _progress(machines):
    from tqdm import tqdm

    return tqdm(machines, unit="machine", leave=False, delay=1)
