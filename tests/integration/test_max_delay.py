"""No message asks for a longer delay than its queue allows: not by a send, a release or another due
time. What is refused changes nothing.
"""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import DelayTooLong, InvalidValue
from engine.shapes import SendEntry
from engine.window.topic_retention import MARGIN_MS
from runtime.clock import now_ms
from schemas.records.settings import DAY_MS, MAX_DELAY_MS, QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, receive, send
from tests.integration.test_keeping import kept_ms

HOUR_MS = 3_600_000
SAYS = "60000 ms at most, which is its max_delay_ms"


async def test_a_longer_delay_is_refused_wherever_it_is_asked_for(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, max_delay_ms=60_000))
    (kept,) = await engine.messages.send(BY, queue, [SendEntry(b"kept", delay_ms=60_000)])
    before = await engine.messages.peek(BY, queue, kept.id, None)
    await send(engine, queue, "now")
    (held,) = await receive(engine, queue)
    at = now_ms() + HOUR_MS
    for refused in (
        engine.messages.send(BY, queue, [SendEntry(b"no", delay_ms=60_001)]),
        engine.messages.send(BY, queue, [SendEntry(b"no"), SendEntry(b"no", delay_ms=60_001)]),
        engine.messages.send(BY, queue, [SendEntry(b"no", deliver_at_ms=at)]),
        engine.messages.release(BY, queue, [held.handle], 60_001),
        engine.messages.reschedule(BY, queue, kept.id, at),
    ):
        with pytest.raises(DelayTooLong, match=SAYS):
            await refused
    with pytest.raises(InvalidValue, match="no delay of its own"):
        await engine.transactions.prepare(BY, queue, "g", [SendEntry(b"no", deliver_at_ms=at)], None)
    assert await engine.messages.peek(BY, queue, kept.id, None) == before
    tag = (await engine.queues.get_queue(BY, queue)).tags[0]
    assert (tag.backlog, tag.delayed, tag.leased) == (2, 1, 1)
    (released,) = await engine.messages.release(BY, queue, [held.handle], 50)
    assert released.status == "ok"
    await engine.messages.reschedule(BY, queue, kept.id, 0)
    assert await drain(engine, queue, expect=2) == ["kept", "now"]


async def test_the_setting_is_kept_and_may_be_changed(make_engine: MakeEngine) -> None:
    engine, other = await make_engine(), await make_engine()
    await engine.queues.create_queue(BY, "old", QueueSettings(partitions=1))
    assert (await engine.queues.get_queue(BY, "old")).max_delay_ms == MAX_DELAY_MS
    await engine.queues.set_queue(BY, "old", QueueSettings(max_delay_ms=0))
    with pytest.raises(DelayTooLong, match="0 ms at most"):
        await send(other, "old", "m", delay_ms=1)
    await send(other, "old", "m", delay_ms=0)
    assert (await other.queues.get_queue(BY, "old")).max_delay_ms == 0
    await other.queues.set_queue(BY, "old", QueueSettings(max_delay_ms=HOUR_MS))
    await other.queues.copy_queue(BY, "old", "new")
    assert (await other.queues.get_queue(BY, "new")).max_delay_ms == HOUR_MS


async def test_a_queue_has_no_longer_delay_of_its_own(engine: Engine, queue: str) -> None:
    with pytest.raises(DelayTooLong, match=SAYS):
        await engine.queues.create_queue(BY, queue, QueueSettings(delay_ms=60_001, max_delay_ms=60_000))
    await engine.queues.create_queue(BY, queue, QueueSettings(delay_ms=60_000, max_delay_ms=60_000, fifo=True))
    for settings in (QueueSettings(delay_ms=60_001), QueueSettings(max_delay_ms=59_999)):
        with pytest.raises(DelayTooLong):
            await engine.queues.set_queue(BY, queue, settings)
    info = await engine.queues.set_queue(BY, queue, QueueSettings(delay_ms=61_000, max_delay_ms=61_000))
    assert (info.delay_ms, info.max_delay_ms) == (61_000, 61_000)


async def test_a_topic_keeps_no_longer_delay_than_messages_may_ask_for(engine: Engine, queue: str) -> None:
    most_ms = 20 * DAY_MS
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, max_delay_ms=most_ms))
    assert await kept_ms(engine, queue) == 4 * DAY_MS + HOUR_MS + MARGIN_MS
    await send(engine, queue, "m", delay_ms=most_ms - 1)  # 512 hours, if it were for doubling alone

    async def kept() -> bool:  # the broker may tell of its change a moment later
        return await kept_ms(engine, queue) == 4 * DAY_MS + most_ms + MARGIN_MS

    await eventually(kept)
