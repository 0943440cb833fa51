"""Steinhardt 2022: one decode step, as far as the post describes it."""

from numbers import Real

from inferlib import checks
from inferlib.papers.steinhardt2022.equations import pass_arithmetic_time, pass_memory_time, pass_network_time
from inferlib.papers.steinhardt2022.records import PRINTED, Assumptions, chip_of
from inferlib.system import Breakdown, Layout, System, Workload, format_bytes
from inferlib.transformer import Transformer


def decode_step(model, system, workload, layout=None, assumptions=PRINTED) -> Breakdown:
    """One token for every sequence of a batch, as far as the post describes it.

    The multiplies of a layer (two as printed), all of equal size, share the model's parameters (embeddings
    included: the post counts two operations for each parameter of the model); each is spread evenly over all
    chips of the system, and the three terms of the starred equation are taken at the batch given. Traffic
    inside a machine (the scale-up domain) is free, so a single machine has no network term. The post
    describes no context, no key-value cache and no latency that could be computed: none is counted.

    Parameters
    ----------
    model : Transformer
    system : System
        ``domain`` chips make one machine; between machines, each chip brings its ``scale_out_bandwidth``.
    workload : Workload
        ``batch`` and the format of the weights are used; vectors are 16-bit numbers.
    layout : Layout, optional
        The post knows one: every matrix over all chips, ``Layout(tp=system.count)``. Any other is n/a.
    assumptions : Assumptions
        Multiplies in a layer; its number of layers is replaced by the model's.

    Returns
    -------
    Breakdown
        One stage whose terms overlap: network; weights and activations, which share the memory and so
        add; arithmetic.

    Raises
    ------
    TypeError
        If an argument is not of the class named above.

    Examples
    --------
    >>> import inferlib
    >>> box = inferlib.System(inferlib.load_chip("H100 SXM"), 8)
    >>> step = decode_step(inferlib.load_model("Llama 3 70B"), box, inferlib.Workload(batch=32, context=4096))
    >>> f"{step.total * 1e3:.2f} ms, bound by {step.binding}"
    '5.31 ms, bound by weights and activations'
    """
    checks.instance("model", model, Transformer)
    checks.instance("system", system, System)
    checks.instance("workload", workload, Workload)
    checks.instance("assumptions", assumptions, Assumptions)
    if model.sparse:
        return _no_answer("n/a", "the post describes dense models only")
    if model.unusual:
        return _no_answer("n/a", f"the post does not describe {model.unusual}")
    if layout is not None:
        checks.instance("layout", layout, Layout)
        if (layout.pp, layout.ep, layout.dp) != (1, 1, 1) or layout.tp != system.count:
            return _no_answer("n/a", f"the post spreads every matrix over all {system.count} chips")

    parameters = sum(model.parameters().values())
    needed, present = parameters * format_bytes(workload.weights), system.memory
    if present is not None and isinstance(present, Real) and needed > present:
        reason = f"weights of {needed / 1e9:.0f} GB exceed the {present / 1e9:.0f} GB of memory of {system}"
        return _no_answer("infeasible", reason)
    alone = system.count == system.domain
    if not alone and system.chip.scale_out_bandwidth is None:
        return _no_answer("n/a", f"{system.chip.name} states no bandwidth from one machine to another")

    machine = chip_of(system.chip, system.domain, "none" if alone else "scale-out")
    stands = machine.sources | {"weight_word": f"weights in {workload.weights}"}
    machine = machine.replace(weight_word=format_bytes(workload.weights), sources=stands)
    at = machine, parameters, system.count, workload.batch, assumptions.replace(layers=model.n_layers)
    times = {"weights and activations": pass_memory_time(*at), "arithmetic": pass_arithmetic_time(*at)}
    if not alone:
        times["network"] = pass_network_time(*at)
    origin = (decode_step, model, system, workload, layout, assumptions)
    return Breakdown((times,), source="steinhardt2022", origin=origin)


def _no_answer(status, reason):
    return Breakdown(status=status, reason=reason, source="steinhardt2022")
