"""A FIFO batch whose groups lie in different partitions: one send for each group, and what is told
when some of them fail.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec import structs

from engine.engine import Engine
from engine.errors import EngineError, LogUnavailable
from engine.shapes import Principal, SendEntry, Sent
from facade.dialects.sqs.messages.messages import send_message_batch
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.wire.limits import LIMITS
from facade.dialects.sqs.wire.replies import SentBatchReply
from facade.dialects.sqs.wire.shapes import OutgoingEntry, SendMessageBatch
from schemas.records import QueueRecord
from tests.unit.facade.double import RECORD, RecordingEngine


class Groups(RecordingEngine):
    """Sends to the groups in `failing` fail."""

    def __init__(self, *failing: str, scope: str = "group") -> None:
        super().__init__()
        self.failing = failing
        self.scope = scope

    async def record(self, name: str, by: Principal | None = None) -> QueueRecord:
        return structs.replace(RECORD, fifo=True, dedup_scope=self.scope)

    async def send(self, by: Principal, queue: str, entries: list[SendEntry]) -> list[Sent]:
        self.calls.append(("send", [(entry.group, entry.body.decode()) for entry in entries]))
        if entries[0].group in self.failing:
            raise LogUnavailable("Kafka does not answer")
        return [Sent(entry.body.decode(), "md5", 1, "7") for entry in entries]


async def batch(engine: Groups, groups: str) -> SentBatchReply:
    entries = [
        OutgoingEntry(id=f"e{n}", message_body=f"b{n}", message_group_id=g, message_deduplication_id=f"d{n}")
        for n, g in enumerate(groups)
    ]
    call = Call(
        Principal("shop"), SendMessageBatch("http://h/0/q.fifo", entries), Place("http://h", "0", "r"), LIMITS["aws"], 0
    )
    return await send_message_batch(cast("Engine", engine), call)


def told(reply: SentBatchReply) -> tuple[list[Any], list[Any]]:
    good = [(one.id, one.message_id) for one in reply.successful or ()]
    return good, [(one.id, one.code, one.sender_fault) for one in reply.failed or ()]


async def test_each_group_is_a_send_in_the_order_of_its_entries() -> None:
    engine = Groups()
    good, bad = told(await batch(engine, "abab"))

    assert engine.calls == [("send", [("a", "b0"), ("a", "b2")]), ("send", [("b", "b1"), ("b", "b3")])]
    assert sorted(good) == [(f"e{n}", f"b{n}") for n in range(4)] and bad == []


async def test_in_queue_scope_a_batch_is_one_send() -> None:
    engine = Groups(scope="queue")
    await batch(engine, "abab")

    assert [len(call[1]) for call in engine.calls] == [4]


async def test_the_entries_of_a_group_that_fails_are_told_of() -> None:
    good, bad = told(await batch(Groups("b"), "abcb"))

    assert good == [("e0", "b0"), ("e2", "b2")]
    assert bad == [("e1", "ServiceUnavailable", False), ("e3", "ServiceUnavailable", False)]


async def test_when_every_group_fails_the_request_does() -> None:
    with pytest.raises(EngineError):
        await batch(Groups("a", "b"), "ab")
