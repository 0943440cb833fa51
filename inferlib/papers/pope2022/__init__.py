"""Pope et al. 2022, "Efficiently scaling Transformer inference": how to cut a large model across chips."""

from inferlib.papers.pope2022.decode import *
from inferlib.papers.pope2022.equations import *
from inferlib.papers.pope2022.records import *
from inferlib.papers.source import public_names as _public_names

__all__ = _public_names(globals())
