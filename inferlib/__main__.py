"""``python -m inferlib`` is the command ``inferlib``."""

import sys

from inferlib.terminal import main

if __name__ == "__main__":
    sys.exit(main())
