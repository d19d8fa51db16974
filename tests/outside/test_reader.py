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

from tests.judge.history import Line, read
from tests.outside.book import Book
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

    _wait(book, lambda notes: len(_seen(notes)) == TOKENS)
    os.kill(_process_of(stack.bootstrap), signal.SIGSEGV)
    _wait(book, lambda notes: any(note.verb == "note" for note in notes))
    reader.ask_to_stop()
    reader.join(60)

    book.close()
    assert not reader.is_alive()
    notes = read(book.path).notes
    assert not [note for note in notes if note.verb == "defect"]
    told = next(at for at, note in enumerate(notes) if note.verb == "note")
    assert _seen(notes[told:]) == _seen(notes[:told]) == {f"tk-read-again-{number}" for number in range(TOKENS)}


def _seen(notes: list[Line]) -> set[str]:
    rows = (row for note in notes if note.verb == "log" for row in note.args["rows"])
    return {token for queue, _, _, token in rows if queue == "read-again"}


def _wait(book: Book, met: Callable[[list[Line]], bool]) -> None:
    end = time.monotonic() + 60
    while not met(notes := read(book.path).notes):
        assert time.monotonic() < end, notes
        time.sleep(0.1)


def _process_of(bootstrap: str) -> int:
    found = subprocess.run(
        ["pgrep", "-f", f"tests.outside.reads {bootstrap}"], capture_output=True, text=True, check=True
    )
    return int(found.stdout)
