"""Pope et al. 2022: the records its equations take, and what the paper assumes in them."""

from collections.abc import Mapping

from inferlib.equation import Record, load_source, quantity, stated_sources
from inferlib.papers.source import load, needs, stated_quantity
from inferlib.system import Accelerator, bytes_of_formats, format_bytes
from inferlib.transformer import Attention

STATED = load_source("pope2022")


class Model(Record):
    """A decoder of equal layers as the paper counts it: matrices and one embedding table, nothing else.

    ``parallel`` means that attention and feed-forward run in parallel on the same input.
    """

    layers: float = quantity("layers")
    d_model: float = quantity("width of the residual stream")
    d_ff: float = quantity("width of the feed-forward block")
    heads: float = quantity("query heads")
    kv_heads: float = quantity("key (and value) heads")
    head_dim: float = quantity("width of one head")
    vocabulary: float = quantity("entries of the vocabulary")
    matrices: float = quantity("matrices of the feed-forward block", default=3)
    tables: float = quantity("embedding tables", default=1)
    weight_bytes: float = quantity("bytes of one weight", "B", default=2)
    activation_bytes: float = quantity("bytes of one activation", "B", default=2)
    cache_bytes: float = quantity("bytes of one cached value", "B", default=2)
    parallel: bool = True
    name: str = ""
    sources: Mapping = stated_sources()

    def at(self, format):
        """The same model with its weights in another number format; activations and cache stay."""
        return self.replace(weight_bytes=format_bytes(format))


class Mesh(Record):
    """Chips in a box of X × Y × Z; ``share`` says how much of a chip's bandwidth one axis can use.

    In a torus an axis has two of a chip's six links; in a box whose ends are not joined, one. Behind a
    switch every axis has them all.
    """

    x: float = quantity("chips along the first axis", minimum=1)
    y: float = quantity("chips along the second axis", default=1, minimum=1)
    z: float = quantity("chips along the third axis", default=1, minimum=1)
    share: float = quantity("share of a chip's bandwidth along one axis", default=1, maximum=1)

    @property
    def chips(self):
        """Chips in the box."""
        return self.x * self.y * self.z

    def along(self, axes):
        """Chips that exchange over some axes, such as ``"xy"``."""
        found = 1
        for axis in axes:
            found = found * getattr(self, axis)
        return found

    def __str__(self):
        return f"{self.x:g} x {self.y:g} x {self.z:g}"


class Assumptions(Record):
    """Readings of the paper's sentences; the default reproduces what it prints."""

    flop_per_weight: float = stated_quantity(
        "pope2022", "assumptions", "flop_per_weight", "FLOP", "one multiplication and one addition"
    )
    # Keep the factor (K - 1)/K of Appendix A.1, which the paper's formulas set to 1.
    exact_collectives: bool = False
    # Count all that a layer moves: every matrix of the feed-forward block and the attention projections that are
    # fused with them. The paper's formulas count two matrices of a feed-forward block.
    whole_layer: bool = False
    # Communication adds to the other times; otherwise the longest of them hides it.
    exposed: bool = False

    @classmethod
    def exact(cls):
        """The paper's volumes with the factor (K - 1)/K kept."""
        return cls(exact_collectives=True)

    @classmethod
    def corrected(cls):
        """The paper's formulas without their approximations."""
        return cls(exact_collectives=True, whole_layer=True)

    @classmethod
    def one_axis_at_a_time(cls):
        """As the measurements suggest: all that a layer moves, axis after axis, hidden behind nothing."""
        return cls.corrected().replace(exposed=True)


PRINTED = Assumptions()
EXACT = Assumptions.exact()
CORRECTED = Assumptions.corrected()


def models():
    """The names of the models that the paper runs."""
    return list(STATED["models"])


def load_model(model="PaLM 540B", weights=None, cache=None, *, parallel=None, padded=False):
    """A model as the paper counts it: one of :func:`models`, or the catalogue's (by name, or a Transformer).

    ``weights``, ``cache``: number formats, of 16 bits if not given; activations have 16 bits. ``parallel`` says whether
    attention and feed-forward run in parallel; few models but PaLM have it. ``padded`` gives PaLM 540B 64 heads instead
    of 48, as it was run on 64 and more chips; no other model can be padded. Raises ValueError if the model has experts,
    latent or windowed attention, or unequal layers: the paper has none.

    Examples
    --------
    >>> load_model("PaLM 540B", padded=True).heads, load_model("Llama 3 70B", "fp8").weight_bytes
    (64.0, 1.0)
    """
    if isinstance(model, Model):
        return model
    made = load("model", model, Model, STATED["models"], _counted)
    changes = bytes_of_formats(weight_bytes=weights, cache_bytes=cache)
    if parallel is not None:
        changes["parallel"] = parallel
    elif model in STATED["variants"]["serial"]:
        changes["parallel"] = False
    if padded:
        if made.name != "PaLM 540B":
            raise ValueError(f"padded is True for {made.name}, but only PaLM 540B was run with more heads")
        changes["heads"] = float(STATED["variants"]["padded_heads"])
    return made.replace(**changes) if changes else made


def multihead(model):
    """The variant of Table 1 and Figure 8: a key/value head for each query head, of half the width."""
    width = float(STATED["variants"]["multihead_head_dim"])
    return model.replace(kv_heads=model.heads, head_dim=width, name=f"{model.name}, multihead")


def serial(model):
    """The same model with attention before feed-forward in each block, not in parallel."""
    return model.replace(parallel=False, name=f"{model.name}, serial")


def chips():
    """The names of the chips in the paper's benchmarks."""
    return list(STATED["chips"])


def load_chip(chip="TPU v4"):
    """A chip: one of :func:`chips` (the ``"A100"`` is that of the FasterTransformer benchmarks), or the catalogue's.

    The paper's network is that of a scale-up domain; ValueError if the chip states no memory capacity, or no bandwidth
    to its neighbours.
    """
    found = load("chip", chip, Accelerator, STATED["chips"])
    needs(found, "memory_capacity", "scale_up_bandwidth")
    return found


def meshes():
    """The slices of TPU v4 that the paper's code uses, by chips."""
    return [int(chips) for chips in STATED["meshes"]]


def load_mesh(chips):
    """Return the slice with this number of TPU v4 chips, with its bandwidth along each axis.

    Raises LookupError if the paper's code has no such slice; :func:`torus` makes others.

    Examples
    --------
    >>> str(load_mesh(128))
    '8 x 4 x 4'
    """
    if chips not in meshes():
        raise LookupError(f"no slice of {chips} chips. Known: {', '.join(map(str, meshes()))}")
    return torus(*STATED["meshes"][str(chips)])


def torus(x, y, z):
    """A slice of TPU v4 of any size; its axes are joined to rings if each is a multiple of four chips."""
    rule = STATED["torus"]
    joined = all(axis % rule["closed"] == 0 for axis in (x, y, z))
    share = (2 if joined else 1) / rule["links"]
    return Mesh(float(x), float(y), float(z), share)


# --- The shared records as the paper sees them ---


def _counted(transformer):
    reason = not_described(transformer)
    if reason:
        raise ValueError(f"{transformer.name or 'this model'}: {reason}")
    attention = transformer.layers[0].attention
    block = transformer.layers[0].feed_forward
    return Model(
        layers=transformer.n_layers,
        d_model=transformer.d_model,
        d_ff=block.d_ff,
        heads=attention.n_heads,
        kv_heads=attention.n_kv_heads,
        head_dim=attention.head_dim,
        vocabulary=transformer.vocab_size,
        matrices=block.matrices,
        tables=1 if transformer.tied else 2,
        parallel=False,
        name=transformer.name,
        sources=transformer.sources,
    )


def not_described(transformer):
    """Why the paper does not describe a Transformer of the catalogue, or an empty text."""
    if transformer.sparse:
        return "the paper describes dense models only"
    if transformer.unusual:
        return f"the paper does not describe {transformer.unusual}"
    attentions = [group.attention for group in transformer.layers]
    if not all(isinstance(a, Attention) for a in attentions):
        return "the paper describes multihead and multiquery attention only"
    if any(a.window is not None for a in attentions):
        return "the paper describes attention over the whole context only"
    if len({(group.attention, group.feed_forward) for group in transformer.layers}) > 1:
        return "the paper describes equal layers only"
    return ""
