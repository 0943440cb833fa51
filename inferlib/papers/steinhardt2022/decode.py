"""Steinhardt's answer to a decode step: the same question that every source is asked."""

from inferlib.papers.steinhardt2022.equations import (
    arithmetic_time,
    even_block,
    memory_time,
    multiplies,
    network_time,
)
from inferlib.papers.steinhardt2022.records import PRINTED, load_chip, load_model
from inferlib.system import Layout, NotDescribed, decode_model, format_bytes
from inferlib.transformer import Transformer


@decode_model("steinhardt2022")
def decode_step(
    model: Transformer,
    system,
    workload,
    layout=None,
    assumptions=PRINTED,
):
    """One token for every sequence of a batch, as far as the post describes it.

    The multiplies of a layer (two as printed), all of equal size, share the model's parameters, embeddings
    included; each is spread evenly over all chips, and the three terms of the starred equation are taken at the
    batch given. The post describes no context, no key-value cache and no latency that could be computed: none
    is counted.

    ``system``: ``domain`` chips make one machine; between machines, each chip brings its
    ``scale_out_bandwidth``. ``workload``: ``batch`` and the format of the weights are used; vectors are 16-bit
    numbers. ``layout``: the post knows one: every matrix over all chips, ``Layout(tp=system.count)``.
    ``assumptions``: multiplies in a layer; its number of layers is replaced by the model's.

    Returns one stage whose terms overlap: network; weights and activations, which share the memory; arithmetic.
    """
    load_model(model)
    if layout is not None and layout != Layout(tp=system.count):
        raise NotDescribed(f"the post spreads every matrix over all {system.count} chips")
    parameters = sum(model.parameters().values())
    system.hold(parameters * format_bytes(workload.weights), "weights")
    alone = system.count == system.domain  # one machine by itself: no traffic, so no network term
    machine = load_chip(system.chip, system.domain, "none" if alone else "scale-out")
    stands = machine.sources | {"weight_word": f"weights in {workload.weights}"}
    machine = machine.replace(weight_word=format_bytes(workload.weights), sources=stands)
    assumptions = assumptions.replace(layers=model.n_layers)
    at = machine, even_block(parameters, system.count, assumptions), workload.batch
    terms = {"weights and activations": memory_time, "arithmetic": arithmetic_time}
    terms |= {} if alone else {"network": network_time}
    return ({name: multiplies(assumptions) * time(*at) for name, time in terms.items()},)
