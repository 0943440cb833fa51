"""``python -m tokenprice`` is the command ``tokenprice``."""

import sys

from tokenprice.terminal import main

if __name__ == "__main__":
    sys.exit(main())
