"""One decode step as the source sees it."""

from inferlib.papers.tiny2026.equations import reading_time
from inferlib.papers.tiny2026.records import PRINTED

from inferlib.system import DoesNotFit, NotDescribed, decode_model, format_bytes
from inferlib.transformer import Transformer


@decode_model("tiny2026")
def decode_step(model: Transformer, system, workload, layout=None, assumptions=PRINTED):
    """One decode step: reading, nothing else."""
    if layout is not None:
        raise NotDescribed("the source describes no layouts")
    needed = model.n_params * format_bytes(workload.weights)
    if needed > system.memory:
        raise DoesNotFit(f"weights of {needed / 1e9:.0f} GB exceed the memory of {system}")
    return ({"weights": assumptions.reads * reading_time(system.chip, needed)},)
