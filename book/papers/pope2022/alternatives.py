"""Pope et al. 2022: what the two-constant model hinges on. One change at a time, each fitted anew."""

from functools import partial

import pandas as pd

from book.papers.pope2022 import evidence
from book.papers.pope2022.evidence import SLICE, TPU, palm
from inferlib import checks
from inferlib.ops import maximum
from inferlib.papers import pope2022 as pope

FORMS = ("axis by axis", "all links at once", "hidden behind the rest")


def step(form, constants, tokens, seen, held):
    """A forward pass of PaLM 540B on 64 chips with another form of communication.

    ``form`` is one of :data:`FORMS`: exposed, one axis of the torus after the other (the model of the chapter);
    exposed, over all six links; or over all links and hidden behind the multiplies, or they behind it.
    """
    checks.one_of("form", form, FORMS)
    model, mesh = palm(), pope.load_mesh(SLICE)
    multiply = pope.multiply_time(model, TPU, mesh, constants, tokens)
    attention = pope.attention_time(model, TPU, mesh, constants, tokens, seen, held)
    fixed = model.layers * constants.overhead
    if form == "axis by axis":
        each = pope.exchange_time(model, TPU, mesh, tokens)
    else:
        each = pope.ws2d_time(model, TPU, mesh, tokens, pope.CORRECTED)
    moved = model.layers * each
    if form == "hidden behind the rest":
        return maximum(multiply, moved) + attention + fixed
    return multiply + moved + attention + fixed


def times(rows, constants, form):
    """Seconds of each of :func:`book.papers.pope2022.evidence.cells` by a form of the model."""
    at = (rows[name].to_numpy(float) for name in ("tokens", "seen", "held"))
    return rows.passes.to_numpy(float) * step(form, constants, *at)


def change_one_thing():
    """What other forms of the model give: each fitted on the same 54 cells, tested on what they do not decide.

    In the prefill with all weights gathered next to nothing is communicated, so that it tests the efficiency alone.
    """
    place = ("Table 2", "high-throughput prefill")
    at = evidence.configurations()[place]
    measured = evidence.measured_pass(*place, 1)
    rows = {}
    for name, form, attention in (
        ("as chosen", "axis by axis", "Head"),
        ("cache cut over the batch", "axis by axis", "Batch"),
        ("all links at once", "all links at once", "Head"),
        ("all links, hidden behind the rest", "hidden behind the rest", "Head"),
    ):
        cells = evidence.cells(attention=attention)
        by_form = partial(times, form=form)
        constants = evidence.fit(cells, by_form)
        gathered = evidence.pass_time(at, constants)
        rows[name] = {
            "efficiency": constants.efficiency,
            "overhead": 1e6 * constants.overhead,
            "rms": 100 * evidence.rms(by_form(cells, constants) / cells.measured.to_numpy() - 1),
            "error, all weights gathered": 100 * (gathered / measured - 1),
        }
    return pd.DataFrame(rows).T
