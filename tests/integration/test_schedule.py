"""A delayed message is cancelled or delivered, never both; it may be rescheduled, or sent with a
time. The clock of the scripts is moved where hours have to pass.
"""

from __future__ import annotations

import asyncio

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, MessageDue, MessageNotFound, NotAllowedOnQueue
from engine.shapes import SendEntry
from runtime.clock import now_ms
from schemas.records.settings import DAY_MS, QueueSettings
from tests.clock import ScriptClock
from tests.integration.drive import BY, ack, drain, receive, send
from tests.integration.test_far import HOUR_MS, clock, delayed, far, filed, take
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_verify import clean, verify
from tests.services import Services

__all__ = ["clock", "far"]


async def test_a_time_of_delivery_is_a_delay_from_now_and_a_past_one_is_none(far: Engine) -> None:
    at = now_ms()
    (late,) = await far.messages.send(BY, "q", [SendEntry(b"late", deliver_at_ms=at + HOUR_MS)])
    await far.messages.send(BY, "q", [SendEntry(b"past", deliver_at_ms=at - HOUR_MS)])
    assert await drain(far, "q", expect=1) == ["past"]
    due_ms = (await far.messages.peek(BY, "q", late.id, None)).next_visible_at_ms
    assert due_ms is not None and at + HOUR_MS <= due_ms < at + HOUR_MS + 5_000
    with pytest.raises(InvalidValue, match="which is its max_delay_ms"):
        await far.messages.send(BY, "q", [SendEntry(b"m", deliver_at_ms=at + 31 * DAY_MS)])
    with pytest.raises(InvalidValue, match="not both"):
        await far.messages.send(BY, "q", [SendEntry(b"m", delay_ms=1, deliver_at_ms=at)])
    await far.queues.create_queue(BY, "o", QueueSettings(fifo=True, content_dedup=True))
    with pytest.raises(InvalidValue, match="no delay of its own"):
        await far.messages.send(BY, "o", [SendEntry(b"m", group="g", deliver_at_ms=at)])


@pytest.mark.parametrize("delay_ms", [100_000, HOUR_MS])
async def test_a_cancelled_message_never_comes_also_after_a_loss(
    far: Engine, clock: ScriptClock, stack: Services, delay_ms: int
) -> None:
    await far.queues.create_tag(BY, "q", "other", 0, None, {})
    sent = await far.messages.send(BY, "q", [SendEntry(b"%d" % n, delay_ms=delay_ms) for n in range(4)])
    await far.messages.cancel(BY, "q", sent[0].id)
    await filed(far)
    await far.messages.cancel(BY, "q", sent[2].id)
    wipe(stack, far)  # the answer came when the journal had it
    for gone in (sent[0], sent[2]):
        with pytest.raises(MessageNotFound):
            await far.messages.cancel(BY, "q", gone.id)
        with pytest.raises(MessageNotFound):
            await far.messages.reschedule(BY, "q", gone.id, now_ms())
    clock.pass_s(delay_ms / 1000 + 1)
    for tag in (None, "other"):
        assert await take(far, 2, tag) == ["1", "3"]
    assert await delayed(far) == 0
    await drained(far)
    assert clean(await verify(far))


async def test_what_is_due_or_was_delivered_can_not_be_changed(far: Engine) -> None:
    (near,) = await send(far, "q", "near", delay_ms=300)
    (ready,) = await send(far, "q", "ready")
    await asyncio.sleep(0.4)
    for message in (near, ready):
        with pytest.raises(MessageDue):
            await far.messages.cancel(BY, "q", message.id)
    got = await receive(far, "q", max=2)
    await far.messages.release(BY, "q", [one.handle for one in got], 60_000)
    for message in (near, ready):
        with pytest.raises(MessageDue):
            await far.messages.reschedule(BY, "q", message.id, now_ms() + 1_000)
    with pytest.raises(MessageNotFound):
        await far.messages.cancel(BY, "q", "nonsense")
    await far.queues.create_queue(BY, "o", QueueSettings(fifo=True, content_dedup=True, delay_ms=60_000))
    (held,) = await far.messages.send(BY, "o", [SendEntry(b"m", group="g")])
    with pytest.raises(NotAllowedOnQueue):
        await far.messages.reschedule(BY, "o", held.id, now_ms())
    await far.messages.cancel(BY, "o", held.id)


@pytest.mark.parametrize(
    ("before_ms", "after_ms"), [(HOUR_MS, 2_000), (100_000, 2 * HOUR_MS), (HOUR_MS, 3 * HOUR_MS), (100_000, 1_000)]
)
async def test_a_rescheduled_message_comes_at_its_new_time(
    far: Engine, clock: ScriptClock, stack: Services, before_ms: int, after_ms: int
) -> None:
    (moved, _) = await far.messages.send(
        BY, "q", [SendEntry(b"moved", delay_ms=before_ms), SendEntry(b"kept", delay_ms=before_ms)]
    )
    due_ms = now_ms() + after_ms
    await far.messages.reschedule(BY, "q", moved.id, due_ms)
    await filed(far)
    await drained(far)
    wipe(stack, far)
    assert await take(far, 0) == []
    first, second = ("moved", "kept") if after_ms < before_ms else ("kept", "moved")
    clock.pass_s(min(before_ms, after_ms) / 1000 + 1)
    assert await take(far, 1) == [first]
    clock.set(due_ms + 5_000 if second == "moved" else due_ms + before_ms)
    assert await take(far, 1) == [second]
    await drained(far)
    assert clean(await verify(far))


async def test_a_message_is_cancelled_or_delivered_and_never_both(far: Engine) -> None:
    sent = await far.messages.send(BY, "q", [SendEntry(b"%d" % n, delay_ms=500 + 10 * n) for n in range(100)])
    delivered: list[str] = []
    cancelled: list[str] = []

    async def consume() -> None:
        end = asyncio.get_running_loop().time() + 4
        while asyncio.get_running_loop().time() < end:
            got = await receive(far, "q", max=10, wait_ms=200)
            delivered.extend(one.id for one in got)
            await ack(far, "q", got)

    async def cancel(id: str, at_s: float) -> None:
        await asyncio.sleep(at_s)
        try:
            await far.messages.cancel(BY, "q", id)
        except (MessageDue, MessageNotFound):
            return
        cancelled.append(id)

    await asyncio.gather(consume(), *(cancel(one.id, 0.5 + n / 100) for n, one in enumerate(sent)))
    assert sorted(delivered + cancelled) == sorted(one.id for one in sent)
    assert delivered
