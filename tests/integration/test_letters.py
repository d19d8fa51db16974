"""Dead letters: each that a task comes to has one outcome, which says where it is; what a task
would do; all dead-letter queues at once; copies.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import (
    InvalidValue,
    LogUnavailable,
    MessageNotFound,
    NotAllowedOnQueue,
    NotAuthorised,
    StoreUnavailable,
)
from engine.move.shapes import Letter
from engine.move.tasks import outcomes as outcomes_module
from engine.move.tasks import preview as preview_module
from engine.move.tasks.outcomes import rows_of
from engine.shapes import Principal, SendEntry, TaskInfo
from facade.dialects.native.wire.letters.shapes import CopyMessageBody
from facade.dialects.native.wire.translate import edit_of
from runtime import failpoints
from runtime.failpoints import arm, disarm
from schemas.filters import Condition, Filter
from schemas.records import Attribute, Choice, Message
from schemas.records.settings import QueueSettings, RedrivePolicy
from state.errors import StateUnavailable
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, ended, eventually, receive, wait_less_for_movers

LETTERS = 400


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lost mover is waited for 1 s, not 30."""
    wait_less_for_movers(monkeypatch, 1000)
    yield
    disarm()


async def with_letters(engine: Engine, queue: str, *bodies: str, partitions: int = 2, dead: str = "") -> dict[str, str]:
    """A queue with dead letters of these bodies; by body the id in the dead-letter queue."""
    dead = dead or f"{queue}-dlq"
    await engine.queues.create_queue(BY, dead, QueueSettings(partitions=partitions))
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2, redrive_policy=RedrivePolicy(dead, 5)))
    for at in range(0, len(bodies), 100):
        attributes = {"kind": Attribute("string", queue.encode())}
        entries = [SendEntry(body.encode(), attributes) for body in bodies[at : at + 100]]
        await engine.messages.send(BY, queue, entries)
    killed = 0
    while killed < len(bodies):
        got = await receive(engine, queue, max=100, wait_ms=2000)
        assert {r.status for r in await engine.messages.kill(BY, queue, [d.handle for d in got])} == {"ok"}
        killed += len(got)
    return {body: at for body, at in (await all_of(engine, dead)).items() if body in bodies}


async def all_of(engine: Engine, queue: str, state: str | None = None) -> dict[str, str]:
    """The messages of a queue: body and id."""
    found: dict[str, str] = {}
    token = None
    while True:
        page = await engine.messages.query(BY, queue, None, None, None, state, None, 1000, token)
        found |= {one.message.body.decode(): one.id for one in page.messages}
        token = page.next
        if token is None:
            return found


async def outcomes(engine: Engine, task: TaskInfo, limit: int = 1000) -> list[Letter]:
    """All pages of what came of the letters of a task; no letter is there twice."""
    found: list[Letter] = []
    token = None
    while True:
        page = await engine.tasks.task_outcomes(BY, task.id, limit, token)
        assert page.complete
        found += page.letters
        token = page.next
        if token is None:
            break
    assert len({letter.id for letter in found}) == len(found)
    return found


async def check_moved(engine: Engine, letters: list[Letter], ids: dict[str, str]) -> None:
    """Each that was moved is where its outcome says, with the body that it had."""
    bodies = {at: body for body, at in ids.items()}
    for letter in letters:
        if letter.outcome == "moved":
            assert letter.queue is not None
            assert letter.copy is not None
            found = await engine.messages.peek(BY, letter.queue, letter.copy, None)
            assert (found.message.body.decode(), found.state) == (bodies[letter.id], "ready")


@pytest.mark.parametrize(
    ("point", "times"),
    [
        ("redrive.claimed", 3),
        ("redrive.paged", 2),
        ("redrive.saved", 1),
        ("move.held", 40),
        ("move.appended", 40),
        ("move.loaded", 40),
        ("move.after_settle", 40),
    ],
)
async def test_each_chosen_letter_has_one_outcome_whatever_kills_the_runner(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, point: str, times: int
) -> None:
    monkeypatch.setattr(outcomes_module, "PAGE", 30)

    async def died() -> bool:
        return failpoints._armed[point].seen >= times

    ids = await with_letters(own_engine, "q", *(str(n) for n in range(LETTERS)))
    chosen = {body: at for body, at in ids.items() if int(body) % 2 == 0}
    task = await own_engine.tasks.redrive(BY, "q-dlq", None, None, 100, ids=list(chosen.values()))
    arm(f"{point}=raise*{times}")
    await eventually(died, within_s=30)
    disarm()

    done = await ended(own_engine, task)

    letters = await outcomes(own_engine, task, limit=7)
    record = own_engine.catalog.tasks[task.id]
    assert (len(record.outcome_pages), len(rows_of(record, {}))) == (6, 20)
    assert (done.status, done.moved, done.failed) == ("completed", len(chosen), 0)
    assert {letter.id for letter in letters} == set(chosen.values())
    assert Counter(letter.outcome for letter in letters) == {"moved": len(chosen)}
    await check_moved(own_engine, letters, ids)
    assert sorted(await drain(own_engine, "q", expect=len(chosen))) == sorted(chosen)


async def test_a_task_that_is_forgotten_takes_its_outcomes_with_it(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes_module, "PAGE", 2)
    await with_letters(own_engine, "q", *(str(n) for n in range(5)))
    catalog = own_engine.catalog
    # What a runner leaves that ends between a page and the record of its task.
    arm("redrive.paged=raise*1")
    task = await own_engine.tasks.redrive(BY, "q-dlq", None, None, 0)
    await ended(own_engine, task)
    assert len(catalog.tasks[task.id].outcome_pages) == 2
    assert len(catalog.outcomes) == 3

    monkeypatch.setattr("engine.move.tasks.redrive.KEEP_ENDED_MS", 0)

    async def forgotten() -> bool:
        return not catalog.tasks and not catalog.outcomes

    await eventually(forgotten)


async def test_outcomes_say_why_a_chosen_letter_was_not_moved(own_engine: Engine) -> None:
    engine = own_engine
    ids = await with_letters(engine, "q", *(f"q{n}" for n in range(8)), dead="dlq", partitions=1)
    lost = await with_letters(engine, "lost", "l0", dead="dlq", partitions=1)
    await engine.queues.delete_queue(BY, "lost")
    leased, *_ = await receive(engine, "dlq", max=1, lease_ms=60_000)
    acked, *_ = await receive(engine, "dlq", max=1)
    await ack(engine, "dlq", [acked])
    incarnation = engine.catalog.queues["dlq"].incarnation
    beyond = f"{incarnation}/0/999999"
    text = Choice(text="q")

    task = await ended(
        engine, await engine.tasks.redrive(BY, "dlq", None, None, 0, ids=[*ids.values(), *lost.values(), beyond])
    )
    letters = await outcomes(engine, task)

    by_id = {letter.id: letter.outcome for letter in letters}
    beyond_id = next(iter(by_id.keys() - {*ids.values(), *lost.values()}))
    assert (by_id[leased.id], by_id[acked.id], by_id[lost["l0"]]) == ("leased", "gone", "no_destination")
    assert by_id[beyond_id] == "gone"
    assert Counter(by_id.values()) == {"moved": 6, "leased": 1, "gone": 2, "no_destination": 1}
    assert (task.moved, task.failed, task.total) == (6, 2, 8)
    await check_moved(engine, letters, ids)

    # Once more, and only those with a text: what does not have it was skipped.
    await engine.messages.release(BY, "dlq", [leased.handle])
    again = await ended(engine, await engine.tasks.redrive(BY, "dlq", None, None, 0, ids=list(by_id), choice=text))
    second = {letter.id: letter.outcome for letter in await outcomes(engine, again)}
    assert second[lost["l0"]] == "skipped"
    assert second[leased.id] == "moved"
    assert again.choice == text


async def test_a_task_without_ids_tells_of_each_letter_that_it_found(own_engine: Engine, monkeypatch: Any) -> None:
    engine = own_engine
    ids = await with_letters(engine, "q", *(f"{n:02d}" for n in range(30)))
    monkeypatch.setattr(outcomes_module, "MOST", 20)
    task = await ended(engine, await engine.tasks.redrive(BY, "q-dlq", None, None, 0))
    page = await engine.tasks.task_outcomes(BY, task.id, 1000, None)
    assert (len(page.letters), page.complete, task.moved) == (20, False, 30)
    await check_moved(engine, page.letters, ids)


async def test_a_cancelled_task_has_the_outcomes_of_what_it_came_to(own_engine: Engine) -> None:
    engine = own_engine
    ids = await with_letters(engine, "q", *(str(n) for n in range(LETTERS)))
    task = await engine.tasks.redrive(BY, "q-dlq", None, None, 100, ids=list(ids.values()))

    async def some_told() -> bool:
        return len(await outcomes(engine, task)) >= 50

    await eventually(some_told, within_s=30)  # while it runs
    for running in engine.parts.administration.tasks._running.values():
        running.cancel()
    cancelled = await engine.tasks.cancel_task(BY, task.id)
    letters = await outcomes(engine, task)
    assert len(letters) == cancelled.moved == cancelled.total
    assert 50 <= len(letters) < LETTERS
    await check_moved(engine, letters, ids)


async def test_a_choice_is_of_time_reason_source_and_text(own_engine: Engine) -> None:
    engine = own_engine
    await with_letters(engine, "a", "a one", "a Two", dead="dlq", partitions=1)
    await asyncio.sleep(0.005)
    await with_letters(engine, "b", "b one", "b Two", dead="dlq", partitions=1)
    page = await engine.messages.query(BY, "dlq", None, None, None, None, None, 10, None)
    at_ms = {one.message.body.decode(): one.sent_at_ms for one in page.messages}
    first_of_b = min(at for body, at in at_ms.items() if body.startswith("b"))

    async def would(choice: Choice | None, filter: Filter | None = None) -> set[str]:
        preview = await engine.tasks.preview_redrive(BY, "dlq", None, filter, choice=choice)
        bodies = {at: body for body, at in (await all_of(engine, "dlq")).items()}
        assert (preview.moved, preview.cut) == (len(preview.letters), "")
        return {bodies[letter.id] for letter in preview.letters}

    assert await would(None) == set(at_ms)
    assert await would(Choice(source="a")) == {"a one", "a Two"}
    assert await would(Choice(text="two")) == set()
    assert await would(Choice(text="two", any_case=True, source="b")) == {"b Two"}
    assert await would(Choice(reason="killed")) == set(at_ms)
    assert await would(Choice(reason="exhausted")) == set()
    assert await would(Choice(from_ms=first_of_b)) == {"b one", "b Two"}
    assert await would(Choice(to_ms=first_of_b)) == {"a one", "a Two"}
    assert await would(Choice(text="one"), Filter([Condition("kind", "string", b"b")])) == {"b one"}
    for wrong, field in (
        (Choice(reason="moved"), "reason"),
        (Choice(text="x" * 1001), "text"),
        (Choice(to_ms=-1), "to"),
    ):
        with pytest.raises(InvalidValue) as refused:
            await engine.tasks.redrive(BY, "dlq", None, None, 0, choice=wrong)
        assert refused.value.field == field

    done = await ended(
        engine, await engine.tasks.redrive(BY, "dlq", None, None, 0, choice=Choice(source="b", text="one"))
    )
    assert (done.moved, done.failed) == (1, 0)
    assert await drain(engine, "b", expect=1) == ["b one"]


async def test_a_preview_counts_holds_nothing_and_says_when_it_was_cut(own_engine: Engine, monkeypatch: Any) -> None:
    engine = own_engine
    ids = await with_letters(engine, "q", *(f"{n:03d}" for n in range(150)))
    leased = await receive(engine, "q-dlq", max=10, lease_ms=60_000)
    found = await engine.tasks.preview_redrive(BY, "q-dlq", None, None)
    assert (found.moved, found.failed, len(found.letters), found.cut) == (140, {"leased": 10}, 100, "")
    assert {letter.queue for letter in found.letters} == {"q"}
    assert (await engine.queues.get_queue(BY, "q-dlq")).tags[0].ready == 140
    assert len({d.id for d in leased} & set(ids.values())) == 10
    monkeypatch.setattr(preview_module, "CHUNK", 10)
    monkeypatch.setattr(preview_module, "MOST_RECORDS", 20)
    found = await engine.tasks.preview_redrive(BY, "q-dlq", None, None)
    assert (found.scanned, found.cut, found.moved + sum(found.failed.values())) == (20, "records", 20)


async def test_all_dead_letter_queues_are_redriven_at_once_by_who_may(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_secret="kq8Zr2vWm5Xt7Yp1Bn4C")
    a = await with_letters(engine, "a", "a1", "a2")
    b = await with_letters(engine, "b", "b1")
    await engine.queues.create_queue(BY, "no-letters", QueueSettings())
    carol = Principal("carol")

    assert await engine.tasks.redrive_all(carol, None, None, 0) == []
    assert [(p.source, p.moved) for p in await engine.tasks.preview_redrive_all(BY, None, None)] == [
        ("a-dlq", 2),
        ("b-dlq", 1),
    ]
    with pytest.raises(InvalidValue, match="no id of a message in a queue that you may redrive"):
        await engine.tasks.redrive_all(carol, None, None, 0, list(a.values()))
    for queue in ("a-dlq", "a"):
        await engine.callers.grant(BY, queue, "carol", "full_control")
    only_hers = await engine.tasks.preview_redrive_all(carol, None, None)
    assert [(p.source, p.moved) for p in only_hers] == [("a-dlq", 2)]

    tasks = await engine.tasks.redrive_all(BY, None, None, 0, [a["a1"], b["b1"]])
    done = [await ended(engine, task) for task in tasks]
    assert {(task.source, task.moved) for task in done} == {("a-dlq", 1), ("b-dlq", 1)}

    (rest,) = await engine.tasks.redrive_all(BY, None, None, 0)
    assert (rest.source, (await ended(engine, rest)).moved) == ("a-dlq", 1)

    listed, more = await engine.tasks.all_tasks(BY, None, 2, None)
    last, none = await engine.tasks.all_tasks(BY, "completed", 2, more)
    assert [task.id for task in (*listed, *last)] == [rest.id, *(t.id for t in sorted(done, key=_newest, reverse=True))]
    assert none is None
    hers, _ = await engine.tasks.all_tasks(carol, None, 10, None)
    assert {task.source for task in hers} == {"a-dlq"}
    with pytest.raises(InvalidValue):
        await engine.tasks.all_tasks(BY, "lost", 10, None)


def _newest(task: TaskInfo) -> tuple[int, str]:
    return task.created_at_ms, task.id


async def test_an_edited_copy_goes_home_or_elsewhere_and_the_letter_stays_or_goes(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_secret="kq8Zr2vWm5Xt7Yp1Bn4C")
    ids = await with_letters(engine, "q", "bad", "worse")
    await engine.queues.create_queue(BY, "other", QueueSettings())

    def edited(message: Message) -> SendEntry:
        return SendEntry(message.body + b" mended", {"kind": Attribute("string", b"new")})

    copied = await engine.messages.copy_message(BY, "q-dlq", ids["bad"], None, edited)
    assert (copied.queue, copied.removed) == ("q", False)
    found = await engine.messages.peek(BY, "q", copied.sent.id, None)
    assert (found.message.body, found.message.origin, found.state) == (b"bad mended", None, "ready")
    assert (await engine.messages.peek(BY, "q-dlq", ids["bad"], None)).state == "ready"
    elsewhere = await engine.messages.copy_message(BY, "q-dlq", ids["bad"], "other", edited, remove=True)
    assert (elsewhere.queue, elsewhere.removed) == ("other", True)
    assert (await engine.messages.peek(BY, "q-dlq", ids["bad"], None)).state == "settled"

    (leased,) = await receive(engine, "q-dlq", max=1, lease_ms=60_000)
    assert leased.id == ids["worse"]
    kept = await engine.messages.copy_message(BY, "q-dlq", ids["worse"], None, edited, remove=True)
    assert (kept.queue, kept.removed) == ("q", False)

    dave = Principal("dave")
    await engine.callers.grant(BY, "q-dlq", "dave", "peek")
    with pytest.raises(NotAuthorised):
        await engine.messages.copy_message(dave, "q-dlq", ids["worse"], None, edited, remove=True)
    with pytest.raises(MessageNotFound):
        await engine.messages.copy_message(BY, "q-dlq", kept.sent.id, None, edited)
    await engine.queues.delete_queue(BY, "q")
    await engine.queues.create_queue(BY, "q", QueueSettings())
    with pytest.raises(NotAllowedOnQueue, match="name a destination"):
        await engine.messages.copy_message(BY, "q-dlq", ids["worse"], None, edited)
    assert await drain(engine, "q", patience_ms=100) == []


@pytest.mark.parametrize(
    "fault", [StoreUnavailable("gone"), StateUnavailable("gone"), None], ids=["away", "lost", "hanging"]
)
async def test_a_copy_that_is_stored_never_seems_to_have_failed(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    ids = await with_letters(own_engine, "q", "bad")
    monkeypatch.setattr("engine.services.messages.MESSAGES_S", 1.0)
    hangs = asyncio.Event()

    async def no_answer(*_: Any, **__: Any) -> None:
        if fault is not None:
            raise fault
        await hangs.wait()

    with monkeypatch.context() as patch:
        patch.setattr(own_engine.messages._browse, "delete", no_answer)
        copied = await own_engine.messages.copy_message(
            BY, "q-dlq", ids["bad"], None, edit_of(CopyMessageBody()), remove=True
        )
        assert copied.removed is None
        hangs.set()
    assert await drain(own_engine, "q", expect=1) == ["bad"]


async def test_what_is_stored_is_never_said_to_be_none(own_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = own_engine
    await with_letters(engine, "q", "bad")

    async def no_answer(*_: Any) -> Any:
        raise LogUnavailable("Kafka is away")

    with monkeypatch.context() as patch:
        patch.setattr(engine.log, "end_offsets", no_answer)
        for verb in (
            engine.queues.get_queue(BY, "q-dlq"),
            engine.queues.list_tags(BY, "q-dlq"),
            engine.tasks.redrive_all(BY, None, None, 0),
        ):
            with pytest.raises(LogUnavailable):
                await verb
    assert (await engine.queues.get_queue(BY, "q-dlq")).tags[0].backlog == 1


@pytest.mark.parametrize("by_content", [False, True])
async def test_a_copy_into_a_fifo_queue_is_no_repeat_of_what_it_copies(
    make_engine: MakeEngine, by_content: bool
) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "line-dlq", QueueSettings(fifo=True))
    policy = RedrivePolicy("line-dlq", 5)
    await engine.queues.create_queue(
        BY, "line", QueueSettings(fifo=True, content_dedup=by_content, redrive_policy=policy)
    )
    dedup_id = None if by_content else "d1"
    (sent,) = await engine.messages.send(BY, "line", [SendEntry(b"bad", group="g", dedup_id=dedup_id)])
    (delivery,) = await receive(engine, "line")
    await engine.messages.kill(BY, "line", [delivery.handle])
    (letter,) = await engine.messages.peek_next(BY, "line-dlq", None, 1)

    copied = await engine.messages.copy_message(
        BY, "line-dlq", letter.id, None, edit_of(CopyMessageBody(body="good")), remove=True
    )
    assert copied.removed and copied.sent.id != sent.id
    again = await engine.messages.copy_message(BY, "line-dlq", letter.id, None, edit_of(CopyMessageBody(body="good")))
    assert again.sent.id == copied.sent.id  # of one letter it is a repeat, as the reference says
    assert [message.message.body for message in await receive(engine, "line")] == [b"good"]
