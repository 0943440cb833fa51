"""``python -m inferlib`` is the command ``inferlib``."""

import sys

from inferlib.terminal import main

sys.exit(main())
