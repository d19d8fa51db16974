"""Prints each bar with its number, and where that was found; exit status 1 when one is exceeded.

Starts a Kafka and a Redis of its own for the ways of the verbs (15 s).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.house.bars import of_files, of_layouts, of_lines, of_trips
from benchmarks.house.files import sources
from benchmarks.house.layout import PACKAGES, read
from benchmarks.house.trip import trips
from tests.services import running_services


def main() -> int:
    """0 when all bars hold."""
    bars = of_layouts({package: read(package) for package in PACKAGES})
    bars += of_files(sources(["engine"]), sources(PACKAGES))
    bars += of_lines(PACKAGES)
    with tempfile.TemporaryDirectory(prefix="leaseway-house-") as folder, running_services(Path(folder)) as services:
        bars += of_trips(asyncio.run(trips(services.bootstrap, services.redis_url)))
    print(*(bar.told() for bar in bars), sep="\n")
    return 0 if all(bar.holds() for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
