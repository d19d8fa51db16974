"""All tests, in two processes side by side: `python -m tests.halves`, which `make test` calls.

The second one has those that are right or wrong at any speed, for each slows the other down. Its
output comes after that of the first. Options for both: PYTEST_ADDOPTS. Neighbours: none; it must
not know any test.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECOND = ("tests/unit", "tests/state", "tests/property", "tests/conformance", "tests/faults", "tests/spark")
PYTEST = (sys.executable, "-m", "pytest")


def main() -> int:
    """0 when both have passed. Ctrl-C reaches both: each ends what it has started."""
    with tempfile.TemporaryFile("w+") as output:
        # The cache of what failed last is the first one's.
        second = subprocess.Popen([*PYTEST, "-p", "no:cacheprovider", *SECOND], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        first = subprocess.Popen([*PYTEST, *(f"--ignore={folder}" for folder in SECOND)], cwd=ROOT)
        statuses = [_end_of(first), _end_of(second)]
        output.seek(0)
        print("", "Beside these:", output.read(), sep="\n")
    return max(statuses)


def _end_of(process: subprocess.Popen[bytes]) -> int:
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return abs(process.wait())


if __name__ == "__main__":
    sys.exit(main())
