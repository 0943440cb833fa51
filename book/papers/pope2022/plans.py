"""Pope et al. 2022 on a reader's machine: which layout, box and cut of attention are fastest at a given batch."""

from dataclasses import dataclass

from inferlib import validation
from inferlib.papers import pope2022 as pope
from inferlib.system import count as whole


@dataclass(frozen=True)
class ShardingPlan:
    """One way to cut a model: layout, dimension along which attention is cut, box, and seconds of each resource."""

    layout: str
    attention: str
    mesh: pope.Mesh
    network: float
    memory: float
    arithmetic: float
    why_not: str

    @property
    def bound(self):
        """The longest of the three times."""
        return max(self.network, self.memory, self.arithmetic)


def sharding_plans(model, chip, count, batch, tokens=1, context=0):
    """Every :class:`ShardingPlan` to cut a model over some chips of one network; ``why_not`` is empty where it runs.

    ``model``, ``chip``: such as ``load_model`` and ``load_chip`` of ``inferlib.papers.pope2022`` make. ``count``:
    chips, a whole number, else a ValueError. ``tokens``: new tokens of each of ``batch`` sequences in this pass: 1 in
    generation, the prompt in prefill; ``context``: those that are cached before.
    """
    count = whole("count", count)
    validation.number("batch", batch, minimum=1)
    validation.number("tokens", tokens, minimum=1)
    validation.number("context", context, zero=True)
    for mesh, layout in ((m, name) for m in pope.boxes(count) for name in pope.LAYOUTS if _distinct(name, m)):
        # if every chip has its own sequences, nothing is left to cut over heads
        for attention in ("Batch",) if layout == "WG XYZ" else ("Head", "Batch"):
            at = model, chip, mesh, layout, attention, batch
            needs = pope.pass_needs(*at, tokens, context)
            memory = needs["weights"] + needs["cache"]
            reason = pope.why_not(*at, context + tokens)
            yield ShardingPlan(layout, attention, mesh, needs["network"], memory, needs["arithmetic"], reason)


def _distinct(layout, mesh):
    """Whether a box is the representative of its layout; others are equivalent, or belong to another layout."""
    if layout == "WS 1D":
        return mesh.x == mesh.chips  # the arrangement of the chips makes no difference
    if layout == "WS 2D":
        return mesh.x != 1 and mesh.y == 1
    if layout == "WG X":
        return mesh.x not in (1, mesh.chips) and mesh.y == 1
    # WG XY: only the number of chips that gather counts, and WG X includes all numbers
    return layout == "WG XYZ" and mesh.x == mesh.chips != 1


def best_plan(model, chip, count, batch, tokens=1, context=0):
    """The best of the :func:`sharding_plans` to cut a model at this batch; among equals, the one that moves least.

    Raises ValueError if nothing fits, with the reason of the plan that comes nearest.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_chip, load_model
    >>> model, chip = load_model("Llama 3 70B"), load_chip("H100 SXM")
    >>> best_plan(model, chip, 8, batch=32, context=4096).layout
    'WS 2D'
    """
    every = sharding_plans(model, chip, count, batch, tokens, context)
    best = min(every, key=lambda way: (way.why_not != "", way.bound, way.network))
    if best.why_not:
        raise ValueError(f"no layout of {count} chip{'s' * (count > 1)} runs this: {best.why_not}")
    return best
