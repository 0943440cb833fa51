"""First principles: arithmetic, bytes and communication of a token, on which all five sources build.

Nothing here is an estimate: amounts are counted from a model's shape, and times are lower bounds from a chip's
peaks.
"""

from inferlib.principles.profile import *
from inferlib.principles.roofline import *
