"""What happened to a message, as its record and the journal have it."""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, MessageNotFound, NotAuthorised
from engine.receive import events as events_module
from engine.shapes import Event, ExtendEntry, Life, Principal, SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, eventually, receive, send


async def life(engine: Engine, queue: str, id: str, tag: str | None = None) -> Life:
    """All pages of it as one."""
    events: list[Event] = []
    token = None
    while True:
        page = await engine.messages.message_events(BY, queue, id, tag, token)
        events += page.events
        token = page.next
        if token is None:
            return Life(events, page.complete, page.since_ms, None, page.scanned, page.cut)


def kinds(found: Life) -> list[str]:
    return [event.kind for event in found.events]


async def test_a_life_from_send_to_ack_under_each_tag(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    wanted = Filter([Condition("kind", "string", b"a")])
    await engine.queues.create_tag(BY, queue, "fits", 0, wanted, {})
    await engine.queues.create_tag(BY, queue, "other", 0, Filter([Condition("kind", "string", b"b")]), {})
    (sent,) = await engine.messages.send(BY, queue, [SendEntry(b"m", {"kind": Attribute("string", b"a")})])
    await send(engine, queue, *"xyz")
    (got,) = await receive(engine, queue, max=1, lease_ms=30_000)
    await engine.messages.extend(BY, queue, [ExtendEntry(got.handle, 60_000)])
    await engine.messages.release(BY, queue, [got.handle], 0)
    again = next(one for one in await receive(engine, queue, lease_ms=30_000) if one.id == sent.id)
    await ack(engine, queue, [again])

    found = await life(engine, queue, sent.id, "default")
    assert kinds(found) == ["sent", "leased", "extended", "released", "leased", "acked"]
    first, leased, extended, _, second, acked = found.events
    assert (first.at_ms, first.by) == (sent.sent_at_ms, "tester")
    assert (leased.receive_count, second.receive_count, acked.receive_count) == (1, 2, 2)
    assert leased.until_ms == got.next_visible_at_ms
    assert extended.until_ms is not None
    assert extended.until_ms > leased.until_ms
    assert sorted(event.at_ms for event in found.events[1:]) == [event.at_ms for event in found.events[1:]]
    assert (found.complete, found.since_ms) == (True, sent.sent_at_ms)

    (tagged,) = await receive(engine, queue, max=1, tag="fits")
    await ack(engine, queue, [tagged])
    whole = await life(engine, queue, sent.id)
    assert {event.tag for event in whole.events[1:]} == {"default", "fits"}
    assert [event.kind for event in whole.events if event.tag == "fits"] == ["leased", "acked"]
    assert whole.complete
    with pytest.raises(MessageNotFound):
        await engine.messages.message_events(BY, queue, "00000000-0000-8000-8000-000000000000", None, None)
    for bad in ("x", "kQ", "lc0="):
        with pytest.raises(InvalidValue):
            await engine.messages.message_events(BY, queue, sent.id, None, bad)


async def test_the_lives_of_a_message_and_of_its_dead_letter_name_each_other(engine: Engine, queue: str) -> None:
    dead = f"{queue}-dlq"
    await engine.queues.create_queue(BY, dead, QueueSettings(partitions=3))
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2, redrive_policy=RedrivePolicy(dead, 5)))
    (sent,) = await send(engine, queue, "m")
    (got,) = await receive(engine, queue, max=1, wait_ms=2000)
    await engine.messages.kill(BY, queue, [got.handle])
    (letter,) = await receive(engine, dead, max=1, wait_ms=2000)
    await engine.messages.release(BY, dead, [letter.handle], 0)

    died = await life(engine, queue, sent.id)
    assert kinds(died) == ["sent", "leased", "dying", "dead"]
    assert died.events[2].reason == "killed"
    assert (died.events[3].queue, died.events[3].id) == (dead, letter.id)
    assert died.complete

    task = await engine.tasks.redrive(BY, dead, None, None, 0, ids=[letter.id])

    async def over() -> bool:
        return (await engine.tasks.get_task(BY, task.id)).status == "completed"

    await eventually(over)
    (back,) = await receive(engine, queue, max=1, wait_ms=2000)
    moved = await life(engine, dead, letter.id)
    assert kinds(moved) == ["sent", "leased", "released", "claimed", "moved"]
    came, last = moved.events[0], moved.events[-1]
    assert (came.queue, came.id, came.reason) == (queue, sent.id, "killed")
    assert (last.queue, last.id, last.task) == (queue, back.id, task.id)
    returned = await life(engine, queue, back.id)
    assert kinds(returned)[:2] == ["sent", "leased"]
    assert (returned.events[0].queue, returned.events[0].id) == (dead, letter.id)


async def test_a_fifo_message_and_delayed_ones(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}.fifo", QueueSettings(partitions=1, fifo=True))
    (first,) = await engine.messages.send(BY, f"{queue}.fifo", [SendEntry(b"m", group="g", dedup_id="d")])
    (got,) = await receive(engine, f"{queue}.fifo", max=1)
    await ack(engine, f"{queue}.fifo", [got])
    assert kinds(await life(engine, f"{queue}.fifo", first.id)) == ["sent", "leased", "acked"]

    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    (late,) = await send(engine, queue, "late", delay_ms=60_000)
    (never,) = await send(engine, queue, "never", delay_ms=60_000)
    await engine.messages.cancel(BY, queue, never.id)
    await engine.messages.reschedule(BY, queue, late.id, 0)
    assert len(await receive(engine, queue, max=1, wait_ms=2000)) == 1
    assert kinds(await life(engine, queue, never.id)) == ["sent", "cancelled"]
    assert kinds(await life(engine, queue, late.id)) == ["sent", "rescheduled", "leased"]


async def test_pages_of_a_long_journal_are_one_life(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    (sent,) = await send(engine, queue, "m")
    for _ in range(6):
        (got,) = await receive(engine, queue, max=1)
        await engine.messages.release(BY, queue, [got.handle], 0)
        await life(engine, queue, sent.id)  # the journal has it, in a record of its own
    whole = await life(engine, queue, sent.id)
    monkeypatch.setattr(events_module, "CHUNK", 3)
    monkeypatch.setattr(events_module, "MOST_RECORDS", 3)
    page = await engine.messages.message_events(BY, queue, sent.id, None, None)
    assert (page.cut, page.complete, page.next is None) == ("records", False, False)
    parts = await life(engine, queue, sent.id)
    assert parts.events == whole.events
    assert [event.receive_count for event in parts.events if event.kind == "leased"] == [1, 2, 3, 4, 5, 6]
    assert parts.complete


async def test_who_may_see_one_tag_sees_what_happened_under_it_alone(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_secret="kq8Zr2vWm5Xt7Yp1Bn4C")
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await engine.queues.create_tag(BY, "q", "hers", 0, None, {})
    (sent,) = await send(engine, "q", "m")
    await ack(engine, "q", await receive(engine, "q", max=1))
    await receive(engine, "q", max=1, tag="hers")
    carol = Principal("carol")
    await engine.callers.grant(BY, "q", "carol", "peek", tag="hers")
    seen = await engine.messages.message_events(carol, "q", sent.id, "hers", None)
    assert [(event.kind, event.tag) for event in seen.events] == [("sent", ""), ("leased", "hers")]
    with pytest.raises(NotAuthorised):
        await engine.messages.message_events(carol, "q", sent.id, None, None)


async def test_what_the_journal_has_lost_is_said(own_engine: Engine) -> None:
    engine = own_engine
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    (sent,) = await send(engine, "q", "m")
    (got,) = await receive(engine, "q", max=1, lease_ms=60_000)
    unit = engine.catalog.queues["q"].units[0]
    before = await engine.messages.message_events(BY, "q", sent.id, None, None)
    assert before.complete
    part = (engine.catalog.journal_topic, engine.parts.base.journal.partition_of(unit))
    end = (await engine.log.end_offsets([part]))[part]
    await engine.log.delete_records({part: end})
    await ack(engine, "q", [got])
    found = await life(engine, "q", sent.id)
    assert (kinds(found), found.complete) == (["sent", "acked"], False)
    assert found.since_ms > sent.sent_at_ms
