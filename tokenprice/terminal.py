"""The command ``tokenprice``: one subcommand per verb, with the fields of the records as options."""

import argparse
import json
import os
import re
import sys
from dataclasses import fields
from functools import cache

from tokenprice import progress

BENCHMARK = (
    "a benchmark's output, its JSON, a file of either, or 'TPOT 21 ms, 64 users'; it may follow the command"
)
EXIT = "Exit code 0: answered; 1: no answer, with the reason; 2: a mistake in the question."
# Aliases of the terminal only; all others are in tokenprice.aliases.
ALSO = {"machine": ["--chip", "--gpu"], "chips": ["--chip"]}


def main(argv=None):
    """Run one command line; return 0 (answered), 1 (no answer) or 2 (an error, in one line on stderr)."""
    try:
        given = vars(_parsed(sys.argv[1:] if argv is None else list(argv)))
        as_json = given.pop("json")
        name = given.pop("command")
        progress.state["quiet"] = as_json
        found, text, code = _answer(name, {key: value for key, value in given.items() if value is not None})
        _print(json.dumps(found, indent=1) if as_json else as_option(text))
        return code
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (ValueError, LookupError, TypeError, OSError, ArithmeticError, ImportError) as mistake:
        from textwrap import shorten

        said = as_option(str(mistake))
        if isinstance(mistake, ArithmeticError):
            said = f"the numbers of this question cannot be calculated with ({said}): please report it"
        print("tokenprice:", shorten(said, 400, placeholder=" ..."), file=sys.stderr)
        return 2


def as_option(text):
    """Rewrite a message for Python as one for the terminal: options with dashes, commands for functions."""
    text = re.sub(r"(?:inferlib\.catalog|tokenprice)\.(models|chips)\(\)", r"'tokenprice \1'", text)
    return re.sub(r"\b(chips|prices?)=(?=[\s,);]|$)", r"--\1", text)


def _print(text):
    """Print in any encoding of the terminal."""
    if sys.stdout is None:
        return
    encoding = sys.stdout.encoding or "utf-8"
    if encoding != "utf-8":
        text = text.replace("×", "x").encode(encoding, "replace").decode(encoding)
    print(text)
    sys.stdout.flush()


class _Once(argparse.Action):
    """An option that may be given only once, under any of its names."""

    def __call__(self, parser, given, value, flag=None):
        if (first := getattr(given, self.dest)) is not self.default:
            name = self.option_strings[0][2:].replace("-", "_")
            raise ValueError(f"{name} is given twice: {first!r} and {value!r}")
        setattr(given, self.dest, value)


class _Parser(argparse.ArgumentParser):
    """Argument parser with one-line errors that suggest near names."""

    def __init__(self, **more):
        super().__init__(**more)
        self.register("action", None, _Once)

    def error(self, message):
        from difflib import get_close_matches

        from tokenprice.aliases import REFUSED

        words = message.split("'")
        if "invalid choice" in message:
            near = get_close_matches(words[1], COMMANDS)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            message = f"no command '{words[1]}'{hint} Known: {', '.join(COMMANDS)}"
        elif message.startswith("unrecognized arguments: "):
            given = message.removeprefix("unrecognized arguments: ") or "''"
            message = f"unrecognized arguments: {given}"
            typed = given.split()[0].partition("=")[0]
            near = get_close_matches(typed, self._known())
            if why := REFUSED.get(typed[2:].replace("-", "_")):
                message = f"{typed} {why}"
            elif typed in near:
                like = get_close_matches(typed, self._option_string_actions, 1, 0.8)
                own = (f", this one has {name}" for name in like)
                message += f"; {typed} belongs to another command{next(own, '')}"
            elif near:
                message += f"; did you mean {' or '.join(near)}?"
            elif not typed.startswith("-"):
                own = {"decide": ", and chips to try are --chips", "check": ", and the machine is --machine"}
                message += "; a name with blanks needs quotes" + own.get(self.prog.split()[-1], "")
        raise ValueError(message)

    @staticmethod
    def _known():
        return {option: None for name in COMMANDS for option in _command(name)._option_string_actions}


def _parsed(words):
    """Parse a command line; only the parser of its command is built."""
    at = next((k for k, word in enumerate(words) if word in COMMANDS), 0)
    if words and words[0].startswith("-"):  # options before the command
        words = [*words[at:], *words[:at]]
    if words and words[0] in COMMANDS:
        rest, flags = _of_engines(words[0], words[1:])
        return argparse.Namespace(**vars(_command(words[0]).parse_args(rest)), **flags)
    from inferlib import __version__

    about = "How fast and how cheaply can a large language model generate tokens, and what stops it?"
    parser = _Parser(prog="tokenprice", description=about, epilog=EXIT)
    parser.add_argument("--version", action="version", version=f"tokenprice {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for name, about in COMMANDS.items():
        commands.add_parser(name, help=about)
    return parser.parse_args(words)


def _of_engines(name, words):
    """Split a command line: words without the flags of engines and benchmarks, and a dict of those flags."""
    own = _command(name)._option_string_actions
    rest = []
    flags = {}
    words = list(words)
    while words:
        flag, sign, value = (word := words.pop(0)).partition("=")
        if value == "--":  # argparse would drop it
            raise ValueError(f"{flag} is '--', but must be a value")
        if flag.startswith("--") and (dashes := flag.replace("_", "-")) in own:
            flag = dashes
            word = dashes + sign + value
        if flag in own or name in ("models", "chips") or not re.match(r"--?[a-zA-Z]", flag):
            rest.append(word)
            continue
        from tokenprice import launch

        _, row = launch.known(flag) or (None, None)
        if row is None:
            rest.append(word)
            continue
        taken = value if sign else True if row.get("switch") else words.pop(0) if words else ""
        if row.get("says") == "model":
            rest.insert(0, taken)
        else:
            flags[flag.lstrip("-").replace("-", "_")] = taken
    return rest, flags


@cache
def _command(name):
    """The parser of one command."""
    from tokenprice.question import CHOSEN_BY_DECIDE, SLO, Question

    about = COMMANDS[name]
    decide = name == "decide"
    command = _Parser(prog=f"tokenprice {name}", description=about, epilog=EXIT, allow_abbrev=False)
    command.set_defaults(command=name)
    add = command.add_argument
    add("--json", action="store_true", help="numbers in SI units, for programs")
    if name in ("models", "chips"):
        add("word", nargs="?", help="only names that contain this")
        return command
    _options(command, Question, leave_out={*CHOSEN_BY_DECIDE} - {"concurrency"} if decide else ())
    if name not in ("ask", "check", "sweep"):
        _options(command, SLO)
    if name == "sweep":
        add(
            "--over",
            action="append",
            metavar="NAME=A,B",
            help="an option and its values, e.g. 'layout=TP8,PP2 TP4'",
        )
        add("--of", help="quantity to minimise: seconds (default), ttft, usd_per_million or usd_per_request")
        add("--tpot", help="choose among answers with at most this TPOT (default any), e.g. '50 tokens/s'")
    if decide:
        add("--sure", action="store_true", default=None, help="meet the targets at the slow end too")
        add(
            "--chips",
            *ALSO["chips"],
            dest="named_chips",
            help="chips to try (default: all timed), e.g. 'H100, B200'",
        )
        add("--counts", help="chips per machine (default: powers of two), e.g. 1,2,4,8")
        add("--top", default=5, help="how many offers to print (default 5), e.g. 10")
        add("--why", action="store_true", help="name the chips that were not tried, and why")
    if name in ("ask", "decide"):
        add("--link", action="store_true", help="print the calculator's address for this question")
    if name == "simulate":
        add("--requests", help="requests that count (default 5000), e.g. 20000")
        add("--seed", help="seed of the random numbers (default 0), e.g. 1")
    if name == "ask":
        mine = "measurements, a benchmark's printout, or a CSV (default none), e.g. 'users 32: 21.3 ms'"
        add("--measured", action="append", help=mine)
        add("--by", metavar="WHO", help="a source, or all (default: the kernel model), e.g. liminal2025")
    add(
        "--prices",
        action="append",
        metavar="CHIP=USD",
        help="$ per chip-hour (default: listed), e.g. H100=2-4",
    )
    add("--price-file", metavar="TOML", help="lines such as H100 = [2, 4] (default none), e.g. prices.toml")
    add("--chip-file", metavar="TOML", help="chips of your own (default none), e.g. mine.toml")
    return command


def _options(parser, kind, leave_out=()):
    """Add the fields of a record as options, in groups; model and machine are positional arguments."""
    from tokenprice.question import group_of, help_of

    groups = {}
    for f in fields(kind):
        about = f.metadata
        name = f.name
        group = group_of(name)
        if name in leave_out or not group and name != "model":
            continue
        if group and group not in groups:
            groups[group] = parser.add_argument_group(group)
        add = groups.get(group, parser).add_argument
        help = help_of(about).replace("%", "%%")
        if name == "model":
            add(name, help=help)
        elif name == "machine":
            second = ("benchmark", BENCHMARK) if "check" in parser.prog else (name, help)
            parser.add_argument(
                second[0], nargs="?", help=second[1], default=None if second[0] == name else ""
            )
            add("--machine", *ALSO[name], dest="named_machine", metavar="'4x H100'", help=help)
        else:
            flag = "--" + name.replace("_", "-")
            more = {"action": "append"} if name == "layer_formats" else {}
            add(flag, *_other_flags(name), dest=name, metavar=name.upper(), help=help, **more)


def _other_flags(name):
    """Return an option's aliases as flags."""
    from tokenprice.aliases import ALIASES

    others = [other for other, own in ALIASES.items() if own == name and other != "gpu"]
    return [f"--{other.replace('_', '-')}" for other in others]


def _answer(name, given):
    """Return the answer as numbers (for JSON), as text, and the exit code."""
    import tokenprice

    linked = given.pop("link", False)
    if name == "decide":
        found, text = _decide(**given)
    elif name == "sweep":
        found = _sweep(**given)
        text = str(found)
    else:
        found = getattr(tokenprice, name)(*_records(given), **given)
        text = f"{found}"
    if linked:
        return {"link": found.link}, found.link, 0
    if isinstance(found, list):
        return found, text, 0 if found else 1
    good = (getattr(found, name) for name in ("feasible", "inside", "offers") if hasattr(found, name))
    return found.to_dict(), text, 0 if next(good, True) else 1


def _sweep(over=(), of="seconds", tpot=None, **given):
    from tokenprice import sweep

    axes = {}
    for text in over:
        name, sign, values = text.partition("=")
        if not sign:
            raise ValueError(f"over is {text!r}, but must be like layout=TP8,PP2 TP4")
        name = name.strip().replace("-", "_")
        if name in axes:
            raise ValueError(f"over gives {name} twice")
        axes[name] = [value.strip() for value in values.split(",")]
    found = sweep(*_records(given), over=axes, **given)
    return found.best(of=of, tpot=tpot)


def _decide(model, top, why, **given):
    from tokenprice import decide
    from tokenprice.launch import is_launch
    from tokenprice.parsing import parse_int

    _own_chips(given)
    own = given.pop("chips", None)
    names = given.pop("named_chips", None)
    if names:
        given["chips"] = [(own or {}).get(name.strip(), name.strip()) for name in re.split("[,;]", names)]
    elif own:
        given["chips"] = own
    found = decide(model, **given)
    lines = [*found.commands.values(), *found.no_command] if is_launch(model) else []
    return found, "\n".join([found.text(parse_int("top", top), why), *lines])


COMMANDS = {
    "ask": "How fast is this model on these chips, how certain is that, what does it cost, what would help?",
    "change": "What must change, each resource alone, to reach a time or a price?",
    "decide": "What is the cheapest machine that meets targets for TPOT and TTFT?",
    "simulate": "How long does each request wait in a fleet, and what does a token within its targets cost?",
    "check": "Is a benchmark as fast as it should be; if not, what would explain it, and which flag to try next?",
    "sweep": "Which of several values is best at every point of a grid, and where do they tie?",
    "models": "The models known by name.",
    "chips": "The chips known by name.",
}


def _records(given):
    """Take model and machine (or a search word) out of the options; load the chips of ``--chip-file``."""
    if "model" not in given:
        return (given.pop("word", ""),)
    _own_chips(given)
    named = given.pop("named_machine", None)
    model = given.pop("model")
    machine = given.pop("machine", None)
    if machine is not None and named is not None:
        raise ValueError(f"machine is given twice: {machine!r} and {named!r}")
    return model, *([given.pop("benchmark")] if "benchmark" in given else []), machine or named


def _own_chips(given):
    given["prices"] = _prices(given.pop("prices", ()), given.pop("price_file", None))
    path = given.pop("chip_file", None)
    if path is not None:
        from tokenprice.files import load_chips

        given["chips"] = load_chips(path)


def _prices(pairs, path):
    """Parse prices in dollars per chip-hour: a number, or lowest and highest."""
    from tokenprice.files import read_toml
    from tokenprice.parsing import split_prices

    found = read_toml(path) if path is not None else {}
    for text in pairs:
        found |= split_prices(text)
    return found
