"""LIMINAL 2025: the 320 cells of Tables 4 to 7, as numbers and as the paper writes them."""

from functools import lru_cache

from inferlib.papers.liminal2025 import equations as model
from inferlib.papers.liminal2025.records import IDEAL, PRINTED, load_chip, load_model, models

TABLES = ("Table 4", "Table 5", "Table 6", "Table 7")
CONTEXTS = {"T=4K": 4, "T=128K": 128}  # the paper's K
SMALL = ("Llama3-8B", "Llama4-Scout", "Qwen3-4B", "GPT-OSS-20B")  # only in Table 4
MEMORIES = ("HBM3", "3D-DRAM", "SRAM")  # Table 7
# What a cell is written in: billions of parameters, the paper's GB, two decimals, or tokens per second.
PARAMETERS, CAPACITY, INTENSITY, SPEED, GAIN = ("parameters", "capacity", "intensity", "speed", "gain")


def large():
    """The eight models of Tables 5 to 7, in the order of Table 4.

    Examples
    --------
    >>> len(large())
    8
    """
    return [name for name in models() if name not in SMALL]


def latencies(assumptions=PRINTED):
    """The three latencies of a collective in Table 7, by the name they have there, in seconds."""
    found = {n: model.collective_latency(n, assumptions) for n in (128, 8)}
    return {"1.0us": found[128], "438ns": found[8], "200ns": IDEAL}


@lru_cache(maxsize=256)
def cells(assumptions=PRINTED):
    """Every cell of Tables 4 to 7.

    Parameters
    ----------
    assumptions : Assumptions

    Returns
    -------
    dict
        (artefact, row, column) to (value in SI units, kind of number); None where nothing fits.
    """
    apps = {name: load_model(name, assumptions) for name in models()}
    contexts = {label: k * assumptions.kilotoken for label, k in CONTEXTS.items()}
    found = {}
    for part in (_table_4, _table_5, _table_6, _table_7):
        found |= part(apps, contexts, assumptions)
    return found


def _table_4(apps, contexts, assumptions):
    found = {}
    for name, app in apps.items():
        weights = model.stored_weights(app, assumptions) / assumptions.weight_bytes
        # a token's share: every weight it is multiplied with, but routed experts it does not go to
        active = app.resident + app.expert * app.n_experts * app.routed_share
        found["Table 4", name, "Active"] = active, PARAMETERS
        found["Table 4", name, "# Param"] = weights, PARAMETERS
        for label, context in contexts.items():
            for batch in (1, 32):
                at = app, batch, context, assumptions
                column = f"{label} B={batch}"
                found["Table 4", name, f"Capacity {column}"] = (model.capacity_needed(*at), CAPACITY)
                found["Table 4", name, f"AMI {column}"] = (model.arithmetic_intensity(*at), INTENSITY)
    return found


def _table_5(apps, contexts, assumptions):
    found, chip = {}, load_chip("HBM3", assumptions)
    for name in large():
        for label, context in contexts.items():
            for n in (8, 128):
                t_tp, column = (model.collective_latency(n, assumptions), f"{label} TP{n}")
                batch = model.largest_batch(apps[name], chip, context, n, assumptions)

                def speed(kind, batch, at=(context, n, 1, t_tp, assumptions), app=apps[name]):
                    return None if batch is None else kind(app, chip, batch, *at)

                one = None if batch is None else 1
                found["Table 5", name, f"Max UTPS {column}"] = (speed(model.user_speed, one), SPEED)
                found["Table 5", name, f"Max STPS {column}"] = (speed(model.system_speed, batch), SPEED)
                found["Table 5", name, f"UTPS at max STPS {column}"] = (speed(model.user_speed, batch), SPEED)
    return found


def _table_6(apps, contexts, assumptions):
    found = {}
    for name in large():
        for label, context in contexts.items():
            new, old = (
                model.user_speed(
                    apps[name], load_chip(memory, assumptions), 1, context, 128, 1, IDEAL, assumptions
                )
                for memory in ("3D-DRAM", "HBM3")
            )
            found["Table 6", name, f"{label} UTPS"] = new, SPEED
            found["Table 6", name, f"{label} Speedup"] = new / old, GAIN
    return found


def _table_7(apps, contexts, assumptions):
    found = {}
    for name in large():
        for memory in MEMORIES:
            chip = load_chip(memory, assumptions)
            stages = model.stages_of(apps[name], chip, assumptions)
            for label, t_tp in latencies(assumptions).items():
                speed = model.user_speed(
                    apps[name], chip, 1, contexts["T=128K"], 128, stages, t_tp, assumptions
                )
                found["Table 7", name, f"{memory} {label}"] = speed, SPEED
    return found


def written(value, kind, assumptions=PRINTED):
    """A cell as the paper writes it.

    Parameters
    ----------
    value : float or None
        In SI units.
    kind : str
        What the cell holds, as :func:`cells` gives it.
    assumptions : Assumptions
        What a GB counts.

    Returns
    -------
    str
        Speeds below a thousand are whole; above, K or M with one decimal below ten and none from there. Halves
        go to the even digit.

    Examples
    --------
    >>> [written(v, SPEED) for v in (490.6, 2236.0, 11750.0, 1338000.0)]
    ['491', '2.2K', '12K', '1.3M']
    >>> written(14.5 * 2**30, CAPACITY), written(None, SPEED)
    ('14', '-')
    """
    if value is None:
        return "-"
    if kind == CAPACITY:
        return f"{round(value / assumptions.gb)}"
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


def printed_text(row):
    """A printed cell in the paper's own writing, from the row of ``published.csv``.

    Parameters
    ----------
    row : inferlib.ledger.Row

    Returns
    -------
    str
    """
    text = row.text
    if text == "-":
        return text
    if row.unit == "tok/s" and "e" in text:
        digits, power = text.split("e")
        return digits + {"3": "K", "6": "M"}[power]
    if "e" in text:
        digits, power = text.split("e")
        return digits + {"9": "B", "12": "T"}[power]
    return text


def printed_cells():
    """The cells as the paper prints them: (artefact, row, column) to text.

    Returns
    -------
    dict
    """
    from inferlib.ledger import published

    return {
        place: printed_text(row)
        for place, row in published("liminal2025").items()
        if row.artefact in TABLES and row.kind == "model"
    }


def computed_cells(assumptions=PRINTED):
    """The cells as the paper would write what these assumptions give; keys as :func:`printed_cells`."""
    return {place: written(*cell, assumptions) for place, cell in cells(assumptions).items()}
