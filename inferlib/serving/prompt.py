"""A prompt is a step with many rows: how long it takes, what it costs the others, when the first token comes."""

from functools import partial

from inferlib import checks
from inferlib.equation import equation
from inferlib.ops import maximum, sqrt
from inferlib.serving.decode import Place
from inferlib.serving.kernels import Engine
from inferlib.system import Breakdown
from inferlib.transformer import pairs

equation = partial(equation, "serving", chapter="price")


@equation(unit="s", users="1", output_tokens="1 > 0", prompt_time="s")
def others_time(users, output_tokens, prompt_time):
    """What one token waits for the prompts of other users, when each asks again as soon as it is answered.

    While a user gets ``output_tokens``, each of the others finishes once and sends a prompt: so many prompts are
    read among so many of the user's tokens.

    Examples
    --------
    >>> others_time(users=33, output_tokens=1000, prompt_time=0.1)
    0.0032
    """
    return (users - 1) / output_tokens * prompt_time


@equation(unit="s", step="s", others="s")
def token_time(step, others):
    """Time between two tokens of a user: the step, and the prompts of others in between."""
    return step + others


@equation(unit="s", chunks="1", prompt_time="s", step="s")
def chunked_time(chunks, prompt_time, step):
    """Time to read a prompt in pieces, each of which shares a step with the tokens of others."""
    return prompt_time + chunks * step


@equation(unit="s", layer_start="s", n_layers="1", passes="1", prompt_time="s", step="s", users="1")
def first_token_time(layer_start, n_layers, passes, prompt_time, step, users):
    """Time to the first token: starting the layers one by one, the prompt and those ahead of it, and a step.

    Prompts run kernel by kernel, not from a recorded graph. Users who ask independently bunch like a square root.
    """
    return layer_start * n_layers + passes * prompt_time * sqrt(users) + step


@equation(unit="s", users="1", room="1 > 0", prompt_time="s", output_tokens="1", step="s")
def queue_time(users, room, prompt_time, output_tokens, step):
    """Wait for a place in memory, when more users ask than there is room for caches.

    Those beyond the room wait until as many places have come free; a place comes free whenever a request is done.
    """
    return maximum(users - room, 0) * (prompt_time + output_tokens * step / room)


class _Prompt(Place):
    """A prompt of one sequence: so many new tokens after so many whose cache is there already."""

    links = "library"

    def __init__(self, *question, new, cached):
        super().__init__(*question)
        self.new, self.cached = new, cached

    def attention(self, attention):
        seen = pairs(attention, self.cached + self.new) - pairs(attention, self.cached)
        return 0.0, seen * sum(attention.pair_flops(absorbed=False).values()) / self.tp


def prompt_pass(model, system, workload, tokens, cached=0, layout=None, *, keep=None, operators=None):
    """How long it takes to read a prompt, by named terms.

    Parameters
    ----------
    model : Transformer
    system : System
    workload : Workload
        Its formats are used.
    tokens : float
        Tokens of the prompt.
    cached : float
        How many of them, from the start, are in the cache already.
    layout, keep, operators : optional
        As in :func:`inferlib.serving.decode_step`. The engine counts with the first token, not here.

    Returns
    -------
    Breakdown

    Raises
    ------
    ValueError
        If ``cached`` is not below ``tokens``.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> model, work = inferlib.load_model("Llama 3 70B"), inferlib.Workload(1)
    >>> whole, half = (prompt_pass(model, box, work, 8192, cached=n).total for n in (0, 4096))
    >>> 0.5 < half / whole < 0.6
    True
    """
    checks.number("tokens", tokens)
    checks.number("cached", cached, zero=True)
    if cached >= tokens:
        raise ValueError(f"cached is {cached}, but must be below tokens, {tokens}")
    new = tokens - cached
    one = workload.replace(batch=1 if layout is None else layout.dp, context=tokens)
    place = _Prompt(model, system, one, layout, keep, new, operators, new=new, cached=cached)
    again = partial(prompt_pass, keep=keep, operators=operators)
    origin = (again, model, system, workload, tokens, cached, layout)
    reason = place.refusal()
    if reason:
        return Breakdown(status="n/a", reason=reason, source="sixth", origin=origin)
    return Breakdown(tuple(place.stages(Engine())), source="sixth", origin=origin)


def room(model, system, workload, layout=None, keep=None, usable=0.9):
    """Sequences whose caches fit beside the weights.

    Parameters
    ----------
    model, system, workload, layout, keep
        As in :func:`inferlib.serving.decode_step`; ``workload.context`` is the length of each sequence.
    usable : float
        Part of the memory that engines use, by their default.

    Returns
    -------
    float
        Not rounded; zero or less if the weights alone do not fit.
    """

    def place(batch, context):
        return Place(model, system, workload.replace(batch=batch, context=context), layout, keep, 1, None)

    return places(place, workload.context, usable)


def places(place, length, usable=0.9):
    """:func:`room` of any way to place a batch of a context: what is left beside the weights, over one sequence."""
    empty = place(1, 0)
    used, have = empty.memory()
    if have is None:
        return float("inf")
    return empty.dp * (usable * have - used) / empty.sequence(length)
