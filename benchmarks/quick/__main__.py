"""`make bench-quick`: what each hot verb makes the worker, Redis and Kafka's client do, held
against benchmarks/budget.json.

    .venv/bin/python -m benchmarks.quick [--update] [--kafka HOST:PORT --redis URL]

Starts a Kafka and a Redis of its own unless told of running ones. Ends with 1 when a figure is over
its budget.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.quick import budget
from benchmarks.quick.measure import measured
from tests.services import running_services


def _found(kafka: str | None, redis: str | None) -> budget.Figures:
    if kafka and redis:
        return asyncio.run(measured(kafka, redis))
    with tempfile.TemporaryDirectory(prefix="leaseway-quick-") as folder, running_services(Path(folder)) as services:
        return asyncio.run(measured(services.bootstrap, services.redis_url))


def _table(found: budget.Figures) -> str:
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    head = f"{'verb':34}" + "".join(f"{name.replace('_', ' '):>26}" for name in names)
    rows = [
        f"{verb:34}" + "".join(f"{figures.get(name, float('nan')):26g}" for name in names)
        for verb, figures in found.items()
    ]
    return "\n".join([head, *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="make what is found the budget")
    parser.add_argument("--kafka", help="bootstrap server of a running Kafka")
    parser.add_argument("--redis", help="URL of a running Redis")
    options = parser.parse_args()
    found = _found(options.kafka, options.redis)
    print(_table(found))
    if options.update:
        budget.write(found)
        print(f"budget written to {budget.FILE.name}")
        return 0
    allowed = budget.read()
    for line in budget.under(allowed, found):
        print(f"under the budget, which may be lowered (make bench-quick UPDATE=1): {line}")
    said = budget.over(allowed, found)
    for line in said:
        print(f"OVER THE BUDGET: {line}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
