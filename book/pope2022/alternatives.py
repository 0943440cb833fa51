"""Pope et al. 2022: what the two-constant model hinges on. One change at a time, each fitted anew."""

from functools import partial

from book.pope2022 import evidence
from book.pope2022.evidence import SLICE, TPU, palm
from inferlib import checks
from inferlib.ops import maximum
from inferlib.papers.pope2022.equations.layouts import ws2d_time
from inferlib.papers.pope2022.equations.prediction import (
    attention_time,
    multiply_time,
    wgxyz_step,
    ws2d_axis_time,
)
from inferlib.papers.pope2022.records import CORRECTED, EXACT, load_mesh

FORMS = ("axis by axis", "all links at once", "the paper's two matrices", "hidden behind the rest")


def step(form, constants, tokens, seen, held):
    """A forward pass of PaLM 540B on 64 chips with another form of communication.

    Parameters
    ----------
    form : str
        One of :data:`FORMS`: exposed, one axis of the torus after the other (the model of the chapter);
        exposed, over all six links; the same for the volume of the paper's formula; or over all links and
        hidden behind the multiplies, or they behind it.
    constants : Constants
    tokens, seen, held : float or array
        As for :func:`inferlib.papers.pope2022.equations.prediction.ws2d_step`.

    Returns
    -------
    float or array
        Seconds.
    """
    checks.one_of("form", form, FORMS)
    model, mesh = palm(), load_mesh(SLICE)
    multiply = multiply_time(model, TPU, mesh, constants, tokens)
    attention = attention_time(model, TPU, mesh, constants, tokens, seen, held)
    fixed = model.layers * constants.overhead
    if form == "axis by axis":
        each = ws2d_axis_time(model, TPU, mesh, tokens)
    else:
        each = ws2d_time(model, TPU, mesh, tokens, EXACT if form == "the paper's two matrices" else CORRECTED)
    moved = model.layers * each
    if form == "hidden behind the rest":
        return maximum(multiply, moved) + attention + fixed
    return multiply + moved + attention + fixed


def times(rows, constants, form):
    """Seconds of each of :func:`book.pope2022.evidence.cells` by a form of the model."""
    return rows.passes.to_numpy(float) * step(
        form, constants, *(rows[name].to_numpy(float) for name in ("tokens", "seen", "held"))
    )


def change_one_thing():
    """What other forms of the model give: each fitted on the same 54 cells, tested on what they do not decide.

    Returns
    -------
    pandas.DataFrame
        Indexed by the change: ``efficiency`` and ``overhead`` (us) fitted; ``rms`` on the cells (per cent);
        and the ``error`` (per cent) of the prefill with all weights gathered, Table 2, in which next to
        nothing is communicated, so that it tests the efficiency alone.
    """
    import pandas as pd

    place = ("Table 2", "high-throughput prefill")
    at = evidence.configurations()[place]
    measured = evidence.measured_pass(*place, 1)
    rows = {}
    for name, form, attention in (
        ("as chosen", "axis by axis", "Head"),
        ("cache cut over the batch", "axis by axis", "Batch"),
        ("all links at once", "all links at once", "Head"),
        ("all links, the paper's two matrices", "the paper's two matrices", "Head"),
        ("all links, hidden behind the rest", "hidden behind the rest", "Head"),
    ):
        cells = evidence.cells(attention=attention)
        by_form = partial(times, form=form)
        constants = evidence.fit(cells, by_form)
        gathered = wgxyz_step(at["model"], TPU, at["mesh"], constants, at["tokens"], at["seen"])
        rows[name] = {
            "efficiency": constants.efficiency,
            "overhead": 1e6 * constants.overhead,
            "rms": 100 * evidence.rms(by_form(cells, constants) / cells.measured.to_numpy() - 1),
            "error, all weights gathered": 100 * (gathered / measured - 1),
        }
    return pd.DataFrame(rows).T
