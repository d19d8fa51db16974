"""The reader of the log outlives its client library."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.outside.book import Book, Entry, read
from tests.outside.others import KafkaReader
from tests.services import Services

TOKENS = 20


def test_a_reader_that_its_library_kills_reads_from_the_beginning_again(stack: Services, tmp_path: Path) -> None:
    client: dict[str, str | int | float | bool] = {"bootstrap.servers": stack.bootstrap, "log_level": 0}
    admin = AdminClient(client)
    admin.create_topics([NewTopic("lw.q.read-again", 2)])["lw.q.read-again"].result(20)
    producer = Producer(client)
    for number in range(TOKENS):
        producer.produce("lw.q.read-again", f"tk-read-again-{number}|".encode())
    assert producer.flush(20) == 0
    book = Book(tmp_path / "book.jsonl")
    reader = KafkaReader(book, stack.bootstrap, "1")
    reader.start()

    _wait(book, lambda rows: len(_seen(rows)) == TOKENS)
    os.kill(_process_of(stack.bootstrap), signal.SIGSEGV)
    _wait(book, lambda rows: any(row["op"] == "note" for row in rows))
    reader.ask_to_stop()
    reader.join(60)

    book.close()
    assert not reader.is_alive()
    rows = read(book.path)
    assert not [row for row in rows if row["op"] == "defect"]
    told = next(at for at, row in enumerate(rows) if row["op"] == "note")
    assert _seen(rows[told:]) == _seen(rows[:told]) == {f"tk-read-again-{number}" for number in range(TOKENS)}


def _seen(rows: list[Entry]) -> set[str]:
    return {token for row in rows if row["op"] == "log" for queue, _, _, token in row["rows"] if queue == "read-again"}


def _wait(book: Book, met: Callable[[list[Entry]], bool]) -> None:
    end = time.monotonic() + 60
    while True:
        book.flush()
        if met(read(book.path)):
            return
        assert time.monotonic() < end, read(book.path)
        time.sleep(0.1)


def _process_of(bootstrap: str) -> int:
    found = subprocess.run(
        ["pgrep", "-f", f"tests.outside.reads {bootstrap}"], capture_output=True, text=True, check=True
    )
    return int(found.stdout)
