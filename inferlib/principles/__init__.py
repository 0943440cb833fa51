"""First principles: what a token costs in arithmetic, bytes and waiting, before any model of a system.

The arithmetic all five sources stand on. Nothing here is an estimate: amounts are counted from the shape of
a model, times are the least that a chip's peaks allow.
"""

from inferlib.principles.profile import *
from inferlib.principles.roofline import *
