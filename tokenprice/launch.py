"""A launch command is a question: its flags, and those of a benchmark, are read to the fields of a question.

What a flag means stands in ``launch_flags.toml``, a row each. A text may hold commands of a shell (continued lines,
quotes, variables, containers) or a recipe in YAML.
"""

import json
import re
import shlex
import tomllib
from functools import cache
from os.path import isfile

from inferlib import checks
from inferlib.catalog import load_model, same_shapes
from inferlib.formats import FORMATS
from inferlib.system import Layout, System
from tokenprice import constants, words

ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
WORKSPACE, BUFFERS = (
    2e9,
    2e9,
)  # bytes that an engine takes beside weights and cache, as tokenprice.decode has them
COMMANDS = (
    "vllm serve, python -m sglang.launch_server, trtllm-serve, or docker run with an image of one of them"
)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_HERE = re.compile(r"^[^\n]*<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n(.*?)\n\s*\1[ \t]*$", re.DOTALL | re.MULTILINE)


@cache
def table():
    """``launch_flags.toml``, read."""
    return tomllib.loads(checks.beside(__file__, "launch_flags.toml"))


@cache
def flags(kind):
    """Every flag of an engine, of ``"benchmark"`` or of ``"words"`` by its name; idle ones have no field."""
    rows = {name: row for row in table()[kind] for name in row["names"].split()}
    for part, switch in (("idle", False), ("idle_switches", True)):
        rows |= {name: {"idle": True, "switch": switch} for name in table()[part].get(kind, "").split()}
    return rows


def plain(name):
    """A flag without dashes, as the table spells it."""
    return name.lstrip("-").replace("_", "-")


def known(name, engine=None):
    """Whose flag this is, and its row, among the engine's own, those of benchmarks, and of other engines; or None."""
    if not engine and name.lstrip("-") == "seed":
        return None  # of a simulation
    kinds = [engine, "benchmark"] if engine else ["words", *ENGINES, "benchmark"]
    return next(((kind, flags(kind)[plain(name)]) for kind in kinds if plain(name) in flags(kind)), None)


def unknown(name, engine):
    """The error for a flag that an engine does not have, with its own flag of the same meaning."""
    from difflib import get_close_matches

    own = flags(engine)
    elsewhere = [(kind, flags(kind)[plain(name)]) for kind in ENGINES if plain(name) in flags(kind)]
    same = [
        f"{ENGINES[engine]} calls it --{near}"
        for _, row in elsewhere if row.get("field") for near, mine in own.items()
        if mine.get("field") == row["field"] and (row["field"] != "layout" or mine.get("how") == row.get("how"))
    ]  # fmt: skip
    close = [f"did you mean --{near}?" for near in get_close_matches(plain(name), own, n=1, cutoff=0.8)]
    whose = f" (a flag of {ENGINES[elsewhere[0][0]]})" if elsewhere else ""
    hint = f"; {(same or close)[0]}" if same or close else ""
    return LookupError(
        f"no flag {checks.short(str, name)} of {ENGINES.get(engine, 'a benchmark')}{whose}{hint}"
    )


class Launch:
    """What a text, or flags one by one, have said: fields of a question, its load, and what has no effect."""

    def __init__(self, engine=None):
        self.engine, self.version = engine, ""
        self.model = self.served = None
        self.degrees, self.fields, self.drafts = {}, {}, {}
        self.load, self.tool = {}, ""
        self.idle, self.beyond, self.files = [], {}, {}
        self.eager, self.static, self.most = False, None, None
        self.nodes, self.visible = 1, None

    # Flags.

    def take(self, kind, flag, value):
        """Read one flag of an engine or of a benchmark."""
        row = flags(kind)[plain(flag)]
        if row.get("idle"):
            self.idle.append(flag)
        elif "beyond" in row:
            self.beyond[flag] = row["beyond"]
        elif row.get("how"):
            getattr(self, f"_{row['how']}")(flag, value)
        else:
            self.fields[row["field"]] = value

    def _real(self, flag, value):
        try:
            return float(str(value).replace("_", ""))
        except ValueError:
            raise ValueError(f"{flag} is {checks.short(repr, value)}, but must be a number") from None

    def _number(self, flag, value, least=1):
        number = self._real(flag, value) if re.fullmatch(r"[\d_.e+]+", str(value)) else -1.0
        if not least <= number < checks.LARGE or number != int(number):
            raise ValueError(
                f"{flag} is {checks.short(repr, value)}, but must be a whole number of at least {least}"
            )
        return int(number)

    def _model(self, flag, value):
        self.model = value

    def _served(self, flag, value):
        self.served = str(value).split()[0]

    def _degree(name):
        return lambda self, flag, value: self.degrees.update({name: self._number(flag, value)})

    _tp, _pp, _dp, _ep = map(_degree, ("tp", "pp", "dp", "ep"))

    def _experts(self, flag, value):
        self.degrees["experts"] = _true(value)

    def _sends(self, flag, value):
        self.degrees["experts"] = value != "none"

    def _attention_dp(self, flag, value):
        self.degrees["attention_dp"] = _true(value)

    def _quantization(self, flag, value):
        self.fields["quantization"] = checks.one_of(
            f"format of {flag}", str(value).lower(), table()["quantization"]
        )

    def _dtype(self, flag, value):
        said = str(value).lower()
        format = None if said == "auto" else words.format("weights", "fp32" if said == "float" else said)
        self.fields["dtype"] = None if format in ("bf16", "fp16") else format

    def _cache(self, flag, value):
        if str(value).lower() != "auto":
            self.fields["cache"] = words.format("cache", "fp8" if str(value).startswith("fp8_") else value)

    def _whole(self, flag, value):
        self.fields.pop("chunk", None)

    def _chunk(self, flag, value):
        if str(value) != "-1":
            self.fields["chunk"] = value

    def _static(self, flag, value):
        self.static = words.share(flag, value)

    def _longest(self, flag, value):
        if str(value) not in ("-1", "auto"):
            self.most = int(words.tokens(flag, value))

    def _eager(self, flag, value):
        self.eager = _true(value)

    def _compiled(self, flag, value):
        level = value.get("level", value.get("mode")) if isinstance(value, dict) else value
        modes = value.get("cudagraph_mode") if isinstance(value, dict) else None
        self.eager = self.eager or str(level) == "0" or modes == "NONE"

    def _boxes(self, flag, value):
        self.nodes = self._number(flag, value)

    def _file(self, flag, value):
        name = str(value)
        if name not in self.files and not isfile(name):
            self.beyond[flag] = f"what {name} holds is not in the text"
            return
        text = self.files.get(name) or open(name, encoding="utf-8").read()
        for key, one in flat(yaml(text)).items():
            self.setting(key, one)

    def _drafts(self, flag, value):
        said = value if isinstance(value, dict) else _json(flag, value)
        self.drafts["method"] = (
            said.get("method") or said.get("decoding_type") or ("model" if "model" in said else "")
        )
        names = ("num_speculative_tokens", "num_nextn_predict_layers", "max_draft_len")
        tokens = next((said[name] for name in names if name in said), None)
        if tokens is not None:
            self.drafts["tokens"] = self._number(flag, tokens)

    def _draft(name):
        return lambda self, flag, value: self.drafts.update({name: value})

    _draft_method, _draft_model = _draft("method"), _draft("model")
    _draft_tokens, _draft_steps = _draft("tokens"), _draft("steps")
    _draft_verified, _draft_branches = _draft("verified"), _draft("branches")

    # Load of a benchmark.

    def _length(self, flag, value):
        self.load[
            "prompt"
            if "in" in re.split(r"\W", plain(flag))[:2] or "input" in flag or "isl" in flag
            else "output"
        ] = words.tokens(flag, value)

    def _ratio(self, flag, value):
        self.load["ratio"] = checks.number(flag, self._real(flag, value), zero=True, maximum=1)

    def _prefix(self, flag, value):
        if self._real(flag, value):
            self.load["prefix"] = words.tokens(flag, value)

    def _users(self, flag, value):
        self.load["users"] = words.count(flag, value)

    def _rate(self, flag, value):
        if str(value).lower() not in ("inf", "-1", "0"):
            self.load["arrivals"] = words.rate(flag, value)

    def _requests(self, flag, value):
        self.load["requests"] = self._number(flag, value)

    def _guide(self, flag, value):
        said = dict(re.findall(r"(prompt_tokens|output_tokens)['\"]?\s*[=:]\s*(\d+)", str(value)))
        self.load |= {
            name: float(said[f"{name}_tokens"]) for name in ("prompt", "output") if f"{name}_tokens" in said
        }

    def _pattern(self, flag, value):
        self.load["pattern"] = value

    def _pace(self, flag, value):
        self.load["pace"] = value

    def setting(self, key, value):
        """Read one setting of a recipe, by its name or by that of the part that holds it."""
        kind = self.engine
        for name in (key, key.rpartition(".")[2], key.partition(".")[0]):
            if plain(name) in flags(kind):
                row = flags(kind)[plain(name)]
                if value is False and row.get("switch"):
                    return
                return self.take(kind, name, value)
        raise unknown(key, kind)

    # What all of it makes.

    def layout(self, model, machine=None):
        """The layout of the flags and the chips that it takes: all of a machine, where no command says how many."""
        d = {name: self.degrees.get(name, 1) for name in ("tp", "pp", "dp", "ep")}
        if self.model is None and machine is not None and "tp" not in self.degrees:
            d["tp"] = max(machine.count // (d["pp"] * d["dp"]), 1)
        tp, pp, dp, ep = d["tp"], d["pp"], d["dp"], d["ep"]
        spread, count = self.degrees.get("experts", False), tp * pp * dp
        if self.engine != "vllm" and (self.degrees.get("attention_dp") or "attention_dp" in self.degrees):
            copies = dp if self.engine == "sglang" else tp
            if tp % copies:
                raise ValueError(f"attention in {copies} copies does not divide {tp} chips")
            tp, dp, count, spread = tp // copies, copies, tp * pp, True
        if self.engine == "vllm" and dp > 1 and model.sparse:
            spread = True  # experts are cut over all ranks, in either way
        inside = count // pp
        ep = (inside if spread else min(ep, inside)) if model.sparse else 1
        return Layout(tp=tp, pp=pp, ep=ep, dp=dp), count

    def question(self, options):
        """The fields that a question takes, and sentences on what the flags say beside; what is given wins."""
        notes = []
        named = options.get("model") if self.model is None else self.model
        model = self._checkpoint(named) if isinstance(named, str) else named
        found = {name: value for name, value in self.fields.items() if name not in ("quantization", "dtype")}
        if self.model is not None:
            found["model"] = model
        if model is not None:
            model = words.model("model", model)
            found |= self._formats(model)
        found |= self._asked(options)
        if self.engine and self.model is not None:
            found["engine"] = "eager" if self.eager else f"{self.engine} {self.version}".strip()
        elif self.eager:
            found["engine"] = "eager"
        machine = options.get("machine")
        if model is not None and (self.degrees or self.model is not None):
            if machine is not None:
                machine = words.machine("machine", machine) if isinstance(machine, str) else machine
            layout, count = self.layout(model, machine)
            if machine is not None:
                machine, note = self._machine(machine, count)
                found["machine"] = machine
                notes += note
            if machine is not None or self.degrees:
                found["layout"] = layout
        if self.static is not None and isinstance(machine := found.get("machine", machine), (str, System)):
            machine = words.machine("machine", machine)
            mine = WORKSPACE + (BUFFERS if found.get("layout", Layout()).tp > 1 else 0)
            found["memory"] = min(self.static + mine / constants.memory(machine.chip), 1)
        found |= self._drafted(options, notes)
        is_request = any(one.get("prompt") is not None for one in (found, options))
        if not is_request:
            for name in ("chunk", "max_num_seqs"):
                found.pop(name, None)
        for flag, why in self.beyond.items():
            notes.append(f"Not described: {flag} ({why}).")
        if self.idle:
            notes.append(f"Without effect: {', '.join(dict.fromkeys(self.idle))}.")
        asked = {**found, **{name: one for name, one in options.items() if one is not None}}
        if self.most and is_request and not isinstance(asked["prompt"], str):
            longest = float(asked["prompt"]) + float(words.tokens("output", asked.get("output") or 0))
            if longest > self.most:
                raise ValueError(
                    f"prompt and output are {longest:,.0f} tokens, but the command allows {self.most:,}"
                )
        return found, tuple(notes)

    def _checkpoint(self, name):
        """A model's name, of which a folder of one's own shows the last part."""
        name = str(name)
        if isfile(name) or isfile(f"{name}/config.json"):
            return name
        tries = [name, name.rstrip("/").rpartition("/")[2], self.served or ""]
        tries += [re.sub(r".*models--([^/]+)--([^/]+).*", r"\1/\2", name)]
        for one in tries if name.startswith((".", "/", "~")) or name.count("/") > 1 else tries[:1]:
            try:
                load_model(one)
                return one
            except (LookupError, ValueError, OSError):
                continue
        return tries[1] if name.startswith(("/", "~", ".")) else name

    def _formats(self, model):
        """Formats that differ from the checkpoint's; its quantization decides over the type of its arithmetic."""
        said, dtype = self.fields.get("quantization"), self.fields.get("dtype")
        own = words.published(model)[0]
        format = table()["quantization"].get(said, "checkpoint")
        if own == "bf16" and format != "checkpoint":
            return {"weights": format}
        return {"weights": dtype} if dtype and own == "bf16" else {}

    def _machine(self, machine, count):
        if count > machine.count > 1:
            raise ValueError(f"machine is {machine}, but the command takes {count} chips")
        notes = [f"The command takes {count} of {machine.count} chips."] if count < machine.count else []
        if self.nodes > 1:
            return System(machine.chip, count, max(count // self.nodes, 1)), notes
        return (machine if count == machine.count else System(machine.chip, count)), notes

    def _drafted(self, options, notes):
        d = self.drafts
        tokens = d.get("tokens")
        if tokens is None and d.get("verified") and int(d.get("branches", 1)) > 1:
            tokens = int(d["verified"]) - 1
        tokens = d.get("steps") if tokens is None else tokens
        if not d or tokens is None:
            if d:
                notes.append("Not described: drafts (how many tokens is not in the command).")
            return {}
        tokens = self._number("drafted", tokens)
        if options.get("length") is not None:
            return {"drafted": tokens}
        method = str(d.get("method", "")).lower()
        if "eagle" in method and "deepseek" in str(self.model).lower():
            method = "mtp"  # the model's own head, which SGLang serves by this name
        curve = next((curve for word, curve in table()["drafts"].items() if word in method), None)
        if curve is None:
            notes.append("Not described: drafts (how many are accepted depends on the text: give length).")
            return {}
        from tokenprice.speculation import acceptance, measured

        length = acceptance(curve, min(tokens, len(measured()[curve]["length"])))
        notes.append(
            f"{length:g} tokens a step are taken from {curve}: give length, as the engine's log says."
        )
        return {"drafted": tokens, "length": length}

    def _asked(self, options):
        """Prompt, output, users or arrivals, and the protocol of the benchmark, with its tool's own defaults."""
        load, tool = dict(self.load), self._tool()
        if not load and not self.tool:
            return {}
        given = {name: one for name, one in options.items() if one is not None}
        if "pace" in load:
            pattern = str(load.pop("pattern", "concurrent"))
            pace = str(load.pop("pace")).strip("[]").split(",")
            if len(pace) > 1:
                raise ValueError(f"--rate is {','.join(pace)}, several loads: give one")
            name = "users" if pattern in ("concurrent", "concurrency") else "arrivals"
            load[name] = self._real("--rate", pace[0])
        load.pop("pattern", None)
        for name in ("prompt", "output"):
            if name not in load and name in tool and name not in given:
                load[name] = tool[name]
        ratio, sglang = load.pop("ratio", tool.get("ratio")), "sglang" in self.tool
        found = {name: load[name] for name in ("prompt", "output") if name in load}
        prefix, requests = load.pop("prefix", None), load.pop("requests", tool.get("requests"))
        equal = ratio is None or ratio == (1 if sglang else 0)
        if not equal:
            for name, most in found.items():
                low, high = (
                    (max(most * ratio, 1), most) if sglang else (most * (1 - ratio), most * (1 + ratio))
                )
                found[name] = f"{low:.0f}-{high:.0f}"
        if prefix and isinstance(found.get("prompt"), (int, float)):
            found["prompt"] += prefix
            found["cached"] = prefix
        if "arrivals" in load:
            return found | {name: load[name] for name in ("arrivals", "users") if name in load}
        users = load.get("users") or given.get("users")
        if users is None and requests and "arrivals" not in given:
            users, found["rounds"] = requests, 1
        elif requests and "arrivals" not in given:
            found["rounds"] = max(requests / float(words.count("users", users)), 1)
        if users is not None:
            found["users"] = users
            if equal and self.tool:
                found["equal"] = True
        return found

    def _tool(self):
        return next((own for name, own in table()["tools"].items() if name in self.tool), {})


def _true(value):
    return str(value).lower() not in ("false", "0", "no", "none")


def _json(flag, value):
    try:
        said = json.loads(value)
    except (json.JSONDecodeError, TypeError):
        said = None
    if not isinstance(said, dict):
        raise ValueError(f"{flag} is {checks.short(repr, value)}, but must be JSON between braces")
    return said


def flat(tree, at=""):
    """Nested settings, each by its path."""
    found = {}
    for key, value in tree.items():
        name = f"{at}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value}
    return found


def yaml(text):
    """A recipe: settings, nested by indentation, and lists; no other part of YAML is read."""
    root: dict = {}
    stack: list = [(-1, root, None, None)]
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not bare.strip() or bare.strip() in ("---", "..."):
            continue
        depth, said = len(bare) - len(bare.lstrip()), bare.strip()
        item = said.startswith("- ") or said == "-"
        while depth < stack[-1][0] or depth == stack[-1][0] and not (item and isinstance(stack[-1][1], list)):
            stack.pop()
        _, held, outer, key = stack[-1]
        if item:
            if not isinstance(held, list):
                if outer is not None and held == {}:
                    held = outer[key] = []
                    stack[-1] = (depth, held, outer, key)
                elif isinstance(held, dict) and stack[-1][3] is None:
                    raise ValueError(f"the recipe is not understood at {checks.short(repr, said)}")
            held.append(_scalar(said[1:].strip()))
            continue
        name, sign, value = said.partition(":")
        if not sign or value and not value.startswith(" ") or isinstance(held, list):
            raise ValueError(f"the recipe is not understood at {checks.short(repr, said)}")
        name, value = name.strip().strip("'\""), value.strip()
        if value in ("", "|", ">", "|-", ">-"):
            held[name] = {}
            stack.append((depth + 1 if value == "" else depth + 1, held[name], held, name))
        else:
            held[name] = _scalar(value)
    return root


def _scalar(text):
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    text = text.strip("'\"")
    return {"true": True, "false": False}.get(text.lower(), text)


# Texts.


def is_launch(text):
    """Whether a text is a launch command, a recipe, or the path of a file that holds one, and no name of a model."""
    if not isinstance(text, str):
        return False
    said = text.strip()
    return bool(re.search(r"\n|\s--?[A-Za-z]|^vllm serve|^sglang serve|^trtllm-serve|\.(ya?ml|sh)$", said))


@cache
def read(text):
    """The launch command, and perhaps the benchmark, of a text; ValueError with one line where it holds none."""
    said = text.strip()
    if re.search(r"\.(ya?ml|sh)$", said) and "\n" not in said and " " not in said:
        with open(said, encoding="utf-8") as file:
            said = file.read()
    if re.match(r"(\s*(#.*)?\n|---\n)*\s*[\w.-]+\s*:(\s|$)", said):
        return _recipe(said)
    found, files = Launch(), {}
    for here in _HERE.finditer(said):
        name = re.search(r">>?\s*(\S+)", here[0].partition("\n")[0])
        if name:
            files[name[1].strip("'\"")] = here[3]
    found.files = files
    said = _HERE.sub("", said)
    commands = list(_commands(said))
    if not any(kind in ENGINES for kind, *_ in commands):
        first = checks.short(repr, said.splitlines()[0] if said else "")
        raise ValueError(f"{first} is no launch command: give {COMMANDS}")
    served = [kind for kind, *_ in commands if kind in ENGINES]
    if len(served) > 1:
        raise ValueError(f"{len(served)} launch commands ({', '.join(map(ENGINES.get, served))}): give one")
    if sum(kind == "benchmark" for kind, *_ in commands) > 1:
        raise ValueError("two benchmark commands: give one")
    for kind, tool, tokens, env in sorted(commands, key=lambda one: one[0] == "benchmark"):
        if kind in ENGINES:
            found.engine = kind
            found.version = _version(kind, tool, said)
            if env.get("VLLM_USE_V1") == "0" and not found.version:
                found.version = "0.7"
        else:
            found.tool = tool
        for flag, value in _pairs(kind, tokens):
            if flag is not None:
                found.take(kind, flag, value)
            elif kind in ENGINES and found.model is None:
                found.model = value
            elif kind in ENGINES:
                raise ValueError(f"{checks.short(repr, value)} belongs to no flag of the launch command")
    if found.model is None:
        raise ValueError("the launch command names no model")
    return found


def _version(kind, tool, text):
    """The version that an image or an installation names."""
    at = re.search(r"(?:vllm-openai|vllm==|sglang:|sglang(?:\[all\])?==|release):?v?(\d+\.\d+[\w.]*)", text)
    return at[1].strip(".") if at else ""


def _commands(text):
    """Of every command: engine or benchmark, the words that began it, those after it, and its variables."""
    text = re.sub(r"[ \t]*[\\^`][ \t]*\r?\n", " ", text)
    env: dict = {}
    for line in text.splitlines():
        line = re.sub(r"^\s*(?:\$|>|root@\S+[#$])\s+", "", line)
        line = re.sub(
            r"\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)", lambda m: env.get(m[1] or m[3], m[2] or m[0]), line
        )
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, "#"
        try:
            tokens = list(lexer)
        except ValueError:
            raise ValueError(f"a quote is not closed in {checks.short(repr, line.strip())}") from None
        part: list = []
        for token in [*tokens, ";"]:
            if token and set(token) <= set(";&|"):
                if part:
                    yield from _command(part, env)
                part = []
            else:
                part.append(token)


def _command(tokens, env):
    begun = 0
    while begun < len(tokens) and (tokens[begun] in ("export", "env") or _ASSIGNED.fullmatch(tokens[begun])):
        if assigned := _ASSIGNED.fullmatch(tokens[begun]):
            env[assigned[1]] = assigned[2]
        begun += 1
    tokens = tokens[begun:]
    for name in re.findall(r"(?:-e|--env)[ =](\w+=\S+)", " ".join(tokens)):
        env.update([name.split("=", 1)])
    found = None
    for kind, starts in table()["starts"].items():
        for start in starts:
            parts = start.split()
            for k in range(len(tokens) - len(parts) + 1):
                first = re.sub(r"^(\S+/)?([^/]*vllm-openai|vllm-tpu)$", r"\1\2", tokens[k]).partition(":")[0]
                if "/" in start:
                    same = first.endswith(start)
                else:
                    same = (
                        (first == start or first.endswith(f"/{parts[0]}"))
                        if len(parts) == 1
                        else tokens[k : k + len(parts)] == parts
                    )
                    same = (
                        same
                        or len(parts) > 1
                        and first.endswith(f"/{parts[0]}")
                        and tokens[k + 1 : k + len(parts)] == parts[1:]
                    )
                end = k + len(parts)
                if same and (found is None or end > found[0]):
                    found = end, kind, start
    if found is not None:
        yield found[1], found[2], tokens[found[0] :], dict(env)


def _pairs(kind, tokens):
    """Flags and their values in order; a word that belongs to none has no flag."""
    k = 0
    while k < len(tokens):
        token, k = tokens[k], k + 1
        if not re.match(r"--?[A-Za-z]", token):
            yield None, token
            continue
        name, sign, value = token.partition("=")
        row = flags(kind).get(plain(name))
        if row is None and re.fullmatch(r"-O\d", name):
            name, sign, value, row = "-O", "=", name[2:], flags(kind)["O"]
        if row is None and "." in name and plain(name).partition(".")[0] in flags(kind):
            name, _, part = name.partition(".")
            row, value = flags(kind)[plain(name)], value or (tokens[k] if k < len(tokens) else "")
            k += not sign
            yield name, {part.replace("-", "_"): value}
            continue
        if row is None:
            raise unknown(name, kind)
        if sign:
            yield name, value
            continue
        values = []
        while k < len(tokens) and (not re.match(r"--?[A-Za-z]", tokens[k])):
            if row.get("switch") and tokens[k].lower() not in ("true", "false"):
                break
            values.append(tokens[k])
            k += 1
            if not row.get("idle") and not row.get("beyond"):
                break
        if not values and not row.get("switch"):
            if row.get("idle"):
                yield name, ""
                continue
            raise ValueError(f"{name} has no value")
        yield name, (True if row.get("switch") and not values else " ".join(values))


def _recipe(text):
    """A launch of a recipe in YAML: its settings, or the command that it holds."""
    tree = yaml(text)
    for key, value in flat(tree).items():
        if key.rpartition(".")[2] in ("command", "args") and isinstance(value, (list, str)):
            said = value if isinstance(value, str) else shlex.join(map(str, value))
            image = re.search(r"image:\s*(\S+)", text)
            begun = any(start in said for kind in ENGINES for start in table()["starts"][kind])
            return read(said if begun else f"docker run {image[1] if image else ''} {said}")
    settings = flat(tree)
    kind = next((kind for kind in ENGINES if all(_of(kind, key) for key in settings)), None)
    if kind is None:
        near = max(ENGINES, key=lambda kind: sum(_of(kind, key) for key in settings))
        raise unknown(next(key for key in settings if not _of(near, key)), near)
    found = Launch(kind)
    for key, value in settings.items():
        found.setting(key, value)
    if found.model is None:
        raise ValueError("the recipe names no model")
    return found


def _of(kind, key):
    return any(plain(name) in flags(kind) for name in (key, key.rpartition(".")[2], key.partition(".")[0]))


# Doors.


def given(options, fields):
    """The fields that options give, those of a launch command in the place of a model among them, and sentences.

    Names that are not among ``fields`` may be flags of engines and benchmarks.
    """
    extra = {name: one for name, one in options.items() if name not in fields and known(name)}
    text = options.get("model")
    if not extra and not is_launch(text):
        return options, ()
    options = {name: one for name, one in options.items() if name not in extra}
    launch = _copy(read(text)) if is_launch(text) else Launch(_engine(options.get("engine"), extra))
    if is_launch(text):
        del options["model"]
    for name, value in extra.items():
        kind, row = known(name, launch.engine) or known(name)
        if kind == "words" and not row.get("how"):
            if options.get(row["field"]) is not None:
                raise ValueError(f"{row['field']} is given twice, the second time as {name}")
            options[row["field"]] = value
        else:
            launch.take(kind, name, value)
    found, notes = launch.question(options)
    wins = {name: one for name, one in options.items() if name != "machine" and one is not None}
    return {**options, **found, **wins}, notes


def _engine(said, extra):
    """The engine whose flags are given, where it is not said."""
    named = next((kind for kind in ENGINES if isinstance(said, str) and kind in said.lower()), None)
    fits = (
        kind for kind in ENGINES if all(plain(name) in flags(kind) or not known(name, kind) for name in extra)
    )
    only = [known(name)[0] for name in extra if known(name)[0] in ENGINES]
    return named or (next(fits, only[0]) if only else None)


def _copy(launch):
    from copy import deepcopy

    return deepcopy(launch)


# Back.


def engine_of(text):
    """The engine that a text launches; one where flags stand alone."""
    return (read(text).engine if is_launch(text) else None) or "vllm"


def logged(question, engine=""):
    """The tokens of an engine's log over those of an answer: least and greatest of public threads."""
    states = any(group.attention is not None and group.attention.state() for group in question.model.layers)
    kind = "sglang with states" if states and engine == "sglang" else "all"
    return table()["log"][kind]


def command(question, engine):
    """The command that starts an engine as a question has it; none where the engine has no such layout.

    Examples
    --------
    >>> from tokenprice import Question
    >>> command(Question("Qwen/Qwen3-32B", "4x H100", memory=0.95), "vllm")
    'vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4 --gpu-memory-utilization 0.95'
    """
    q, at = question, question.lies
    weights, cache, _ = q.formats
    own, _, own_cache = words.published(q.model)
    name, copies = _named(q.model), at.dp
    tp = at.tp * copies if engine != "vllm" and at.ep > 1 else at.tp
    cached = cache if cache != own_cache and cache in FORMATS else None
    stored = weights if weights != own and weights in ("fp8", "int8", "mxfp4") else None
    share = None if q.memory is None else f"{q.memory:.4g}"
    chunk, seqs = (None if n is None else f"{n:.0f}" for n in (q.chunk, q.max_num_seqs))
    if engine == "vllm" and 1 < at.ep < at.tp * copies or engine == "trtllm" and copies > at.ep:
        return ""
    if engine == "vllm":
        drafts = q.drafted and json.dumps({"method": "mtp", "num_speculative_tokens": q.drafted})
        parts = [
            ("--tensor-parallel-size", _many(tp)), ("--pipeline-parallel-size", _many(at.pp)),
            ("--data-parallel-size", _many(copies)), ("--enable-expert-parallel", at.ep > 1),
            ("--quantization", stored), ("--kv-cache-dtype", cached), ("--gpu-memory-utilization", share),
            ("--max-num-seqs", seqs), ("--max-num-batched-tokens", chunk),
            ("--speculative-config", drafts and f"'{drafts}'"), ("--enforce-eager", q.engine == "eager"),
        ]  # fmt: skip
        return _line(f"vllm serve {name}", parts)
    if engine == "sglang":
        mine = WORKSPACE + (BUFFERS if at.tp > 1 else 0)
        static = share and q.machine and f"{q.memory - mine / constants.memory(q.machine.chip):.3g}"
        parts = [
            ("--tp", _many(tp)), ("--pp", _many(at.pp)), ("--dp", _many(copies)),
            ("--enable-dp-attention", copies > 1 and at.ep > 1), ("--ep", _many(at.ep)), ("--quantization", stored),
            ("--kv-cache-dtype", "fp8_e4m3" if cached == "fp8" else cached), ("--mem-fraction-static", static),
            ("--max-running-requests", seqs), ("--chunked-prefill-size", chunk),
            ("--speculative-algorithm", q.drafted and "EAGLE"), ("--speculative-num-steps", q.drafted),
            ("--speculative-eagle-topk", q.drafted and 1),
            ("--speculative-num-draft-tokens", q.drafted and q.drafted + 1),
            ("--disable-cuda-graph", q.engine == "eager"),
        ]  # fmt: skip
        return _line(f"python -m sglang.launch_server --model-path {name}", parts)
    extra = {"enable_attention_dp": "true"} if copies > 1 and at.ep > 1 else {}
    extra |= {"kv_cache_config.dtype": cached} if cached else {}
    extra |= (
        {"speculative_config.decoding_type": "MTP", "speculative_config.num_nextn_predict_layers": q.drafted}
        if q.drafted
        else {}
    )
    parts = [
        ("--tp_size", _many(tp)), ("--pp_size", _many(at.pp)), ("--ep_size", _many(at.ep)),
        ("--kv_cache_free_gpu_memory_fraction", share),
        ("--max_batch_size", seqs), ("--max_num_tokens", chunk),
        ("--extra_llm_api_options", "extra.yml" if extra else None),
    ]  # fmt: skip
    beside = f"  # extra.yml: {', '.join(f'{key}: {value}' for key, value in extra.items())}" if extra else ""
    return _line(f"trtllm-serve {name}", parts) + beside


def _many(degree):
    return degree if degree > 1 else None


def _line(start, parts):
    said = (flag if value is True else f"{flag} {value}" for flag, value in parts if value)
    return " ".join([start, *said])


def _named(model):
    """The name of a model on the Hub, where its shape says whose it is."""
    source = str(model.sources.get("shape", ""))
    at = re.match(r"https://huggingface\.co/([^/]+/[^/]+)/", source)
    own = same_shapes().get(model.name, {}).get("id")
    return own or (model.name.replace(" ", "-") if "/" in model.name else at[1] if at else f"'{model.name}'")
