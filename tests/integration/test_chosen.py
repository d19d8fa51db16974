"""Redrive tasks that were given ids: exactly those letters move, whoever asks again moves none a
second time.
"""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue
from engine.move.tasks.selection import chosen_offsets, left_of, next_chosen
from engine.rules.queue import Ids
from engine.shapes import Delivery
from schemas.identity import MessageId
from schemas.records import TaskRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.drive import BY, drain, ended, receive, send


async def letters_of(engine: Engine, queue: str, count: int) -> dict[str, str]:
    """`count` dead letters of a queue, in its dead-letter queue: body -> id."""
    await engine.queues.create_queue(BY, f"{queue}-dlq", QueueSettings(partitions=3))
    await engine.queues.create_queue(
        BY, queue, QueueSettings(partitions=2, redrive_policy=RedrivePolicy(f"{queue}-dlq", 5))
    )
    await send(engine, queue, *(f"m{number:03d}" for number in range(count)))
    got: list[Delivery] = []
    while len(got) < count:
        got += await receive(engine, queue, max=100, wait_ms=2000)
    for at in range(0, count, 100):
        await engine.messages.kill(BY, queue, [delivery.handle for delivery in got[at : at + 100]])
    found: dict[str, str] = {}
    while len(found) < count:
        page = await receive(engine, f"{queue}-dlq", max=100, wait_ms=2000)
        found |= {delivery.message.body.decode(): delivery.id for delivery in page}
        await engine.messages.release(BY, f"{queue}-dlq", [delivery.handle for delivery in page], 0)
    return found


def address(engine: Engine, id: str) -> str:
    found = MessageId.parse(id, engine.parts.units.window.ids.secret)
    return f"{found.incarnation}/{found.partition}/{found.offset}"


def tasks_of(engine: Engine, queue: str) -> list[TaskRecord]:
    return [task for task in engine.catalog.tasks.values() if task.source == f"{queue}-dlq"]


async def test_a_task_with_ids_moves_exactly_those_and_a_second_one_none(engine: Engine, queue: str) -> None:
    letters = await letters_of(engine, queue, 60)
    wanted = sorted(body for body in letters if int(body[1:]) % 7 == 0)
    ids = [letters[body] if int(body[1:]) % 2 else address(engine, letters[body]) for body in wanted]

    first = await ended(engine, await engine.tasks.redrive(BY, f"{queue}-dlq", None, None, 0, ids=[*ids, ids[0]]))
    second = await ended(engine, await engine.tasks.redrive(BY, f"{queue}-dlq", None, None, 0, ids=ids))

    assert (first.status, first.moved, first.failed, first.expected) == ("completed", len(wanted), 0, len(wanted))
    assert (second.status, second.moved, second.failed) == ("completed", 0, 0)
    assert sorted(await drain(engine, queue, expect=len(wanted))) == wanted
    assert sorted(await drain(engine, f"{queue}-dlq", patience_ms=500)) == sorted(set(letters) - set(wanted))
    assert {task.id: task.chosen for task in tasks_of(engine, queue)} == {
        first.id: [[], [], []],
        second.id: [[], [], []],
    }


async def test_ids_of_another_queue_life_or_installation_are_refused(engine: Engine, queue: str) -> None:
    letters = await letters_of(engine, queue, 1)
    (letter,) = letters.values()
    good = address(engine, letter)
    altered = letter[:-1] + ("0" if letter[-1] != "0" else "1")
    strangers = ["", "x", "0123456789ab/0/0", good.rsplit("/", 2)[0] + "/3/0", good + "\n", altered]

    for stranger in strangers:
        with pytest.raises(InvalidValue, match="no id or address"):
            await engine.tasks.redrive(BY, f"{queue}-dlq", None, None, 0, ids=[good, stranger])
    for number in (0, 10_001):
        with pytest.raises(InvalidValue, match="1 to 10000"):
            await engine.tasks.redrive(BY, f"{queue}-dlq", None, None, 0, ids=[good] * number)
    assert tasks_of(engine, queue) == []


async def test_offsets_are_sorted_once_and_walked_from_one_to_the_next(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    found = engine.catalog.queues[queue]

    chosen = chosen_offsets(
        found, [f"{found.incarnation}/{place}" for place in ("1/9", "1/2", "1/9", "0/0")], Ids("secret")
    )

    assert chosen == [[0], [2, 9]]
    assert [next_chosen(chosen, 1, offset, 100) for offset in (0, 2, 3, 9, 10)] == [2, 2, 9, 9, 100]
    assert next_chosen(chosen, 1, 0, 1) == 1, "the end comes first"
    assert next_chosen(None, 1, 5, 100) == 5
    assert left_of(chosen, [1, 3], ended=False) == [[], [9]]
    assert left_of(chosen, [1, 3], ended=True) == [[], []]
    assert left_of(None, [1, 3], ended=True) is None
