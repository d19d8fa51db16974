"""Kafka's own share groups (KIP-932), on the broker and with the settings of our stack."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient

from benchmarks.bench.fetch import Absent
from benchmarks.bench.sides import Server, Side
from tests.services import running_services


def share_groups(name: str) -> Side:
    """Returns the stack's broker, loaded by confluent-kafka's Producer and ShareConsumer."""
    return Side(name, lambda folder: _start(name, folder), lambda cell: cell.kind == "sqs")


@contextlib.contextmanager
def _start(name: str, folder: Path) -> Iterator[Server]:
    try:
        from confluent_kafka import ShareConsumer  # noqa: F401
    except ImportError:
        raise Absent(f"{name}: this confluent-kafka has no ShareConsumer") from None
    with running_services(folder / "data") as services:
        AdminClient({"bootstrap.servers": services.bootstrap}).list_topics(timeout=30)
        generator = (sys.executable, "-m", "benchmarks.bench.peers.share_load")
        yield Server(name, services.bootstrap, (("kafka", services.kafka_pid),), generator, api="share")
