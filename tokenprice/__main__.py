"""``python -m inferlib`` is the command ``inferlib``."""

import sys

from tokenprice.terminal import main

if __name__ == "__main__":
    sys.exit(main())
