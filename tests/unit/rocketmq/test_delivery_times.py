"""Timed messages: the delivery time is meant in Kafka's time, whatever the worker's clock shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import MessageNotFound
from engine.rules.rights import NOBODY
from engine.shapes import SendEntry, Sent
from facade.dialects.rocketmq.messages.recall import RecallHandle, recall_message
from facade.dialects.rocketmq.messages.send import send_message
from facade.dialects.rocketmq.queues.call import Call, Common
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, MessageType
from schemas.vocabulary import MessageState
from tests.unit.records import queue_record

# What Kafka's clock shows.
NOW_MS = 1_000_000
ID = "00000000-0000-8000-8000-000000000000"


class Messages:
    """A message that was taken back is settled."""

    def __init__(self) -> None:
        self.entries: list[SendEntry] = []

    async def send(self, by: Any, queue: str, entries: list[SendEntry]) -> list[Sent]:
        self.entries += entries
        return [Sent(ID, "", NOW_MS + 2) for _ in entries]

    async def cancel(self, *asked: Any) -> None:
        raise MessageNotFound("it is settled")

    async def peek(self, *asked: Any) -> Any:
        return SimpleNamespace(state=MessageState.SETTLED)


@pytest.fixture(params=[-300, 300], autouse=True)
def wall_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's, which was set."""
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000 + request.param * 1_000_000_000)


@pytest.fixture
def messages() -> Messages:
    return Messages()


def asked(messages: Messages, body: Any) -> Call:
    queues = SimpleNamespace(known=lambda name, by: queue_record("q", 1), kafka_ms=lambda: NOW_MS)
    engine = cast(Any, SimpleNamespace(messages=messages, queues=queues, settings=SimpleNamespace(secret="s")))
    return Call(
        cast(Any, NOBODY),
        body,
        Common(engine, cast(Any, SimpleNamespace(rocketmq_max_delay_s=60)), pb.Endpoints()),
        "c",
    )


def timed(at_ms: int) -> pb.SendMessageRequest:
    times = {"delivery_timestamp": {"seconds": at_ms // 1000, "nanos": at_ms % 1000 * 1_000_000}}
    system = pb.SystemProperties(message_id="m", message_type=MessageType.DELAY, **cast(Any, times))
    return pb.SendMessageRequest(
        messages=[pb.Message(topic=pb.Resource(name="q"), body=b"m", system_properties=system)]
    )


@pytest.mark.parametrize(("after_ms", "is_timed"), [(10_000, True), (60_000, True), (2, False), (-NOW_MS, False)])
async def test_a_message_is_due_at_its_time_by_kafkas_clock(messages: Messages, after_ms: int, is_timed: bool) -> None:
    answer = await send_message(asked(messages, timed(NOW_MS + after_ms)), cast(Any, None))
    (entry,) = messages.entries
    assert (entry.delay_ms, entry.deliver_at_ms) == (None, NOW_MS + after_ms)
    handle = answer.entries[0].recall_handle
    assert bool(handle) == is_timed
    if handle:
        assert RecallHandle.parse(handle) == RecallHandle("q", NOW_MS + after_ms, ID, "m")


async def test_a_time_beyond_what_the_service_allows_is_refused(messages: Messages) -> None:
    with pytest.raises(RocketError) as refused:
        await send_message(asked(messages, timed(NOW_MS + 60_001)), cast(Any, None))
    assert refused.value.code == Code.ILLEGAL_DELIVERY_TIME and messages.entries == []


async def test_what_is_settled_was_taken_back_if_it_is_not_due_by_kafkas_clock(messages: Messages) -> None:
    def recall(due_ms: int) -> Any:
        handle = RecallHandle("q", due_ms, ID, "m").text()
        return recall_message(
            asked(messages, pb.RecallMessageRequest(topic=pb.Resource(name="q"), recall_handle=handle)), cast(Any, None)
        )

    assert (await recall(NOW_MS + 1)).message_id == "m"
    with pytest.raises(MessageNotFound):
        await recall(NOW_MS)
