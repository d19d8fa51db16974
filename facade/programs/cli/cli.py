"""The `leaseway` command. It decides which half of the program a command is in, and imports only
that half.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from facade.programs.cli.words import LOCAL

# A shell that asks for completions sets it.
COMPLETE = "_LEASEWAY_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] in LOCAL and COMPLETE not in os.environ:
        from facade.programs.cli.local import main as local

        return local(given)
    from facade.programs.cli.program.program import main as program

    return program(given)
