"""The synthesis: everybody asked the same question, held against measurements, and a sixth model.

Nothing here imports a source by name: rooms are found when a question is asked (:mod:`rooms`).
"""

from inferlib.synthesis.rooms import ask, common_terms, everybody, label, sources

__all__ = ["ask", "common_terms", "everybody", "label", "sources"]
