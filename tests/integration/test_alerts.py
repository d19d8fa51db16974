"""Alerts from a breach to who is told: two workers, minutes of a second or two, a real HTTP server
and a real SMTP server.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from engine.alerts import judge
from engine.alerts.watches import MAX_EVENTS
from engine.engine import Engine
from engine.errors import AlertNotFound, InvalidValue, QueueNotFound, TagNotFound
from engine.meters.statistics import day_of
from engine.rules.alerts import MAX_POLICIES
from engine.shapes import Principal
from schemas.records.settings import QueueSettings
from schemas.records.watching import AlertEvent
from state.keys import lock_key
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, send
from tests.receivers import Hooks, Letterbox, hooks, letterbox

OWNER = Principal("shop")
MINUTE_S = 2


@pytest.fixture
async def box() -> AsyncIterator[Letterbox]:
    async with letterbox() as made:
        yield made


@pytest.fixture
async def hook() -> AsyncIterator[Hooks]:
    async with hooks() as made:
        yield made


MakeWorker = Callable[..., Awaitable[Engine]]


@pytest.fixture
def worker(make_engine: MakeEngine, box: Letterbox, monkeypatch: pytest.MonkeyPatch) -> MakeWorker:
    """Starts a worker with minutes of two seconds, that tells the servers of the test."""
    monkeypatch.setattr("engine.alerts.messenger.PAUSES_S", (0.0, 0.2, 0.4))

    async def make(**more: Any) -> Engine:
        mail = {"smtp_host": "127.0.0.1", "smtp_port": box.port, "smtp_from": "leaseway@example.com"}
        return await make_engine(**{"meter_minute_s": MINUTE_S, "webhook_addresses": "all", **mail, **more})

    return make


async def watched(engine: Engine, queue: str, hook: Hooks | None = None) -> None:
    """A queue of an owner with a webhook and an address."""
    await engine.callers.set_contacts(OWNER, "shop", "Shop", "shop@example.com", "", hook.url if hook else "")
    await engine.queues.create_queue(OWNER, queue, QueueSettings(partitions=1))


async def events(engine: Engine, queue: str) -> list[AlertEvent]:
    await engine.catalog.sync()
    return await engine.alerts.list_alert_events(BY, queue)


async def changes(engine: Engine, queue: str) -> list[tuple[str, str]]:
    """What happened, oldest first."""
    return [(event.change, event.told) for event in reversed(await events(engine, queue))]


async def comes_to(engine: Engine, queue: str, expected: list[tuple[str, str]], within_s: float = 20) -> None:
    async def there() -> bool:
        return await changes(engine, queue) == expected

    try:
        await eventually(there, within_s)
    except AssertionError:
        assert await changes(engine, queue) == expected


async def test_a_breach_is_told_by_webhook_and_mail_and_clears(
    worker: MakeWorker, hook: Hooks, box: Letterbox, queue: str
) -> None:
    first, second = await worker(), await worker()
    await watched(first, queue, hook)
    policy = await first.alerts.add_alert(OWNER, queue, None, "send_request", "count", 3)
    await asyncio.sleep(MINUTE_S - time.time() % MINUTE_S)  # what is sent now is of one minute
    await send(first, queue, "a", "b")
    await send(second, queue, "c", "d")
    await comes_to(second, queue, [("fired", "told"), ("cleared", "told")])

    secret = (await first.callers.get_user(OWNER, "shop")).webhook_secret
    assert [post.json["change"] for post in hook.posted] == ["fired", "cleared"]
    for post, event in zip(hook.posted, reversed(await events(first, queue)), strict=True):
        at_s, mac = (part.split("=")[1] for part in post.headers["leaseway-signature"].split(","))
        assert mac == hmac.new(secret.encode(), at_s.encode() + b"." + post.body, "sha256").hexdigest()
        assert (post.path, post.headers["leaseway-event"], post.json["event"]) == ("/hook?of=tests", event.id, event.id)
    assert hook.posted[0].json["value"] in (3, 4) and hook.posted[0].json["queue"] == queue
    assert [to for to, _ in box.mails] == [["shop@example.com"]] * 2
    assert f"send_request count of queue {queue} fires" in box.mails[0][1].replace("\r\n ", " ")
    ((listed, state),) = await second.alerts.list_alerts(OWNER, queue)
    assert (listed, state.firing, state.id) == (policy, False, policy.id)


async def test_an_alarm_is_on_at_every_worker_while_a_policy_fires(worker: MakeWorker, queue: str) -> None:
    first, second = await worker(), await worker()
    await watched(first, queue)
    await first.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 2)
    await send(first, queue, "a", "b", "c")
    await comes_to(first, queue, [("fired", "told")])
    for engine in (first, second):
        assert ("alert_firing", queue, 1) in [
            (alarm.kind, alarm.queue, alarm.number) for alarm in engine.alerts.alarms()
        ]
    assert (await events(first, queue))[0].value == 3
    await drain(first, queue, expect=3)
    await comes_to(second, queue, [("fired", "told"), ("cleared", "told")])
    assert [alarm for alarm in second.alerts.alarms() if alarm.kind == "alert_firing"] == []


@pytest.mark.long
async def test_a_policy_of_a_tag_sees_its_tag_alone(worker: MakeWorker, queue: str) -> None:
    engine = await worker()
    await watched(engine, queue)
    await engine.queues.create_tag(OWNER, queue, "t", 0, None, {})
    for tag in ("t", "default"):
        await engine.alerts.add_alert(OWNER, queue, tag, "receive_request", "latency", 100)
        await engine.alerts.add_alert(OWNER, queue, tag, "receive_request", "latency_p999", 100)
    await engine.messages.receive(OWNER, queue, "t", 1, 300, None)
    await engine.messages.receive(OWNER, queue, None, 1, 0, None)
    await comes_to(engine, queue, [("fired", "told")] * 2 + [("cleared", "told")] * 2)
    found = await events(engine, queue)
    assert {(event.tag, event.measurement) for event in found} == {("t", "latency"), ("t", "latency_p999")}
    assert all(300 <= event.value < 1_000 for event in found if event.change == "fired")


@pytest.mark.long
async def test_a_judge_that_dies_is_followed_and_nothing_is_told_twice(
    worker: MakeWorker, hook: Hooks, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "HOLD_MS", 3_000)
    engines = [await worker(), await worker()]
    await watched(engines[0], queue, hook)
    await engines[0].alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 1)
    await send(engines[0], queue, "a")
    await comes_to(engines[0], queue, [("fired", "told")])
    judges = [engine.parts.watching.judge for engine in engines]
    (at,) = [index for index, one in enumerate(judges) if one._judged]

    # It stands still, and its lock with it: nothing gives it up.
    stopped, woken = asyncio.Event(), asyncio.Event()
    round_ = judges[at]._round

    async def stands_still(hold: Any) -> None:
        stopped.set()
        await woken.wait()
        await round_(hold)

    monkeypatch.setattr(judges[at], "_round", stands_still)
    await stopped.wait()
    await _drop_lock(engines[at])
    await drain(engines[1 - at], queue, expect=1)
    await comes_to(engines[1 - at], queue, [("fired", "told"), ("cleared", "told")])
    assert judges[1 - at]._judged
    # It wakes, with a lock that it thinks it has, and looks at the same minutes.
    woken.set()
    await asyncio.sleep(2 * MINUTE_S)
    assert await changes(engines[at], queue) == [("fired", "told"), ("cleared", "told")]
    assert [post.json["change"] for post in hook.posted] == ["fired", "cleared"]


async def test_a_judge_that_knows_an_old_record_decides_by_the_new_one(
    worker: MakeWorker, hook: Hooks, box: Letterbox, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped after it had looked at what was known, and before it wrote."""
    engine = await worker()
    await watched(engine, queue, hook)
    await engine.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 1)
    await engine.alerts.set_daily_statistics(OWNER, queue, True)
    watching, found = engine.parts.watching, engine.catalog.queues[queue]
    old = replace(watching.watches.of(found), mailed_day="2026-01-01")
    await send(engine, queue, "a")
    await comes_to(engine, queue, [("fired", "told")])
    await engine.alerts.add_alert(OWNER, queue, None, "delete_request", "count", 1_000)
    known = watching.watches.of(found)
    stale = watching.judge
    await stale.stop()
    with monkeypatch.context() as patched:
        views = iter([old, None, old, None])  # the second of each two is asked for under the lock
        real = watching.watches.of
        patched.setattr(watching.watches, "of", lambda queue: next(views) or real(queue))
        await stale._judge(found, known.events[0].at_ms, is_newest=True)
        await stale._note_day(found)
    assert watching.watches.of(found) == known
    assert (len(hook.posted), len(box.mails)) == (1, 1)


async def _drop_lock(engine: Engine) -> None:
    """Another worker may take the lock, as if its time were over."""
    await engine.parts.base.connection.call("DEL", lock_key(engine.settings.topic_prefix, "judge"))


async def test_what_was_decided_and_not_told_is_told_by_who_follows(
    worker: MakeWorker, hook: Hooks, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await worker()
    await watched(first, queue, hook)
    hook.silent = True
    await first.alerts.add_alert(OWNER, queue, None, "send_request", "count", 1)
    await send(first, queue, "a")

    async def posted() -> bool:
        return bool(hook.posted)

    await eventually(posted, within_s=15)
    assert (await changes(first, queue))[0] == ("fired", "pending")
    await first.parts.watching.judge.stop()
    hook.silent = False
    second = await worker()

    async def told() -> bool:
        return ("fired", "told") in await changes(second, queue)

    await eventually(told, within_s=20)
    assert len({post.headers["leaseway-event"] for post in hook.posted if post.json["change"] == "fired"}) == 1


@pytest.mark.parametrize(
    ("statuses", "refusals", "outcome", "posts"),
    [([500, 302], 0, "told", 3), ([500, 500, 404], 0, "told", 3), ([500] * 3, 3, "failed", 3)],
    ids=["third try", "mail alone", "neither"],
)
async def test_a_message_is_tried_three_times_and_no_redirect_is_followed(
    worker: MakeWorker,
    hook: Hooks,
    box: Letterbox,
    queue: str,
    statuses: list[int],
    refusals: int,
    outcome: str,
    posts: int,
) -> None:
    engine = await worker()
    hook.statuses, box.refusals, hook.headers = list(statuses), refusals, f"Location: {hook.url}\r\n"
    await watched(engine, queue, hook)
    await engine.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 1)
    await send(engine, queue, "a")
    await comes_to(engine, queue, [("fired", outcome)])
    assert len(hook.posted) == posts
    assert len(box.mails) == (0 if refusals else 1)
    (event,) = await events(engine, queue)
    assert (str(statuses[-1]) in event.note) == (len(statuses) == 3), event.note


async def test_a_webhook_that_never_answers_holds_up_its_owner_alone(
    worker: MakeWorker, hook: Hooks, queue: str
) -> None:
    engine = await worker(smtp_host="")
    hook.silent = True
    await engine.callers.set_contacts(OWNER, "shop", "", "", "", hook.url)
    other = Principal("other")
    names = [f"{queue}-{number}" for number in range(8)]
    async with hooks() as answers:
        await engine.callers.set_contacts(other, "other", "", "", "", answers.url)
        for name in (*names, queue):
            by = OWNER if name != queue else other
            await engine.queues.create_queue(by, name, QueueSettings(partitions=1))
            await send(engine, name, "a")
        for name in (*names, queue):
            await engine.alerts.add_alert(
                OWNER if name != queue else other, name, None, "queue_message_number", "count", 1
            )
        await comes_to(engine, queue, [("fired", "told")])
        assert len(answers.posted) == 1
    assert 1 <= len(hook.posted) <= 4
    assert [await changes(engine, name) for name in names].count([("fired", "pending")]) >= 1


async def test_a_private_address_is_not_reached_unless_the_service_allows_it(
    worker: MakeWorker, hook: Hooks, queue: str
) -> None:
    engine = await worker(webhook_addresses="public", smtp_host="")
    await watched(engine, queue, hook)
    await engine.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 1)
    await send(engine, queue, "a")
    await comes_to(engine, queue, [("fired", "failed")])
    assert hook.posted == []
    assert "which webhooks may not go to" in (await events(engine, queue))[0].note


async def test_who_can_not_be_told_is_noted(worker: MakeWorker, queue: str) -> None:
    engine = await worker(smtp_host="")
    await watched(engine, queue)
    await engine.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 1)
    await send(engine, queue, "a")
    await comes_to(engine, queue, [("fired", "nobody")])


@pytest.mark.long
async def test_a_value_at_the_edge_fires_once(worker: MakeWorker, hook: Hooks, queue: str) -> None:
    """Nine and ten messages in turn, at a threshold of ten."""
    engine = await worker()
    await watched(engine, queue, hook)
    await engine.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", 10)
    await send(engine, queue, *"abcdefghi")
    for _ in range(4):
        await send(engine, queue, "j")
        await asyncio.sleep(MINUTE_S)
        (got,) = await engine.messages.receive(BY, queue, None, 1, 0, None)
        await engine.messages.ack(BY, queue, [got.handle])
        await asyncio.sleep(MINUTE_S)
    assert await changes(engine, queue) == [("fired", "told")]
    assert len(hook.posted) == 1


# Policies


async def test_policies_are_there_at_every_worker_and_gone_with_their_queue_or_tag(
    make_engine: MakeEngine, queue: str
) -> None:
    first, second = await make_engine(), await make_engine()
    await watched(first, queue)
    await first.queues.create_tag(OWNER, queue, "t", 0, None, {})
    made = [
        await first.alerts.add_alert(OWNER, queue, tag, "delete_request", "count", threshold)
        for tag in (None, "t")
        for threshold in (1, 2.5)
    ]
    again = await first.alerts.add_alert(OWNER, queue, None, "delete_request", "count", 1.0)
    await second.catalog.sync()
    assert again == made[0]
    assert [policy for policy, _ in await second.alerts.list_alerts(OWNER, queue)] == made
    assert [policy for policy, _ in await second.alerts.list_alerts(OWNER, queue, "t")] == made[2:]
    assert await second.alerts.list_alerts(OWNER, queue, "default") == []
    await second.alerts.delete_alert(OWNER, queue, made[0].id)
    with pytest.raises(AlertNotFound):
        await first.alerts.delete_alert(OWNER, queue, made[0].id)
    await first.queues.delete_tag(OWNER, queue, "t")
    await asyncio.sleep(0.01)
    await first.queues.create_tag(OWNER, queue, "t", 0, None, {})
    assert [policy.id for policy, _ in await first.alerts.list_alerts(OWNER, queue)] == [made[1].id]
    copy = await first.queues.copy_queue(OWNER, queue, f"{queue}-copy")
    assert await first.alerts.list_alerts(OWNER, copy.name) == []
    await first.queues.delete_queue(OWNER, queue)
    await first.queues.create_queue(OWNER, queue, QueueSettings(partitions=1))
    assert await first.alerts.list_alerts(OWNER, queue) == []

    async def dropped() -> bool:
        return queue not in first.catalog.watches

    await eventually(dropped, within_s=15)


async def test_a_queue_has_so_many_policies_and_no_more(engine: Engine, queue: str) -> None:
    await watched(engine, queue)
    for number in range(MAX_POLICIES):
        await engine.alerts.add_alert(OWNER, queue, None, "send_request", "count", number + 1)
    with pytest.raises(InvalidValue, match="20 alert policies"):
        await engine.alerts.add_alert(OWNER, queue, "default", "delete_request", "count", 1)
    await engine.alerts.add_alert(OWNER, queue, None, "send_request", "count", 1)
    with pytest.raises(TagNotFound):
        await engine.alerts.add_alert(OWNER, queue, "none", "delete_request", "count", 1)


async def test_only_who_may_watches(engine: Engine, queue: str) -> None:
    await watched(engine, queue)
    stranger = Principal("stranger")
    for call in (
        engine.alerts.add_alert(stranger, queue, None, "send_request", "count", 1),
        engine.alerts.delete_alert(stranger, queue, "a"),
        engine.alerts.list_alerts(stranger, queue),
        engine.alerts.list_alert_events(stranger, queue),
        engine.alerts.set_daily_statistics(stranger, queue, True),
        engine.alerts.get_daily_statistics(stranger, queue),
        engine.alerts.statistics(stranger, queue, "2026-01-01"),
    ):
        with pytest.raises(QueueNotFound):  # who has no right is not told that it is there
            await call


async def test_a_history_has_a_bound(engine: Engine, queue: str) -> None:
    await watched(engine, queue)
    watches, found = engine.parts.watching.watches, engine.catalog.queues[queue]
    many = [AlertEvent(f"e{number}", number, "fired", "silent") for number in range(MAX_EVENTS + 30)]
    await watches.edit(found, lambda record: replace(record, events=many))
    shown = await engine.alerts.list_alert_events(OWNER, queue)
    assert [event.id for event in shown] == [f"e{number}" for number in range(MAX_EVENTS + 29, 29, -1)]


# Daily statistics


async def test_the_statistics_of_a_day_are_mailed_once(
    worker: MakeWorker, box: Letterbox, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "MAIL_AFTER_MS", 0)
    first, second = await worker(), await worker()
    await watched(first, queue)
    assert not await first.alerts.get_daily_statistics(OWNER, queue)
    await first.alerts.set_daily_statistics(OWNER, queue, True)
    await second.catalog.sync()
    assert await second.alerts.get_daily_statistics(OWNER, queue)
    await asyncio.sleep(2)
    assert box.mails == []
    # As if it had been on since the day before yesterday.
    watches, found = first.parts.watching.watches, first.catalog.queues[queue]
    yesterday = day_of(int(time.time() * 1000) - 86_400_000)
    await watches.edit(found, lambda record: replace(record, mailed_day="2026-01-01"))

    async def mailed() -> bool:
        return bool(box.mails)

    await eventually(mailed, within_s=15)
    await asyncio.sleep(2)
    ((to, text),) = box.mails
    assert to == ["shop@example.com"] and f"queue {queue} on {yesterday}" in text
    assert await first.alerts.list_alert_events(OWNER, queue) == []
    await second.alerts.set_daily_statistics(OWNER, queue, False)
    await first.catalog.sync()
    assert not await first.alerts.get_daily_statistics(OWNER, queue)


async def test_what_was_set_is_read_back_at_another_worker(worker: MakeWorker, queue: str) -> None:
    """Each read begins as soon as the change is answered; a worker that looks into its memory alone
    has not always heard of it by then.
    """
    first, second = await worker(), await worker()
    await first.queues.create_queue(OWNER, queue, QueueSettings())
    await second.queues.get_queue(OWNER, queue)
    for threshold in range(1, 11):
        made = await first.alerts.add_alert(OWNER, queue, None, "queue_message_number", "count", threshold)
        assert made.id in [policy.id for policy, _ in await second.alerts.list_alerts(OWNER, queue)]
        enabled = bool(threshold % 2)
        await first.alerts.set_daily_statistics(OWNER, queue, enabled)
        assert await second.alerts.get_daily_statistics(OWNER, queue) is enabled
        await first.callers.set_contacts(OWNER, "shop", "Shop", f"{threshold}@example.com", "")
        assert (await second.callers.get_user(OWNER, "shop")).email == f"{threshold}@example.com"
        await first.callers.grant(OWNER, queue, f"p{threshold}", "send")
        assert f"p{threshold}" in await second.callers.list_grants(OWNER, queue)
        assert await second.callers.get_grant(OWNER, queue, f"p{threshold}") == "send"
