"""Loads the classes that a small question needs, and ends the JVM in order: `leaseway jars spark`
keeps them in a class archive. It asks no Kafka.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

from spark.frames.session import session
from spark.frames.wanted import empty_views

QUESTIONS = (
    "SELECT 1",
    "SELECT queue, how, count(*), percentile(wait_ms, 0.99) FROM deliveries WHERE queue = 'a' GROUP BY 1, 2 ORDER BY 3",
    "SELECT *, row_number() OVER (PARTITION BY queue ORDER BY dead_at) FROM dead_letters JOIN messages USING (queue)",
    "SELECT from_json('{\"a\": 1}', 'a int'), to_json(struct(id)), sum(id) OVER () FROM range(20)",
)


def main() -> None:
    """Asks, and waits until the JVM has written what it was told to."""
    made = session("leaseway jars")
    empty_views(made)
    for question in QUESTIONS:
        made.sql(question).collect()
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no other way to its JVM
    made.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
