"""`python -m zrecover` is the command `zrecover`."""

from __future__ import annotations

import sys

from zrecover.cli import main

if __name__ == "__main__":
    sys.exit(main())
