"""What Kafka has of messages and of the journal beside their values is what the plane gives it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.engine import Engine
from engine.journal.outbox import journal_key
from engine.log.shapes import Record
from engine.rules.queue import Queue
from engine.shapes import SendEntry
from facade.http.sockets.library import try_formats
from schemas.records import JournalRecord, Message
from schemas.records.settings import QueueSettings
from schemas.wire import decode, decode_message
from tests.integration.drive import BY, ack, eventually, receive
from tests.unit.facade.test_plane_formats import PRODUCED, READ, formats, message_of

MIB = 1 << 20


async def records_of(engine: Engine, topic: str, partition: int) -> list[Record]:
    return (await engine.log.fetch(topic, partition, 0, 1000, MIB)).records


async def journal_of(engine: Engine, queue: Queue) -> list[Record]:
    """The records of a queue's first unit, once the journal says that all was acknowledged."""
    catalog, found = engine.catalog, list[Record]()

    async def is_there() -> bool:
        partitions = [
            await records_of(engine, catalog.journal_topic, number) for number in range(catalog.journal_partitions)
        ]
        found[:] = [record for some in partitions for record in some if record.key == journal_key(queue.units[0])]
        kinds = [entry.kind for record in found for entry in decoded(record).entries]
        return "acked" in kinds

    await eventually(is_there)
    return found


def decoded(record: Record) -> JournalRecord:
    found = decode(record.value or b"")
    assert isinstance(found, JournalRecord)
    return found


@pytest.mark.usefixtures("library")
async def test_keys_and_headers_of_what_a_worker_writes_are_those_of_the_plane(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await engine.messages.send(BY, queue, [SendEntry(b"alone")])
    await engine.messages.send(
        BY, queue, [SendEntry(b"one"), SendEntry("zwölf".encode()), SendEntry(b"\xff", body_is_text=False)]
    )
    await ack(engine, queue, await receive(engine, queue))
    known = engine.catalog.queues[queue]
    messages = await records_of(engine, known.topic, 0)
    journal = await journal_of(engine, known)
    assert len(messages) == 4
    key = journal_key(known.units[0])
    cases: list[Any] = [[PRODUCED, [], record.value] for record in messages]
    cases += [[PRODUCED, [key], record.value] for record in journal]
    for record, (keys, value, headers) in zip([*messages, *journal], try_formats(formats(), cases), strict=True):
        assert (keys, value, headers) == (
            [] if record.key is None else [record.key],
            record.value,
            len(record.headers or []),
        )
    for record, fields in zip(
        messages, try_formats(formats(), [[READ, record.value] for record in messages]), strict=True
    ):
        found: Message = message_of(fields)
        assert found == decode_message(record.value, record.headers)
        assert found.sender == BY.id
