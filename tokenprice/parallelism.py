"""How a model may lie on chips: the layouts worth trying, and why one cannot be."""

from inferlib.system import Layout
from tokenprice.calibration import chips_per_node
from tokenprice.formatting import format_layout


def heads_reason(model):
    """Heads of each group of layers that has attention."""
    return [group.attention.n_heads for group in model.layers if hasattr(group.attention, "n_heads")]


def layout_error(model, system, layout=None):
    """Why a model cannot lie on the chips so, or nothing."""
    at = layout or Layout(tp=system.count)
    uneven = next((n for n in heads_reason(model) if n % at.tp), None)
    if uneven:
        return f"{format_layout(at)} cuts {uneven} heads in {at.tp} parts, which cannot be"
    if at.ep > 1 and not model.sparse:
        return f"{format_layout(at)} spreads experts, but the model has none"
    return ""


def layouts(model, chip, count):
    """The layouts worth trying for a model on so many chips.

    A tensor-parallel degree is a power of two that divides the chips and the heads of every layer.

    1. One instance on all chips, if their number is such a degree: ``TP8``.
    2. Stages, each on the largest degree within a domain, one after another: ``PP2 x TP8``.
    3. Of a mixture of experts: whole experts spread over the chips of one instance, ``TP8 x EP8``; or attention
       copied, each copy on any degree up to 8 within a domain, experts spread over all chips:
       ``attention DP8 with EP8``, ``attention DP4 x TP2 with EP8``, ...

    Copies of a dense model are machines of their own and cost the same a token; they are not tried.

    Examples
    --------
    >>> import inferlib
    >>> from tokenprice.formatting import format_layout
    >>> llama, h100 = inferlib.load_model("Llama 3 70B"), inferlib.load_chip("H100")
    >>> [format_layout(layout) for layout in layouts(llama, h100, 16)]
    ['TP16', 'PP2 x TP8']
    """
    powers = [2**k for k in range(int(count).bit_length())]
    degrees = [n for n in powers if count % n == 0 and all(h % n == 0 for h in heads_reason(model))]
    domain = min(count, chips_per_node(chip) or count)
    inside = [n for n in degrees if n <= domain]
    found = [Layout(tp=count)] if count in degrees else []
    stages = count // inside[-1]
    if 1 < stages <= model.n_layers:
        found.append(Layout(tp=inside[-1], pp=stages))
    groups = [group.feed_forward for group in model.layers]
    blocks = [block.n_experts for block in groups if hasattr(block, "n_experts")]
    sends = chip.scale_up_bandwidth if count <= domain else chip.scale_out_bandwidth
    if blocks and 1 < count <= min(blocks) and count in inside:
        found.append(Layout(tp=count, ep=count))
    if blocks and 1 < count <= min(blocks) and sends is not None:
        found += [Layout(tp=n, ep=count, dp=count // n) for n in inside if n <= 8 and n < count]
    return found
