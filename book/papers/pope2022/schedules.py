"""Pope et al. 2022, Figures 2, 4, 5, A.1 and A.2 as data: the tensors on each chip of a mesh, and their exchanges.

A tensor is a rectangle: rows of activations are the batch and columns the width; rows of weights are inputs and columns
outputs. Each side may be cut over some axes of the mesh. A chip holds one piece.
"""

from dataclasses import dataclass
from itertools import product

from book import stored
from inferlib import validation

AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Tensor:
    """A tensor on the mesh: which axes cut its rows and its columns, and which still hold partial sums."""

    name: str
    rows: str
    columns: str
    row_axes: str = ""
    column_axes: str = ""
    partial: str = ""

    @property
    def notation(self):
        """As the paper writes it, such as B_x L E_yz, in TeX."""

        def cut(dimension, axes):
            return dimension + (f"_{{{axes}}}" if axes else "")

        middle = "L" if self.rows == "B" and self.columns in ("E", "F", "H") else ""
        middle += r"\," if self.columns == "1" else ""
        text = cut(self.rows, self.row_axes) + middle + cut(self.columns, self.column_axes)
        return f"${text}$" + (f"\npartial\nsum-{self.partial}" if self.partial else "")


@dataclass(frozen=True)
class Move:
    """A collective between two tensors."""

    kind: str
    axes: str

    @property
    def label(self):
        """Such as all-gather(yz), a line for each part."""
        first, _, last = self.kind.rpartition("-")
        return f"{first}-\n{last}\n({self.axes})"


PLANS = stored.toml("papers/pope2022/schedules.toml")
ATTENTIONS = ("multihead over heads", "multiquery over heads", "multiquery over batch")


def schedule(layout):
    """Return the tensors and exchanges of a feed-forward layer, or of one of :data:`ATTENTIONS`, in order.

    Examples
    --------
    >>> [step.label.replace(chr(10), "") for step in schedule("WS 2D")["activations"] if isinstance(step, Move)]
    ['all-gather(yz)', 'reduce-scatter(x)', 'all-gather(x)', 'reduce-scatter(yz)']
    """
    validation.one_of("layout", layout, tuple(PLANS))
    return {row: [*map(_step, steps)] for row, steps in PLANS[layout].items()}


def _step(text):
    """Parse a tensor or a collective from ``schedules.toml``."""
    name, _, sides = text.partition(": ")
    if not sides:
        return Move(*name.removesuffix(")").split("("))
    rows, columns, *partial = sides.split()
    (row, _, row_axes), (column, _, column_axes) = rows.partition("_"), columns.partition("_")
    return Tensor(name, row, column, row_axes, column_axes, *partial)


def piece(tensor, mesh, chip):
    """The part of a tensor on one chip.

    Examples
    --------
    >>> from inferlib.papers.pope2022 import load_mesh
    >>> piece(Tensor("W in", "E", "F", "x", "yz"), load_mesh(8), (1, 0, 1))
    ((0.5, 1.0), (0.25, 0.5))
    """
    for name, at in zip(AXES, chip, strict=True):
        size = getattr(mesh, name)
        if not 0 <= at < size:
            raise ValueError(f"chip is {chip}, but its {name} must be from 0 to {size - 1:g}")
    return _interval(tensor.row_axes, mesh, chip), _interval(tensor.column_axes, mesh, chip)


def _interval(axes, mesh, chip):
    low, width = 0.0, 1.0
    for axis in axes:
        width /= getattr(mesh, axis)
        low += chip[AXES.index(axis)] * width
    return low, low + width


def all_pieces(tensor, mesh):
    """The part of a tensor on every chip of a mesh: place to :func:`piece`."""
    sizes = (range(int(getattr(mesh, axis))) for axis in AXES)
    return {chip: piece(tensor, mesh, chip) for chip in product(*sizes)}


def collectives(k=3):
    """Return what each of ``k`` chips holds before and after the three collectives (Figure A.1).

    For each chip a list with an entry for each of ``k`` slots: the set of chips from which this part came, or None.

    Examples
    --------
    >>> before, after = collectives(3)["all-gather"]
    >>> before[1], after[1]
    ([None, {1}, None], [{0}, {1}, {2}])
    """
    if not isinstance(k, int) or isinstance(k, bool) or k < 2:
        raise ValueError(f"k is {k!r}, but must be a whole number of at least 2")
    chips = range(k)
    alone = [[{chip} if slot == chip else None for slot in chips] for chip in chips]
    whole = [[{slot} for slot in chips] for _ in chips]
    own = [[{chip} for _ in chips] for chip in chips]
    summed = [[set(chips) if slot == chip else None for slot in chips] for chip in chips]
    return {
        "all-gather": (alone, whole),
        "reduce-scatter": (own, summed),
        # each chip had one row with all columns; now it has one column with all rows
        "all-to-all": (own, whole),
    }
