"""Pope et al. 2022: the bound and the two-constant model held against the paper's own measurements."""

from functools import cache, partial

import numpy as np

from book.audit.grading import Reader
from book.frames import frame, labelled
from book.papers.pope2022 import benchmarks, plans, two_constants
from book.papers.pope2022.benchmarks import TABLES, batches, lengths
from inferlib import validation
from inferlib.papers import pope2022 as pope
from inferlib.system import format_bytes
from tokenprice import Question

TPU = pope.load_chip("TPU v4")
SLICE = int(Reader("pope2022", "Appendix D")("chips"))  # chips in the measurements of appendix D


# --- The cells of appendix D -----------------------------------------------------------------------------


@frame("table", "phase", "batch", "tokens", "seen", "held", "passes", "measured")
def cells(tables=TABLES, attention="Head"):
    """The PaLM prefill and generate measurements of appendix D, with what the model needs of each.

    ``tokens`` are of the batch in one pass, ``seen`` is what each sees, ``held`` bytes of cache that one chip reads.
    ``attention``: what the cache is cut over in generation. The authors' public code leaves it on every chip
    ("Head"); the text of appendix D cuts it over the batch.
    """
    model = palm()
    for table in tables:
        read = Reader("pope2022", validation.one_of("table", table, TABLES))
        given, made = lengths(read, table)
        for batch in batches(table, "PaLM prefill"):
            context = given + made / 2  # halfway through the answer
            for phase, tokens, seen, cut, passes in (
                ("prefill", batch * given, given, "Head", 1),
                ("generate", batch, context, attention, made),
            ):
                held = pope.CACHES[cut](model, SLICE, batch, seen)
                measured = read(f"batch {batch}", f"PaLM {phase}, time", table)
                yield table, phase, batch, tokens, seen, held, passes, measured


def palm():
    """PaLM 540B as it was run on 64 chips: with 64 heads."""
    return pope.load_model("PaLM 540B", padded=True)


def predicted(rows, constants):
    """Seconds of each of :func:`cells` by the two-constant model."""
    at = (rows[name].to_numpy(float) for name in ("tokens", "seen", "held"))
    return rows.passes.to_numpy(float) * two_constants.step_time(
        palm(), TPU, pope.load_mesh(SLICE), constants, *at
    )


def fit(rows, times=predicted):
    """Fit the two constants by least squares of the relative errors of some cells, for some form of the model."""
    from scipy.optimize import least_squares

    def misses(logarithms):
        return times(rows, two_constants.Constants(*np.exp(logarithms))) / rows.measured.to_numpy() - 1

    exact = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-14)
    found = least_squares(misses, np.log([0.7, 1e-4]), bounds=(np.log(1e-9), 0), **exact)
    # six digits: sums on another CPU may be in another order, and the search may end elsewhere
    return two_constants.Constants(*(float(f"{value:.6g}") for value in np.exp(found.x)))


@cache
def fitted(tables=TABLES):
    """The constants fitted on the cells of some tables."""
    return fit(cells(tables))


def others(table):
    """All tables of appendix D but one."""
    return tuple(t for t in TABLES if t != table)


def rms(errors):
    """Root of the mean square of relative errors."""
    return float(np.sqrt(np.mean(np.square(errors))))


def errors(rows, constants):
    """Relative errors of the model on some cells."""
    return predicted(rows, constants) / rows.measured.to_numpy() - 1


@labelled()
def cross_validation():
    """Leave one table out: constants from the other two, and errors on the one left out, in per cent.

    ``inside`` is the rms on the cells fitted, ``outside`` on those left out; the last row leaves none out.
    """
    for left in (*TABLES, "none"):
        used = cells(others(left))
        constants = fit(used)
        tested = cells((left,)) if left in TABLES else used
        error = errors(tested, constants)
        row = {
            "efficiency": constants.efficiency,
            "overhead": 1e6 * constants.overhead,
            "inside": 100 * rms(errors(used, constants)),
            "outside": 100 * rms(error),
            "prefill": 100 * rms(error[tested.phase == "prefill"]),
            "generate": 100 * rms(error[tested.phase == "generate"]),
            "worst": 100 * error[np.abs(error).argmax()],
        }
        yield left, row


# --- A reader's case -------------------------------------------------------------------------------------


RUN = Question(
    "PaLM 540B", "64x TPU v4", weights="int8", batch=64, context=2048
)  # the case in the chapter's text


def described(case):
    """Return the case; or the paper's own, with a line of explanation, if the paper does not describe model or chip."""
    try:
        run_of(case)
    except ValueError as reason:
        print(f"{reason}. The chapter goes on with {RUN.model.name} on {RUN.machine}.")
        return RUN
    return case


def run_of(case):
    """Model, chip and mesh of a Question: as the paper ran or states them, where it does.

    ValueError where the paper describes no such model. Chips that are not a slice of TPU v4 form the box that is
    nearest to a cube, every axis with all the bandwidth.
    """
    name, count, chip = case.model.name, case.machine.count, case.machine.chip
    weights, cache, _ = case.formats
    if name in pope.models():
        model = pope.load_model(name, padded=name == "PaLM 540B" and count >= SLICE).at(weights)
    else:
        model = pope.load_model(case.model, weights, cache)
    if chip.name == TPU.name:
        known = count in pope.meshes()
        return model, TPU, pope.load_mesh(count) if known else pope.torus(*_cube(count))
    return model, pope.load_chip(chip), pope.Mesh(*_cube(count))


def _cube(count):
    """Sides of the box of ``count`` chips that is nearest to a cube."""
    best = min(pope.boxes(count), key=lambda box: (box.x + box.y + box.z, box.x, box.y))
    return best.x, best.y, best.z


def measured_token(case):
    """Return the seconds of a token if the paper prints this case, else None."""
    weights, _, _ = case.formats
    asked = (
        case.model.name,
        case.machine.count,
        case.workload.batch,
        case.workload.context,
        format_bytes(weights),
    )
    if case.machine.chip.name != TPU.name:
        return None
    read, printed = Reader("pope2022", "Text 4.4"), {1: "int8, batch 64", 2: "bfloat16, batch 64"}
    if asked[:4] == ("PaLM 540B", SLICE, 64, 2048) and asked[4] in printed:
        return read(printed[asked[4]])
    for (table, row), at in configurations().items():
        made = at["passes"]
        ran = at["model"].name, at["mesh"].chips, at["batch"], at["seen"] - made / 2, at["model"].weight_bytes
        if row.endswith("decode") and ran == asked:
            return measured_pass(table, row, made)
    return None


def measured_in_words(case):
    """Say what the paper measured of a case, that it did not measure it, or that it does not fit."""
    (model, chip, mesh), measured = run_of(case), measured_token(case)
    place = model, chip, mesh, "WS 2D", "Batch", case.workload.batch, case.workload.context
    if measured is None:
        return pope.why_not(*place) or "no measurement of this case"
    return f"measured on {mesh.chips:.0f} chips  {1e3 * measured:.1f} ms"


def advised(case, batch, new, held):
    """Return the best way to cut a pass of ``new`` tokens for each of ``batch`` sequences, or why there is none."""
    work = f"{batch} × {new:,} tokens read" if new > 1 else f"{batch} tokens written after {held:,} each"
    try:
        model, chip = pope.load_model(case.model, *case.formats[:2]), pope.load_chip(case.machine.chip)
        best = plans.best_plan(model, chip, case.machine.count, batch, new, held)
    except ValueError as refused:
        return f"{work}: {refused}"
    share = best.network / max(best.memory, best.arithmetic)
    return f"{work}: {best.layout}, network {share:.0%}"


def parts_of(case, constants):
    """Return the parts of a token's time in the two-constant model: description to seconds and a term of the style."""
    model, chip, mesh = run_of(case)
    batch, seen = case.workload.batch, case.workload.context + 64 / 2  # halfway through the paper's answers
    held, at = pope.cache_over_batch(model, mesh.chips, batch, seen), (model, chip, mesh, constants, batch)
    exchanges = model.layers * two_constants.exchange_time(model, chip, mesh, batch)
    return {
        "weights, read while multiplying": (two_constants.multiply_time(*at), "weights"),
        "cache": (two_constants.attention_time(*at, seen, held), "cache"),
        "exchanges": (exchanges, "network"),
        "fixed time of the layers": (model.layers * constants.overhead, "overhead"),
    }


def predicted_token(case):
    """Seconds of a token by the two-constant model."""
    return sum(seconds for seconds, _ in parts_of(case, fitted()).values())


# --- The eight configurations of Tables 2 and 3 ----------------------------------------------------------


def configurations():
    """The eight configurations of Tables 2 and 3: (table, row) to what :func:`configuration` returns."""
    found = {}
    for entry in pope.STATED["configurations"]:
        table, row = entry["table"], entry["row"]
        read = Reader("pope2022", table)
        size = entry["model"], int(read(row, "chips")), read(row, "batch")
        cut = entry["layout"], entry["attention"], entry["weights"], read("tokens of prefill")
        answer = read("tokens of decode") if row.endswith("decode") else None
        found[table, row] = configuration(*size, *cut, answer)
    return found


def configuration(name, chips, batch, layout, attention, weights, context, answer=None):
    """Return the model's inputs for one run, from words such as ``"WS 2D"``, ``"Batch"`` and ``"int8"``.

    PaLM 540B gets its 64 heads on 64 and more chips. ``context``: tokens of the prompt, or before the first token
    generated. ``answer``: tokens generated; None for a prefill.
    """
    model = pope.load_model(name, padded=name == "PaLM 540B" and chips >= SLICE).at(weights)
    seen = context if answer is None else context + answer / 2
    return {
        "model": model,
        "chip": TPU,
        "mesh": pope.load_mesh(chips),
        "batch": batch,
        "layout": layout,
        "attention": attention,
        "tokens": batch * context if answer is None else batch,
        "seen": seen,
        "held": pope.CACHES[attention](model, chips, batch, seen),
        "passes": 1 if answer is None else answer,
    }


def pass_time(at, constants):
    """Seconds of one forward pass of a configuration by the two-constant model."""
    work = at["tokens"], at["seen"], at["held"]
    return two_constants.step_time(at["model"], at["chip"], at["mesh"], constants, *work, layout=at["layout"])


def pass_bound(at):
    """Return the seconds that each resource needs for one forward pass of a configuration."""
    place = at["model"], at["chip"], at["mesh"], at["layout"]
    return pope.bound(*place, at["tokens"], at["seen"], at["held"], pope.CORRECTED)


def measured_pass(table, row, passes):
    """Seconds of one forward pass as a table prints it."""
    return benchmarks.published("pope2022")[table, row, "latency"].value / passes


def in_words(table, row):
    """Describe a configuration: model, users, and prefill or decode."""
    model = {"Table 2": "540B", "Table 3": "62B"}[table]
    users = "one user" if row == "low-latency prefill" else "few users" if "low" in row else "512 users"
    return f"{model}, {users}, {row.split()[-1]}"


@labelled()
def bounds():
    """The roofline bound of a forward pass of the eight configurations, by resource, and what was measured; in ms."""
    for place, at in configurations().items():
        need = pass_bound(at)
        groups = {name: need[name] for name in ("arithmetic", "network")}
        groups["memory"] = need["weights"] + need["cache"]
        binds = max(groups, key=groups.get)
        measured = measured_pass(*place, at["passes"])
        yield (
            ", ".join(place),
            {name: 1e3 * t for name, t in need.items()}
            | {
                "bound": 1e3 * groups[binds],
                "binds": binds,
                "measured": 1e3 * measured,
                "over bound": measured / groups[binds],
                "says": in_words(*place),
            },
        )


@labelled("measured", "predicted", "error")
def held_out(constants):
    """The two-constant model on latencies that it was not fitted to, of a forward pass in ms; errors in per cent.

    Eight configurations of Tables 2 and 3, and the 36.9 ms of section 4.4.
    """
    for place, at in configurations().items():
        yield ", ".join(place), _compared(measured_pass(*place, at["passes"]), pass_time(at, constants))
    read, slow = Reader("pope2022", "Text 4.4"), pass_time(bf16_decode(), constants)
    yield "Text 4.4, bfloat16 at batch 64", _compared(read("bfloat16, batch 64"), slow)


def _compared(measured, predicted):
    """Two times in ms, and the error of the second in per cent."""
    return 1e3 * measured, 1e3 * predicted, 100 * (predicted / measured - 1)


def bf16_decode():
    """The low-latency decode of Table 2 with 16-bit weights (section 4.4)."""
    return configuration("PaLM 540B", SLICE, 64, "WS 2D", "Batch", "bf16", 2048, 64)


def megatron(table, batch, constants):
    """Seconds of a total of MT-NLG 530B by the two-constant model: prefill and all steps."""
    read, model = Reader("pope2022", table), pope.load_model("MT-NLG 530B")
    given, made = lengths(read, table)
    step = partial(two_constants.step_time, model, TPU, pope.load_mesh(SLICE), constants)
    held = partial(pope.CACHES["Head"], model, SLICE)
    prefill = step(batch * given, given, held(batch, given))
    context = given + made / 2
    return prefill + made * step(batch, context, held(batch, context))


@frame("table", "batch", "measured", "predicted", "error")
def megatron_table(constants):
    """The 27 totals of MT-NLG 530B, held out of the fit, in ms; those of Table D.4 are in the other column there."""
    for table in TABLES:
        column = "PaLM total" if table == "Table D.4" else "MT-NLG total"
        for batch in batches(table, column):
            measured = benchmarks.printed_time(table, column, batch)
            predicted = megatron(table, batch, constants)
            yield table, batch, *_compared(measured, predicted)


def apart():
    """Return the ratio of two steps of section 4.2 if its two shares of attention were right.

    Both rows read equally many bytes of cache, so the shares are inversely proportional to the steps.
    """
    printed = benchmarks.published("pope2022")
    rows = "batch 128, context 32768", "batch 512, context 8192"
    shares = [printed["Text 4.2", row, "share of attention"].value for row in rows]
    return shares[0] / shares[1]
