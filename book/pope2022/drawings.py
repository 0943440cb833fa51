"""Pope et al. 2022, Figures 2, 4, 5, A.1 and A.2 as data and as our own drawings, for any mesh.

A tensor is a rectangle: of activations, rows are the batch and columns the width; of weights, rows are what
goes in and columns what comes out. Each side may be cut over some axes of the mesh. A chip holds one piece.
"""

from dataclasses import dataclass
from itertools import product

from book.pope2022 import evidence
from inferlib import checks
from inferlib.papers.pope2022.equations.costs import cache_over_batch, cache_over_heads, memory_time
from inferlib.papers.pope2022.records import load_mesh, multihead

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
        first = _cut(self.rows, self.row_axes)
        middle = "L" if self.rows == "B" and self.columns in ("E", "F", "H") else ""
        text = first + middle + (r"\," if self.columns == "1" else "") + _cut(self.columns, self.column_axes)
        return f"${text}$" + (f"\npartial\nsum-{self.partial}" if self.partial else "")


def _cut(dimension, axes):
    return dimension + (f"_{{{axes}}}" if axes else "")


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


def schedule(layout):
    """What a feed-forward layer holds and moves, in order.

    Parameters
    ----------
    layout : {"WS 1D", "WS 2D", "WG X", "WG XY", "WG XYZ"}

    Returns
    -------
    dict
        ``"activations"`` and ``"weights"``: lists of :class:`Tensor` and :class:`Move`, in the order in
        which they come.

    Examples
    --------
    >>> [step.label.replace(chr(10), "") for step in schedule("WS 2D")["activations"] if isinstance(step, Move)]
    ['all-gather(yz)', 'reduce-scatter(x)', 'all-gather(x)', 'reduce-scatter(yz)']
    """
    gathered = {"WG X": "x", "WG XY": "xy", "WG XYZ": "xyz"}
    if layout in gathered:
        return _gathered(gathered[layout])
    checks.one_of("layout", layout, ("WS 1D", "WS 2D", *gathered))
    if layout == "WS 1D":
        return {
            "activations": [
                Tensor("input", "B", "E", "", "xyz"),
                Move("all-gather", "xyz"),
                Tensor("gathered", "B", "E"),
                Tensor("hidden", "B", "F", "", "xyz"),
                Tensor("product", "B", "E", "", "", "xyz"),
                Move("reduce-scatter", "xyz"),
                Tensor("output", "B", "E", "", "xyz"),
            ],
            "weights": [Tensor("W in", "E", "F", "", "xyz"), Tensor("W out", "F", "E", "xyz", "")],
        }
    return {
        "activations": [
            Tensor("input", "B", "E", "", "xyz"),
            Move("all-gather", "yz"),
            Tensor("gathered", "B", "E", "", "x"),
            Tensor("hidden", "B", "F", "", "yz", "x"),
            Move("reduce-scatter", "x"),
            Tensor("summed", "B", "F", "", "yzx"),
            Move("all-gather", "x"),
            Tensor("hidden", "B", "F", "", "yz"),
            Tensor("product", "B", "E", "", "x", "yz"),
            Move("reduce-scatter", "yz"),
            Tensor("output", "B", "E", "", "xyz"),
        ],
        "weights": [Tensor("W in", "E", "F", "x", "yz"), Tensor("W out", "F", "E", "yz", "x")],
    }


def _gathered(over):
    """The schedule of a layout that gathers its weights over some axes and keeps the rest."""
    rest = "xyz".replace(over, "")
    wide = Tensor("gathered", "B", "E", over)
    activations = [Tensor("input", "B", "E", over, rest)]
    if rest:
        activations += [Move("all-gather", rest), wide]
    activations += [Tensor("hidden", "B", "F", over, rest), Tensor("product", "B", "E", over, "", rest)]
    if rest:
        activations += [Move("reduce-scatter", rest), Tensor("output", "B", "E", over, rest)]
    columns = "yz".translate({ord(axis): None for axis in over})
    return {
        "activations": activations,
        "weights": [
            Tensor("W in", "E", "F", "x", "yz"),
            Move("all-gather", over),
            Tensor("W in", "E", "F", "", columns),
            Tensor("W out", "F", "E", columns, ""),
        ],
    }


ATTENTIONS = ("multihead over heads", "multiquery over heads", "multiquery over batch")


def attention_schedule(kind):
    """What attention holds and moves while generating (Figures 4 and 5).

    Parameters
    ----------
    kind : {"multihead over heads", "multiquery over heads", "multiquery over batch"}

    Returns
    -------
    dict
        As :func:`schedule` returns it; the second list is the cache, rows its sequences, columns its
        key/value heads.
    """
    checks.one_of("kind", kind, ATTENTIONS)
    queries = Tensor("queries", "B", "H", "", "xyz")
    result = Tensor("results", "B", "H", "", "xyz")
    if kind == "multiquery over batch":
        return {
            "activations": [
                queries, Move("all-to-all", "xyz"), Tensor("queries", "B", "H", "xyz", ""),
                Tensor("results", "B", "H", "xyz", ""), Move("all-to-all", "xyz"), result,
            ],
            "weights": [Tensor("K and V", "B", "1", "xyz", "")],
        }  # fmt: skip
    cache = (
        Tensor("K and V", "B", "H", "", "xyz")
        if kind.startswith("multihead")
        else Tensor("K and V", "B", "1")
    )
    return {"activations": [queries, result], "weights": [cache]}


def piece(tensor, mesh, chip):
    """The part of a tensor on one chip.

    Parameters
    ----------
    tensor : Tensor
    mesh : Mesh
    chip : tuple of int
        Its place along x, y and z, from 0.

    Returns
    -------
    rows, columns : tuple of float
        From and to, as fractions of each side.

    Examples
    --------
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


def pieces(layout, mesh=None, chip=(0, 0, 0)):
    """Which slice of which tensor a chip holds, step by step.

    Parameters
    ----------
    layout : str
        As for :func:`schedule`, or one of :data:`ATTENTIONS`.
    mesh : Mesh, optional
        The slice of eight chips when not given.
    chip : tuple of int

    Returns
    -------
    pandas.DataFrame
        ``tensor``, ``notation``, ``rows`` and ``columns`` (from and to), the ``share`` of the tensor that the
        chip holds, and what moves ``before`` it is there.
    """
    import pandas as pd

    mesh = mesh or load_mesh(8)
    plan = attention_schedule(layout) if layout in ATTENTIONS else schedule(layout)
    rows = []
    for part in plan.values():
        before = ""
        for step in part:
            if isinstance(step, Move):
                before = step.label.replace("\n", "")
                continue
            r, c = piece(step, mesh, chip)
            share = (r[1] - r[0]) * (c[1] - c[0])
            rows.append(
                (step.name, step.notation.replace("\npartial\nsum", ", partial sum"), r, c, share, before)
            )
            before = ""
    return pd.DataFrame(rows, columns=["tensor", "notation", "rows", "columns", "share", "before"])


def all_pieces(tensor, mesh):
    """The part of a tensor on every chip of a mesh: place to :func:`piece`."""
    sizes = (range(int(getattr(mesh, axis))) for axis in AXES)
    return {chip: piece(tensor, mesh, chip) for chip in product(*sizes)}


# --- Pictures --------------------------------------------------------------------------------------------


def draw_layout(layout="WS 2D", mesh=None, chip=(0, 0, 0)):
    """Draw :func:`pieces`: every tensor with its cuts, and in colour what one chip holds.

    Parameters are those of :func:`pieces`. Returns the Axes.
    """
    import matplotlib.pyplot as plt

    mesh = mesh or load_mesh(8)
    plan = attention_schedule(layout) if layout in ATTENTIONS else schedule(layout)
    top, bottom = plan["activations"], plan["weights"]
    longest = max(_length(top), _length(bottom))
    _, ax = plt.subplots(figsize=(6.6, 4.4), layout="constrained")
    _draw_row(ax, top, 2.12, longest, mesh, chip)
    _draw_row(ax, bottom, 0.0, longest, mesh, chip)
    name = "attention" if layout in ATTENTIONS else "activations"
    ax.text(0.0, 3.58, name, fontsize=9.5, style="italic", va="bottom")
    ax.text(
        0.0, 1.48, "cache" if layout in ATTENTIONS else "weights", fontsize=9, style="italic", va="bottom"
    )
    ax.set(xlim=(-0.2, longest + 0.1), ylim=(-0.65, 3.85), aspect="auto")
    ax.axis("off")
    place = ", ".join(f"{axis} = {at}" for axis, at in zip(AXES, chip, strict=True))
    ax.set_title(f"{layout} on {mesh}: what the chip {place} holds", fontsize=10)
    return ax


_TENSOR, _MOVE, _GAP = 1.0, 1.3, 0.2


def _length(row):
    return sum(_MOVE if isinstance(step, Move) else _TENSOR + _GAP for step in row)


def _draw_row(ax, row, y, longest, mesh, chip):
    from inferlib import style

    x = 0.0
    for step in row:
        if isinstance(step, Move):
            ax.annotate(
                "", (x + _MOVE - 0.3, y + 0.6), (x - 0.12, y + 0.6),
                arrowprops={"arrowstyle": "->", "color": style.RED, "linewidth": 1.4},
            )  # fmt: skip
            middle = x + (_MOVE - 0.42) / 2
            ax.text(middle, y + 0.66, step.label, ha="center", va="bottom", fontsize=8.5, color=style.RED)
            x += _MOVE
            continue
        _draw_tensor(ax, step, x, y, mesh, chip)
        x += _TENSOR + _GAP


def _draw_tensor(ax, tensor, x, y, mesh, chip, height=1.2):
    from matplotlib.patches import Rectangle

    from inferlib import style

    (r0, r1), (c0, c1) = piece(tensor, mesh, chip)
    weights = tensor.rows in ("E", "F") or tensor.name == "K and V"
    colour = style.BLUE if weights else style.ORANGE
    hatch = "///" if tensor.partial else None
    # rows are counted from the top
    corner = (x + c0 * _TENSOR, y + (1 - r1) * height)
    ax.add_patch(
        Rectangle(
            corner, (c1 - c0) * _TENSOR, (r1 - r0) * height,
            facecolor=colour if hatch is None else "none", edgecolor=colour, hatch=hatch, alpha=0.75, linewidth=0.8,
        )
    )  # fmt: skip
    for axes, vertical in ((tensor.column_axes, True), (tensor.row_axes, False)):
        parts = 1
        for axis in axes:
            parts *= int(getattr(mesh, axis))
        for i in range(1, parts if parts <= 64 else 1):
            line = [x + i / parts * _TENSOR] * 2 if vertical else [x, x + _TENSOR]
            other = [y, y + height] if vertical else [y + i / parts * height] * 2
            ax.plot(line, other, color=style.FAINT, linewidth=0.5)
    ax.add_patch(Rectangle((x, y), _TENSOR, height, fill=False, edgecolor=style.INK, linewidth=1))
    ax.text(x + _TENSOR / 2, y - 0.07, tensor.notation, ha="center", va="top", fontsize=9.5)
    ax.text(x + _TENSOR / 2, y + height + 0.02, tensor.name, ha="center", va="bottom", fontsize=8)


def cache_data(batch=512, context=2048):
    """The three ways to cut the cache of PaLM 540B over 64 chips (Figure 4).

    Returns
    -------
    pandas.DataFrame
        Indexed by :data:`ATTENTIONS`: ``bytes`` on a chip, ``seconds`` to read them, and whether they ``fit`` into
        its memory.
    """
    import pandas as pd

    palm, chip = evidence.palm(), evidence.TPU
    at = evidence.SLICE, batch, context
    held = [
        cache_over_heads(multihead(palm), *at), cache_over_heads(palm, *at), cache_over_batch(palm, *at)
    ]  # fmt: skip
    rows = [(size, memory_time(chip, size), size < chip.memory_capacity) for size in held]
    return pd.DataFrame(rows, index=list(ATTENTIONS), columns=["bytes", "seconds", "fits"])


def draw_caches(mesh=None):
    """Draw what of the keys and values each of eight chips keeps, with :func:`cache_data`. Returns the Axes."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    from inferlib import style

    mesh, data = mesh or load_mesh(8), cache_data()
    _, axes = plt.subplots(1, 3, figsize=(7.2, 2.7), layout="constrained")
    for ax, kind in zip(axes, ATTENTIONS, strict=True):
        cache = attention_schedule(kind)["weights"][0]
        for i, ((r0, r1), (c0, c1)) in enumerate(all_pieces(cache, mesh).values()):
            x, y = i % 4 + 0.1, 1.1 - i // 4
            part = (x + 0.8 * c0, y + 0.8 * (1 - r1)), 0.8 * (c1 - c0), 0.8 * (r1 - r0)
            ax.add_patch(Rectangle(*part, color=style.BLUE, alpha=0.75, linewidth=0))
            ax.add_patch(Rectangle((x, y), 0.8, 0.8, fill=False, edgecolor=style.INK, linewidth=0.8))
        size, seconds, fits = data.loc[kind]
        told = f"{size / 1e9:.1f} GB on a chip of 64" + ("" if fits else ": does not fit")
        ax.set_title(f"{kind}\n{told}\n{1e3 * seconds:.1f} ms to read", fontsize=9)
        ax.set(xlim=(0, 4), ylim=(0, 2), aspect="equal")
        ax.axis("off")
    return axes


def collectives(k=3):
    """What each of ``k`` chips holds before and after the three collectives (Figure A.1).

    Parameters
    ----------
    k : int
        Chips, at least 2.

    Returns
    -------
    dict
        Collective to (before, after). Each is a list of one list for each chip, of what it has in each of
        ``k`` slots: a set of the chips that this part came from, or None.

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
        # each chip had one row, all columns; now it has one column, all rows
        "all-to-all": (own, whole),
    }


def draw_collectives(k=3):
    """Draw :func:`collectives`: a colour for the chip a part came from, all colours for a sum. Returns Axes."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    from inferlib import style

    colours = [style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.YELLOW, style.RED]
    _, axes = plt.subplots(1, 3, figsize=(7.2, 0.9 + 0.42 * k), layout="constrained")
    for ax, (name, states) in zip(axes, collectives(k).items(), strict=True):
        for side, state in enumerate(states):
            for chip, slots in enumerate(state):
                for slot, origin in enumerate(slots):
                    x, y = side * (k + 1.6) + slot, k - 1 - chip
                    for i, source in enumerate(sorted(origin or ())):
                        part = 1 / len(origin)
                        colour = colours[source % len(colours)]
                        ax.add_patch(
                            Rectangle((x + i * part, y), part, 0.8, color=colour, alpha=0.8, linewidth=0)
                        )
                    ax.add_patch(Rectangle((x, y), 1, 0.8, fill=False, edgecolor=style.INK, linewidth=0.8))
        middle = (k - 0.2) / 2
        ax.annotate(
            "", (k + 1.4, middle), (k + 0.2, middle), arrowprops={"arrowstyle": "->", "color": style.RED}
        )
        ax.set(xlim=(-1.3, 2 * k + 1.8), ylim=(-0.3, k + 0.1), aspect="equal")
        ax.axis("off")
        ax.set_title(name, fontsize=10)
        for chip in range(k):
            ax.text(-0.25, k - 1 - chip + 0.4, str(chip), ha="right", va="center", fontsize=8)
    return axes
