"""When the time of a send is over: what still waits was not stored, what a batch has taken may be
stored.
"""

from __future__ import annotations

import asyncio
import time

from engine.errors import LogUnavailable, NotStored
from engine.log import Appended
from engine.rules.queue import Queue
from engine.send.batch import STOOD_STILL_S, PendingSend, SendBatch
from schemas.records import Message
from tests.unit.records import queue_record

RECORD = queue_record()


def batch() -> SendBatch:
    return SendBatch(Queue(RECORD, "lw"), None)


def pending(within_s: float) -> PendingSend:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Appended]] = loop.create_future()
    return PendingSend([Message(b"body")], ["digest"], 4, done, loop.time() + within_s)


async def outcome(item: PendingSend) -> object:
    """What a send is answered, in a second at most."""
    assert isinstance(item.done, asyncio.Future)
    await asyncio.wait([item.done], timeout=1)
    return type(item.done.exception()) if item.done.done() else None


async def test_a_send_that_waits_is_refused_and_taken_out_when_its_time_is_over() -> None:
    sends = batch()
    first, second = pending(0.02), pending(60)
    sends.add(first)
    sends.add(second)
    assert await outcome(first) is NotStored
    assert list(sends.waiting) == [second]
    assert (sends.records, sends.size) == (1, 4)


async def test_a_send_that_came_before_those_that_wait_already_has_its_own_time() -> None:
    sends = batch()
    late, early = pending(60), pending(0.02)
    sends.add(late)
    sends.add(early)
    assert await outcome(early) is NotStored
    assert list(sends.waiting) == [late]


async def test_a_send_that_a_batch_has_taken_has_an_unknown_outcome_when_its_time_is_over() -> None:
    sends = batch()
    item, items = pending(0.02), list[PendingSend]()
    sends.add(item)
    sends.under_way.append(items)
    sends.take(10, items, asyncio.get_running_loop().time())
    assert items == [item]
    assert await outcome(item) is LogUnavailable


async def test_a_batch_takes_none_whose_time_is_over() -> None:
    sends = batch()
    over, good, items = pending(-1), pending(60), list[PendingSend]()
    sends.add(over)
    sends.add(good)
    sends.under_way.append(items)
    sends.take(10, items, asyncio.get_running_loop().time())
    assert items == [good]
    assert await outcome(over) is NotStored
    assert (sends.records, sends.size) == (0, 0)


async def test_after_the_process_stood_still_what_comes_meanwhile_does_not_put_off_the_answer() -> None:
    sends = batch()
    over = pending(0.05)
    sends.add(over)
    time.sleep(STOOD_STILL_S + 0.1)  # the whole process stands still
    await asyncio.sleep(0.01)
    assert isinstance(over.done, asyncio.Future) and not over.done.done()
    sends.add(pending(60))
    assert await outcome(over) is NotStored
