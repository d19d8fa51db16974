"""`python -m facade`: the same as `leaseway`. Workers are started this way, so that no script's
path is needed.
"""

from __future__ import annotations

import sys

from facade.programs.cli.cli import main

if __name__ == "__main__":
    sys.exit(main())
