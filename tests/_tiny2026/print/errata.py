"""For the braces of errata.toml."""

from inferlib.papers.tiny2026.equations import reading_time

from inferlib.system import Accelerator


def numbers():
    """Milliseconds of a token by the source's own table."""
    return {"tiny_ms": 1e3 * reading_time(Accelerator(flops=1e15, memory_bandwidth=2e12), 16e9)}
