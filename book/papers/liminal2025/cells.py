"""LIMINAL 2025: the 320 cells of Tables 4 to 7, as numbers and as the paper writes them."""

from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import cache

from book.audit.explanations import inputs
from book.audit.grading import published
from inferlib.papers import liminal2025 as model
from inferlib.papers.liminal2025 import IDEAL, PRINTED, Assumptions, load_chip, load_model, models
from inferlib.units import factor

TABLES = ("Table 4", "Table 5", "Table 6", "Table 7")
FEW, MANY = SYSTEMS = 8, 128  # chips with tensor parallelism, TP8 and TP128
CONTEXTS = {"T=4K": 4, "T=128K": 128}  # the paper's K
SMALL = ("Llama3-8B", "Llama4-Scout", "Qwen3-4B", "GPT-OSS-20B")  # only in Table 4
# How a cell is written: billions of parameters, the paper's GB, two decimals, or tokens per second.
PARAMETERS, CAPACITY, INTENSITY, SPEED, GAIN = ("parameters", "capacity", "intensity", "speed", "gain")


@dataclass(frozen=True)
class Reading:
    """Assumptions with which the tables are computed; the default is the paper's set, and the ablation changes one."""

    assumptions: Assumptions = PRINTED
    gb: float = factor("GiB")  # unit behind the paper's GB, TB/s, PFLOPS and K
    tb_per_s: float = factor("TiB/s")
    pflops: float = factor("PFLOP/s")
    kilotoken: float = 1024.0
    batch_limit: float | None = None  # largest batch considered
    stage_per_layer: bool = True  # the SRAM system gives each layer a stage of its own
    equations: tuple = ()  # pairs of an equation and the function that replaces it

    @classmethod
    def changed(cls, **changes):
        """The paper's set with other values for fields of its own or of Assumptions."""
        own = {f.name for f in fields(cls)} & changes.keys()
        rest = {name: value for name, value in changes.items() if name not in own}
        return cls(PRINTED.replace(**rest), **{name: changes[name] for name in own})

    def chip(self, name):
        """A chip of Table 3."""
        chip = load_chip(name)
        return chip.replace(
            capacity=chip.capacity * (self.gb / factor("GiB")),
            bandwidth=chip.bandwidth * (self.tb_per_s / factor("TiB/s")),
            flops=chip.flops * (self.pflops / factor("PFLOP/s")),
        )

    def stages(self, app, memory):
        """Return the pipeline stages in the paper's systems: one, or one per layer where memory is SRAM."""
        return app.layers if memory == "SRAM" and self.stage_per_layer else 1.0

    def speed(self, name, memory, batch, context, n, t_tp=None, kind=model.user_speed):
        """UTPS, or another speed, of one of the paper's systems; the achievable latency when none is given."""
        app, assumed = load_model(name, self.assumptions), self.assumptions
        t_tp = model.collective_latency(n, assumed) if t_tp is None else t_tp
        return kind(app, self.chip(memory), batch, context, n, self.stages(app, memory), t_tp, assumed)


AS_PRINTED = Reading()


def large():
    """The eight models of Tables 5 to 7, in the order of Table 4."""
    return [name for name in models() if name not in SMALL]


def latencies(assumptions=PRINTED):
    """The three latencies of a collective in Table 7, by the name they have there, in seconds."""
    many, few = (model.collective_latency(n, assumptions) for n in (MANY, FEW))
    return {"1.0us": many, "438ns": few, "200ns": IDEAL}


@cache
def cells(reading=AS_PRINTED):
    """Every cell of Tables 4 to 7: (artefact, row, column) to (value in SI units or None, form in print)."""
    contexts = {label: k * reading.kilotoken for label, k in CONTEXTS.items()}
    with ExitStack() as changed:
        for equation, function in reading.equations:
            changed.enter_context(equation.replaced(function))
        return {
            (artefact, *place): cell
            for artefact, rows in zip(TABLES, (_table_4, _table_5, _table_6, _table_7), strict=True)
            for place, cell in rows(reading, contexts)
        }


def _table_4(reading, contexts):
    assumed = reading.assumptions
    for name in models():
        app = load_model(name, assumed)
        # weights per token: all that it is multiplied with, without routed experts it does not use
        app_read = inputs(app)
        active = app_read.resident + app_read.expert * app_read.n_experts * app_read.routed_share
        yield (name, "Active"), (active, PARAMETERS)
        weights = model.stored_weights(app, assumed) / assumed.weight_bytes
        yield (name, "# Param"), (weights, PARAMETERS)
        for label, context in contexts.items():
            for batch in (1, 32):
                at = app, batch, context, assumed
                yield (name, f"Capacity {label} B={batch}"), (model.capacity_needed(*at), CAPACITY)
                yield (name, f"AMI {label} B={batch}"), (model.arithmetic_intensity(*at), INTENSITY)


def _table_5(reading, contexts):
    chip = reading.chip("HBM3")
    for name in large():
        app = load_model(name, reading.assumptions)
        for label, context in contexts.items():
            for n in SYSTEMS:
                batch = model.largest_batch(app, chip, context, n, reading.assumptions)
                if batch is not None and reading.batch_limit:
                    batch = min(batch, int(reading.batch_limit))
                for head, size, kind in (
                    ("Max UTPS", 1, model.user_speed),
                    ("Max STPS", batch, model.system_speed),
                    ("UTPS at max STPS", batch, model.user_speed),
                ):
                    speed = reading.speed(name, "HBM3", size, context, n, kind=kind) if batch else None
                    yield (name, f"{head} {label} TP{n}"), (speed, SPEED)


def _table_6(reading, contexts):
    for name in large():
        for label, context in contexts.items():
            new, old = (
                reading.speed(name, memory, 1, context, MANY, IDEAL) for memory in ("3D-DRAM", "HBM3")
            )
            yield (name, f"{label} UTPS"), (new, SPEED)
            yield (name, f"{label} Speedup"), (new / old, GAIN)


def _table_7(reading, contexts):
    for name in large():
        for memory in ("HBM3", "3D-DRAM", "SRAM"):
            for label, t_tp in latencies(reading.assumptions).items():
                speed = reading.speed(name, memory, 1, contexts["T=128K"], MANY, t_tp)
                yield (name, f"{memory} {label}"), (speed, SPEED)


def written(value, kind, gb=AS_PRINTED.gb):
    """A cell as the paper writes it.

    Examples
    --------
    >>> [written(v, SPEED) for v in (490.6, 2236.0, 11750.0, 1338000.0)]
    ['491', '2.2K', '12K', '1.3M']
    >>> [written(v, SPEED) for v in (1000, 9940, 9950, 1e6)], [written(v, PARAMETERS) for v in (999e9, 1e12)]
    (['1.0K', '9.9K', '10K', '1.0M'], ['999B', '1T'])
    >>> written(14.5 * 2**30, CAPACITY), written(None, SPEED)
    ('14', '-')
    """
    if value is None:
        return "-"
    if kind == CAPACITY:
        return f"{round(value / gb)}"
    if kind in (INTENSITY, GAIN):
        return f"{value:.2f}"
    if kind == PARAMETERS:
        billions = round(value / 1e9)
        return f"{billions}B" if billions < 1000 else f"{round(value / 1e12)}T"
    for size, letter in ((1e6, "M"), (1e3, "K")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{letter}" if scaled < 9.95 else f"{round(scaled)}{letter}"
    return f"{round(value)}"


def printed_cells():
    """The cells as the paper prints them: (artefact, row, column) to text."""
    found = {}
    for place, row in published("liminal2025").items():
        if row.artefact in TABLES and row.kind == "model":
            digits, _, power = row.text.partition("e")
            letters = {"3": "K", "6": "M"} if row.unit == "tok/s" else {"9": "B", "12": "T"}
            found[place] = digits + letters.get(power, "")
    return found


def computed_cells(reading=AS_PRINTED):
    """The cells as the paper would write what this reading gives; keys as :func:`printed_cells`."""
    return {place: written(*cell, reading.gb) for place, cell in cells(reading).items()}
