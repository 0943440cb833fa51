"""One decode step as the source sees it."""

from inferlib.papers.tiny2026.equations import BYTES, reading_time

from inferlib.system import Breakdown


def decode_step(model, system, workload, layout=None):
    """One decode step: reading, nothing else."""
    return Breakdown(
        [{"memory": {"weights": reading_time(system.chip, model.n_params * BYTES)}}], source="tiny2026"
    )
