"""Pope et al. 2022: assumptions on which the two-constant model depends, changed one at a time and refitted."""

from functools import partial

from book.frames import labelled
from book.papers.pope2022 import evidence, two_constants
from book.papers.pope2022.evidence import SLICE, TPU, palm
from inferlib.ops import maximum
from inferlib.papers import pope2022 as pope

ALL_LINKS = partial(pope.ws2d_time, assumptions=pope.CORRECTED)
FORMS = {  # name: time of a layer's exchanges, whether multiplies hide them, how the cache is cut
    "as chosen": (two_constants.exchange_time, False, "Head"),
    "cache cut over the batch": (two_constants.exchange_time, False, "Batch"),
    "all links at once": (ALL_LINKS, False, "Head"),
    "all links, hidden behind the rest": (ALL_LINKS, True, "Head"),
}


def times(exchange, hidden, rows, constants):
    """Seconds of each of :func:`book.papers.pope2022.evidence.cells` by a form of the model."""
    model, mesh = palm(), pope.load_mesh(SLICE)
    tokens, seen, held, passes = (rows[name].to_numpy(float) for name in ("tokens", "seen", "held", "passes"))
    multiply = two_constants.multiply_time(model, TPU, mesh, constants, tokens)
    moved = model.layers * exchange(model, TPU, mesh, tokens)
    busy = maximum(multiply, moved) if hidden else multiply + moved
    attention = two_constants.attention_time(model, TPU, mesh, constants, tokens, seen, held)
    return passes * (busy + attention + model.layers * constants.overhead)


@labelled()
def change_one_thing():
    """Refit other forms of the model on the same 54 cells, and test them on other rows.

    Prefill with all weights gathered communicates next to nothing, so it tests the efficiency alone.
    """
    place = ("Table 2", "high-throughput prefill")
    at, measured = evidence.configurations()[place], evidence.measured_pass(*place, 1)
    for name, (exchange, hidden, cut) in FORMS.items():
        cells, by_form = evidence.cells(attention=cut), partial(times, exchange, hidden)
        constants = evidence.fit(cells, by_form)
        row = {
            "efficiency": constants.efficiency,
            "overhead": 1e6 * constants.overhead,
            "rms": 100 * evidence.rms(by_form(cells, constants) / cells.measured.to_numpy() - 1),
            "error, all weights gathered": 100 * (evidence.pass_time(at, constants) / measured - 1),
        }
        yield name, row
