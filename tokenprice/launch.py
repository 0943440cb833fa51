"""Read launch commands of vLLM, SGLang and TensorRT-LLM, and benchmark commands, as fields of a question.

``launch_flags.toml`` has one row per flag, used to read a command and to write one. The input may be shell text
(continued lines, quotes, variables, containers) or a recipe in YAML.
"""

import json
import re
import shlex
from functools import cache, partial
from os.path import isfile

from inferlib import validation
from inferlib.system import Layout, System
from tokenprice import calibration, parsing, workload
from tokenprice.catalog import load_model, same_shapes
from tokenprice.deployment import engine_workspace
from tokenprice.formatting import format_dtypes, format_layout
from tokenprice.speculation import measured_curves

ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
COMMANDS = (
    "vllm serve, python -m sglang.launch_server, trtllm-serve, or docker run with an image of one of them"
)
REQUESTS = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "dp_balance",
    "batching_wait_iters",
)  # not used for a single step
# With attention in copies SGLang divides these by their number (srt/server_args.py, srt/managers/tp_worker.py).
TOTALS = REQUESTS[:2]
DEGREES = ("tp", "pp", "dp", "ep")
_HERE = re.compile(r"^[^\n]*<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1[ \t]*$", re.DOTALL | re.MULTILINE)
VERSION = r"(?:vllm-openai|vllm==|sglang:|sglang(?:\[all\])?==|release):?v?(\d+\.\d+[\w.]*)"
_FLAG = re.compile(r"--?[A-Za-z]")


def table():
    """The rows of ``launch_flags.toml``."""
    return validation.read_package_toml(__file__, "launch_flags.toml")


@cache
def flags(kind):
    """Map every name of a flag, of an engine or of ``"benchmark"``, to its row; flags without effect have none."""
    rows = {name: row for row in table()["rows"][kind] for name in row["names"].split()}
    for part, switch in (("idle", False), ("idle_switches", True)):
        rows |= {name: {"switch": switch} for name in table()[part].get(kind, "").split()}
    return rows


def plain(name):
    """Return a flag without leading dashes and with hyphens, as the table spells it."""
    return name.lstrip("-").replace("_", "-")


def row_of(kind, name):
    """Return the row of a flag or of a dotted setting (its own row, else the enclosing setting's), or None."""
    rows = flags(kind)
    name = plain(name)
    holder = rows.get(name.partition(".")[0])
    if holder is not None and name not in rows:  # nested inside a setting that has a value or no effect
        return {key: one for key, one in holder.items() if key == "beyond"}
    return rows.get(name) or rows.get(name.rpartition(".")[2])


def known(name, engine=None):
    """Return which engine (or ``"benchmark"``) has this flag, and its row; None if no engine or benchmark has it."""
    if not engine and name.lstrip("-") == "seed":
        return None  # ``seed`` belongs to a simulation
    kinds = [engine, "benchmark"] if engine else [*ENGINES, "benchmark"]
    return next(((kind, flags(kind)[plain(name)]) for kind in kinds if plain(name) in flags(kind)), None)


def unknown(name, engine):
    """Return the error for a flag that the engine lacks; it suggests the engine's own flag with the same meaning."""
    from difflib import get_close_matches

    own = flags(engine)
    others = [kind for kind in ENGINES if plain(name) in flags(kind)]
    meant = {flags(kind)[plain(name)].get("says") for kind in others} - {None}
    meant |= {"memory_utilization", "static"} if meant & {"memory_utilization", "static"} else set()
    same = [f"{ENGINES[engine]} calls it --{one}" for one, row in own.items() if row.get("says") in meant]
    near = ", ".join(f"--{one}" for one in get_close_matches(plain(name), own))
    whose = f" (a flag of {ENGINES[others[0]]})" if others else ""
    hint = f"; {same[0]}" if same else f"; did you mean {near}?" if near else ""
    return LookupError(
        f"no flag {validation.short(str, name)} of {ENGINES.get(engine, 'a benchmark')}{whose}{hint}"
    )


def _parts(flag, text):
    """Parse JSON between braces, or pairs such as ``prompt_tokens=256,output_tokens=128``."""
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else None
    except json.JSONDecodeError:
        found = {}
    found = dict(re.findall(r"(\w+)\s*=\s*([^,\s]+)", text)) if found is None else found
    if not found:
        raise ValueError(f"{flag} is {validation.short(repr, text)}, but must be JSON between braces")
    return found


def _format(flag, value):
    return parsing.parse_dtype(flag, re.sub(r"^(fp\d)_.*", r"\1", str(value)))


READ = {
    "whole": parsing.parse_int,
    "truth": parsing.parse_bool,
    "share": parsing.parse_fraction,
    "tokens": parsing.parse_tokens,
    "count": parsing.parse_count,
    "rate": parsing.parse_rate,
    "format": _format,
}


class Launch:
    """Settings read from a command or single flags, flags without effect, and unsupported flags with the reason."""

    def __init__(self, engine=None):
        self.engine = engine
        self.version = ""
        self.tool = ""
        self.said = {}
        self.files = {}
        self.idle = []
        self.beyond = {}

    def take(self, flag, value, kind=None):
        """Read one flag or setting of the engine, or of a benchmark."""
        row = row_of(kind or self.engine, flag)
        if isinstance(value, str) and row and "parts" in row:
            value = _parts(flag, value)
        if isinstance(value, dict):
            for key, one in value.items():
                self.take(f"{flag}.{key}", one, kind)
        elif row is None:
            raise unknown(flag, kind or self.engine)
        elif (
            value is None
            or value is False
            and row.get("switch")
            or str(value).lower() in row.get("none", "").split()
        ):
            return
        elif row.get("says") == "file":
            self._file(flag, str(value))
        elif "says" in row:
            self.said[row["says"]] = READ[row["as"]](flag, value) if "as" in row else value
        elif "beyond" in row:
            self.beyond[flag] = row["beyond"]
        else:
            self.idle.append(flag)

    def _file(self, flag, name):
        if name not in self.files and not isfile(name):
            self.beyond[flag] = f"the content of {name} is not given"
            return
        for key, one in yaml(self.files.get(name) or open(name, encoding="utf-8").read()).items():
            self.take(key, one)

    def layout(self, model, machine=None):
        """Return the layout that the flags ask for and its number of chips.

        If neither a command nor a flag gives the tensor-parallel degree, the layout uses all chips of ``machine``.
        """
        said = self.said
        tp, pp, dp, ep = (said.get(name, 1) for name in DEGREES)
        if "model" not in said and machine is not None and "tp" not in said:
            tp = max(machine.count // (pp * dp), 1)
        count = tp * pp * dp
        copies = dp if self.engine == "vllm" else 1  # of the attention, which share the experts
        if self.engine != "vllm" and "attention_dp" in said:
            copies = dp if self.engine == "sglang" else tp
            if tp % copies:
                raise ValueError(f"attention in {copies} copies does not divide {tp} chips")
            if copies == 1:
                self.idle.append("attention in copies, whose number is 1")
            tp, dp, count = tp // copies, copies, tp * pp
        chips = count // pp
        if said.get("spread") or said.get("experts"):
            ep = chips
        elif model.sparse and copies > 1 and ep == 1:
            ep = chips
            self.beyond[f"every expert cut over {chips} chips"] = (
                f"whole experts are spread over them, EP{chips}"
            )
        return Layout(tp=tp, pp=pp, ep=min(ep, chips) if model.sparse else 1, dp=dp), count

    def question(self, given):
        """Return fields of the question, and notes on the flags; values in ``given`` override flags."""
        said = self.said
        notes = []
        launched = "model" in said
        model = self._model() if launched else given.get("model")
        found = {
            name: said[name] for name in ("memory_utilization", "kv_cache_dtype", *REQUESTS) if name in said
        }
        for name in TOTALS if self.engine == "sglang" and "attention_dp" in said else ():
            if name in found:
                found[name] = parsing.parse_count(name, found[name]) // said.get("dp", 1)
        if launched:
            found["model"] = model
        if model is not None:
            found |= self._formats(model)
        found |= self._asked(given)
        found |= self._engine_and_version(launched)
        found |= self._placed(model, given.get("machine"), notes)
        found |= self._drafted(given, notes)
        prompt, output = (given.get(name, found.get(name)) for name in ("prompt_tokens", "output_tokens"))
        if prompt is None:  # a single step
            found = {name: value for name, value in found.items() if name not in REQUESTS}
        elif said.get("longest") and not isinstance(prompt, (str, workload.LengthDistribution)):
            longest = float(prompt) + float(output or 0)
            if longest > said["longest"]:
                raise ValueError(
                    f"prompt and output are {longest:,.0f} tokens, but the command allows {said['longest']:,}"
                )
        notes += [f"Not described: {flag} ({why})." for flag, why in self.beyond.items()]
        if self.idle:
            notes.append(f"Without effect: {', '.join(dict.fromkeys(self.idle))}.")
        return found, tuple(notes)

    def _engine_and_version(self, launched):
        """Return the engine with its version, or the one that launches kernels one by one."""
        said = self.said
        if said.get("eager") or str(said.get("level")) == "0" or said.get("graphs") == "NONE":
            return {"engine": "eager"}
        free = self.engine == "trtllm" and "memory_utilization" in said  # a share that only this engine has
        return {"engine": f"{self.engine} {self.version}".strip()} if launched or free else {}

    def _placed(self, model, machine, notes):
        """Return the layout, the chips that it takes, and SGLang's share of their memory."""
        said = self.said
        found = {}
        placed = any(name in said for name in ("model", *DEGREES, "experts", "spread", "attention_dp"))
        if model is not None and placed:
            found["layout"], count = self.layout(model, machine)
            if machine is not None:
                found["machine"] = machine = self._machine(machine, count, notes)
        if "static" in said and machine is not None:  # SGLang's fraction covers weights and KV cache only
            own = engine_workspace(found.get("layout", Layout()).tp) / calibration.memory(machine.chip)
            found["memory_utilization"] = min(said["static"] + own, 1)
        return found

    def _model(self):
        """Load the model of the command; if it is a path, by its last part, its served name, or the Hub's cache."""
        name = self.said["model"]
        own = re.sub(r".*models--([^/]+)--([^/]+).*", r"\1/\2", name)
        last = name.rstrip("/").rpartition("/")[2]
        stored = isfile(name) or isfile(f"{name}/config.json")
        if stored or not (name.startswith((".", "/", "~")) or name.count("/") > 1):
            return load_model(name)
        for one in (name, last, str(self.said.get("served", "")).partition(" ")[0], own):
            try:
                model = load_model(one)
                break
            except (LookupError, ValueError, OSError):
                continue
        else:
            model = load_model(last)
        return model.replace(sources={**model.sources, "checkpoint": name})

    def _formats(self, model):
        """Return the weight format if it differs from the checkpoint's; ``quantization`` overrides ``dtype``."""
        format = "checkpoint"
        own = calibration.checkpoint_formats(model)[0]
        if "quantization" in self.said:
            said = str(self.said["quantization"]).lower()
            formats = table()["quantization"]
            format = formats[validation.one_of("format of --quantization", said, formats)]
        format = self.said.get("dtype") if format == "checkpoint" else format
        return {"weights": format} if format and own == "bf16" else {}

    def _machine(self, machine, count, notes):
        if count > machine.count > 1:
            raise ValueError(f"machine is {machine}, but the command takes {count} chips")
        if count < machine.count:
            notes.append(f"The command takes {count} of {machine.count} chips.")
        boxes = self.said.get("boxes", 1)
        if boxes > 1:
            return System(machine.chip, count, max(count // boxes, 1))
        return machine if count == machine.count else System(machine.chip, count)

    def _drafted(self, given, notes):
        said = {name: one for name, one in self.said.items() if name.startswith("draft_")}
        tokens = said.get("draft_tokens", said.get("draft_steps"))
        if said.get("draft_branches", 1) > 1:
            tokens = said.get("draft_verified", 1) - 1
        if not said or given.get("acceptance_length") is not None and tokens:
            return {"draft_tokens": tokens} if said else {}
        method = str(said.get("draft_method", "")).lower()
        if method == "eagle" and "eagle" not in str(said.get("draft_model")).lower():
            method = "mtp"  # SGLang serves a model's own MTP head under the name EAGLE
        curve = next((curve for word, curve in table()["drafts"].items() if word in method), None)
        lengths = measured_curves()[curve]["length"] if curve else []
        if not tokens or tokens > len(lengths):
            why = "how many are accepted depends on the text: give acceptance_length"
            notes.append(f"Not described: drafts ({why if tokens else 'the number of tokens is not given'}).")
            return {}
        notes.append(
            f"{lengths[tokens - 1]:g} tokens a step are taken from {curve}: give acceptance_length, as the engine's "
            "log says."
        )
        return {"draft_tokens": tokens, "acceptance_length": curve}

    def _asked(self, given):
        """Return lengths, concurrency or request rate, and the benchmark's protocol with its tool's defaults."""
        tool = next((own for name, own in table()["tools"].items() if name in self.tool), {})
        said = {name: value for name, value in tool.items() if name not in given} | self.said
        found = {name: said[name] for name in ("prompt_tokens", "output_tokens") if name in said}
        rate, users, requests = (said.get(name) for name in ("request_rate", "concurrency", "requests"))
        if "pace" in said:
            closed = "concurren" in str(said.get("pattern", "concurrent"))
            pace = parsing.parse_rate("--rate", str(said["pace"]).strip("[]"))
            rate, users = (None, pace) if closed else (pace, users)
        sglang = "sglang" in self.tool
        ratio = said.get("ratio", 0)
        low, high = (ratio, 1) if sglang else (1 - ratio, 1 + ratio)
        if low < high:
            found = {name: f"{max(most * low, 1):.0f}-{most * high:.0f}" for name, most in found.items()}
        if "prefix" in said and isinstance(found.get("prompt_tokens"), (int, float)):
            found |= {
                "prompt_tokens": found["prompt_tokens"] + said["prefix"],
                "shared_prefix": said["prefix"],
            }
        if rate or "request_rate" in given:
            if users:
                self.beyond["--max-concurrency"] = "requests come at a rate"
            return found | ({"request_rate": rate} if rate else {})
        users = users or given.get("concurrency") or requests or 1
        if requests:  # without a concurrency limit all requests start at once
            found["requests_per_user"] = max(requests / users, 1)
        if requests or "concurrency" in said or "pace" in said:
            found["concurrency"] = users
        return found | ({"fixed_lengths": True} if low == high and self.tool else {})


def yaml(text):
    """Return the settings of a YAML recipe (one document or several), by dotted path."""
    from inferlib.optional_imports import yaml as package

    try:
        trees = list(package.safe_load_all(text))
    except package.YAMLError as mistake:
        raise ValueError(f"the recipe is not understood: {' '.join(str(mistake).split())}") from None
    return dict(flat(trees[0] if len(trees) == 1 else trees))


def flat(tree, at=""):
    """Flatten nested settings into pairs of dotted path and value."""
    nested = isinstance(tree, dict) or isinstance(tree, list) and any(isinstance(one, dict) for one in tree)
    if not nested:
        return [(at, tree)]
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [found for key, one in pairs for found in flat(one, f"{at}.{key}" if at else str(key))]


def is_launch(text):
    """Whether a text is a launch command, a recipe, or the path of a file with one, rather than a model's name."""
    pattern = r"\n|\s--?[A-Za-z]|^vllm serve|^sglang serve|^trtllm-serve|\.(ya?ml|sh)$"
    return isinstance(text, str) and bool(re.search(pattern, text.strip()))


def read(text):
    """Parse a launch command or recipe, with an optional benchmark command.

    Raises ValueError with a one-line reason if the text has no launch command or more than one.
    """
    said = text.strip()
    if re.fullmatch(r"\S+\.(ya?ml|sh)", said):
        with open(said, encoding="utf-8") as file:
            said = file.read().strip()
    if re.match(r"(\s*(#.*)?\n|---\n)*\s*[\w.-]+\s*:(\s|$)", said):
        return _recipe(said)
    found = Launch()
    for here in _HERE.finditer(said):
        if name := re.search(r">>?\s*(\S+)", here[0].partition("\n")[0]):
            found.files[name[1].strip("'\"")] = here[2]
    commands = list(_commands(_HERE.sub("", said)))
    served = [ENGINES[kind] for kind, *_ in commands if kind in ENGINES]
    if not served:
        first = validation.short(repr, said.partition("\n")[0])
        raise ValueError(f"{first} is no launch command: give {COMMANDS}")
    if len(served) > 1:
        raise ValueError(f"{len(served)} launch commands ({', '.join(served)}): give one")
    if len(commands) > 2:
        raise ValueError("two benchmark commands: give one")
    for kind, begun, tokens, env in commands:
        if kind in ENGINES:
            at = re.search(VERSION, said)
            old = "0.7" if env.get("VLLM_USE_V1") == "0" else ""
            found.engine, found.version = kind, at[1].strip(".") if at else old
        else:
            found.tool = begun
        for flag, value in _pairs(kind, list(tokens)):
            if flag is not None:
                found.take(flag, value, kind)
            elif kind in ENGINES and "model" not in found.said:
                found.said["model"] = value
            elif kind in ENGINES:
                raise ValueError(f"{validation.short(repr, value)} belongs to no flag of the launch command")
    if "model" not in found.said:
        raise ValueError("the launch command names no model")
    return found


def _commands(text):
    """Yield each command: engine or ``"benchmark"``, the words that start it, the words after it, and its variables."""
    env: dict = {}
    for line in re.sub(r"[ \t]*[\\^`][ \t]*\r?\n", " ", text).splitlines():
        # a prompt, and redirections such as "> serve.log 2>&1"
        line = re.sub(r"^\s*(?:\$|>|root@\S+[#$])\s+|(?<=\s)\d?&?>>?\s*(?:&\d|\S+)", "", line)
        line = re.sub(
            r"\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)", lambda m: env.get(m[1] or m[3], m[2] or m[0]), line
        )
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        part: list = []
        try:
            for token in [*lexer, ";"]:
                if not token or set(token) - set(";&|"):
                    part.append(token)
                else:
                    yield from _command(part, env)
                    part = []
        except ValueError as mistake:
            if "quotation" not in str(mistake):
                raise
            raise ValueError(f"a quote is not closed in {validation.short(repr, line.strip())}") from None


def _command(tokens, env):
    """Yield the command in these words; the last start counts, since a container image may contain one of its own."""
    env.update(word.split("=", 1) for word in tokens if re.match(r"[A-Za-z_]\w*=", word))
    found = [
        (k + n, kind, " ".join(tokens[k : k + n]))
        for kind, start in table()["starts"].items() for n in (1, 2, 3) for k in range(len(tokens) - n + 1)
        if re.fullmatch(start, " ".join(tokens[k : k + n]))
    ]  # fmt: skip
    if found:
        end, kind, begun = max(found)
        yield kind, begun, tokens[end:], dict(env)


def _pairs(kind, tokens):
    """Yield flags with their values, in order; for a word that belongs to no flag the flag is None."""
    while tokens:
        token = tokens.pop(0)
        if not _FLAG.match(token):
            yield None, token
            continue
        name, sign, value = re.sub(r"^-O(?=\d$)", "-O=", token).partition("=")
        row = row_of(kind, name)
        if row is None:
            raise unknown(name, kind)
        values = [value] if sign else []
        said = "says" in row or "parts" in row
        while not sign and tokens and not _FLAG.match(tokens[0]) and not (said and values):
            if row.get("switch") and tokens[0].lower() not in ("true", "false"):
                break
            values.append(tokens.pop(0))
        if said and not values and not row.get("switch"):
            raise ValueError(f"{name} has no value")
        yield name, " ".join(values) if values else True


def _recipe(text):
    """Return the launch described by a YAML recipe: its settings, or the command that it contains."""
    settings = yaml(text)
    held = {path.rpartition(".")[2]: one for path, one in settings.items()}
    parts = [held[key] for key in ("command", "args") if held.get(key)]
    if parts:
        words = [str(one) for part in parts for one in (part if isinstance(part, list) else [part])]
        said = " ".join(one if any(_commands(one)) or len(words) == 1 else shlex.quote(one) for one in words)
        begun = any(kind in ENGINES for kind, *_ in _commands(said))
        return read(said if begun else f"docker run {held.get('image', '')} {said}")
    lost = {kind: sum(row_of(kind, key) is None for key in settings) for kind in ENGINES}
    found = Launch(min(lost, key=lambda kind: lost[kind]))
    for key, value in settings.items():
        found.take(key, value)
    if "model" not in found.said:
        raise ValueError("the recipe names no model")
    return found


def split(options, fields):
    """Take a launch out of options, a command in place of the model or single flags; also return the other options.

    Names that are not in ``fields`` may be flags of engines and benchmarks. The launch is None if there are none.
    """
    extra = {name: value for name, value in options.items() if name not in fields and known(name)}
    options = {name: value for name, value in options.items() if name not in extra}
    if is_launch(options.get("model")):
        launch = read(options.pop("model"))
    elif extra:
        launch = Launch(_engine(options.get("engine"), extra))
    else:
        return None, options
    for name, value in extra.items():
        launch.take(name, value, (known(name, launch.engine) or known(name))[0])
    return launch, options


def _engine(said, extra):
    """Return the engine named in ``said``, else the engine that has most of the extra flags."""
    named = next((kind for kind in ENGINES if isinstance(said, str) and kind in said.lower()), None)
    return named or max(ENGINES, key=lambda kind: sum(plain(name) in flags(kind) for name in extra))


def commands(question):
    """Return the launch command of this deployment for each engine that has one."""
    return {engine: text for engine in ENGINES if (text := command(question, engine))}


def no_command(question):
    """Say why engines have no launch command of this deployment, one sentence per reason."""
    whose = {}
    for engine in ENGINES:
        whose.setdefault(unsupported(question, engine), []).append(ENGINES[engine])
    return [f"No command of {', '.join(names)}: {reason}." for reason, names in whose.items() if reason]


def command(question, engine):
    """Return the launch command of a question for an engine, or ``""`` if no command of it starts this deployment.

    With separate prefill machines there are two lines, one for each kind.

    Examples
    --------
    >>> from tokenprice import Question
    >>> command(Question("Qwen/Qwen3-32B", "4x H100", memory_utilization=0.95), "vllm")
    'vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4 --gpu-memory-utilization 0.95'
    """
    if unsupported(question, engine):
        return ""
    if question.prefill_machine:
        own = question.replace(prefill_machine=None, prefill_replicas=None)
        reads = own.replace(machine=question.prefill_machine, layout=question.prefill_deployment.layout)
        roles = zip((reads, own), table()["roles"][engine], strict=True)
        return "\n".join(f"{command(one, engine)} {role}" for one, role in roles)
    flags, file = written(question, engine)
    line = " ".join([table()["command"][engine], repository(question.model), *flags])
    return line + (f" --extra_llm_api_options extra.yml  # extra.yml: {'; '.join(file)}" if file else "")


def unsupported(question, engine):
    """Return why no command of an engine starts a deployment, from its flags read back; ``""`` if one does."""
    q = question
    name = repository(q.model)
    if not name:
        return f"no repository of {q.model.name} is known"
    if q.prefill_machine and engine not in table()["roles"]:
        return "machines that prefill alone need files of settings"
    launch = Launch(engine)
    launch.said["model"] = name
    for row, value in settings(q, engine):
        launch.take(row["names"].split()[0], value)
    found, _ = launch.question({"machine": q.machine, "acceptance_length": q.acceptance_length})
    read = {field: found.get(field) for field in ("model", "layout", "weights", "kv_cache_dtype")}
    started = q.replace(**read, layer_formats=None)
    layout = format_layout(q.resolved_layout)
    if format_layout(started.resolved_layout) != layout:
        return f"its flags describe no {layout}"
    asked = format_dtypes(q.formats)
    return f"no flag starts {name} with {asked}" if format_dtypes(started.formats) != asked else ""


def memory_share(question, engine):
    """Return a deployment's share of memory as an engine counts it.

    vLLM's is of all memory, and holds all that the engine takes; SGLang's holds weights and KV cache only;
    TensorRT-LLM's is of the memory that the weights leave.
    """
    deployment = question.deployment
    memory = calibration.memory(deployment.machine.chip)
    taken = deployment.left + question.replace(engine=engine).deployment.engine_memory[2]
    weights = deployment.weights_of_a_chip
    if engine == "sglang":
        return deployment.left / memory
    return (taken - weights) / (memory - weights) if engine == "trtllm" else taken / memory


def draft_method(question):
    """Return what drafts: the model's own head (``"mtp"``) or a head trained for it (``"eagle3"``)."""
    curve = question.acceptance_length
    if isinstance(curve, str):
        return "eagle3" if "EAGLE" in curve else "mtp"
    return "mtp" if any("(MTP)" in note for note in question.model.notes.values()) else "eagle3"


def settings(question, engine):
    """Return the flags that start an engine as a question has it: pairs of a row and a value."""
    q = question
    at = q.resolved_layout
    drafts = q.draft_tokens
    method = draft_method(q)
    (weights, cache, _) = q.formats
    name = repository(q.model)
    (own, _, own_cache) = calibration.checkpoint_formats(load_model(name) if name else q.model)
    whole = at.replace(tp=at.tp * at.dp) if engine != "vllm" and at.ep > 1 else at
    values = {name: n for name in DEGREES if (n := getattr(whole, name)) > 1}
    values |= {name: n for name in REQUESTS if (n := getattr(q, name))}
    if at.ep > 1:
        values |= {"experts": True, "attention_dp": at.dp > 1}
        if engine == "sglang":
            values |= {name: at.dp * values[name] for name in TOTALS if name in values}
    if q.engine == "eager":
        values["eager"] = True
    if weights != own:
        values |= {"quantization": weights, "dtype": weights}
    if cache != own_cache:
        values["kv_cache_dtype"] = cache
    if q.memory_utilization:
        values["static" if engine == "sglang" else "memory_utilization"] = memory_share(q, engine)
    if drafts:
        values |= {"draft_method": method, "draft_tokens": drafts}
        values |= {"draft_steps": drafts, "draft_verified": drafts + 1, "draft_branches": 1}
        values |= {"draft_model": "path/to/eagle3-head"} if method == "eagle3" else {}
    found = []
    for row in table()["rows"][engine]:
        value = values.get(row.get("says")) if row.get("drafts", method) == method else None
        value = row["written"].get(value) if "written" in row else value
        if value:
            found.append((row, value))
    return found


def written(question, engine):
    """Return the flags of :func:`settings` as texts, and the lines of a file for those that stand in one."""
    flags, file = {}, {}
    for row, value in settings(question, engine):
        name, _, part = row["names"].split()[0].partition(".")
        name = name.replace("-", "_") if engine == "trtllm" else name
        into = file if "file" in row else flags
        if part:
            into.setdefault(name, {})[part.replace("-", "_")] = value
        else:
            into[name] = value
    as_json = partial(json.dumps, separators=(",", ":"))

    def flag(name, value):
        if isinstance(value, dict):
            return f"--{name} '{as_json(value)}'"
        said = f"{value:.4g}" if isinstance(value, float) and value < 1 else str(value)
        return f"--{name}" if value is True else f"--{name} {said}"

    return [flag(*one) for one in flags.items()], [f"{name}: {as_json(one)}" for name, one in file.items()]


def repository(model):
    """Return the model's name on the Hub, or ``""`` if the source of its shape gives none."""
    at = re.match(r"https://huggingface\.co/([^/]+/[^/]+)/", str(model.sources.get("shape", "")))
    own = model.sources.get("checkpoint") or same_shapes().get(model.name, {}).get("id")
    return own or (model.name.replace(" ", "-") if "/" in model.name else at[1] if at else "")
