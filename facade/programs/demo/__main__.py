"""`python -m facade.programs.demo`: the same as `leaseway demo`, with its options.

It must not do anything else.
"""

from __future__ import annotations

import sys

from facade.programs.demo.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
