"""What the plane has leased and nobody was given: it is back at once, and does not count.

The real library serves the engine over sockets; Kafka and Redis are real too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from engine.engine import Engine
from tests.integration.conftest import MakeEngine
from tests.integration.drive import ack, all_wait, eventually, receive, send
from tests.integration.served import SqsConnection, served_queue

pytestmark = pytest.mark.usefixtures("library")
# `LW_LEAVERS=10000 pytest -s -k leaves` is the large size (docs/lab/harness.md).
LEAVERS = int(os.environ.get("LW_LEAVERS", "300"))


@pytest.fixture
async def planed(make_engine: MakeEngine, queue: str) -> AsyncIterator[tuple[Engine, int]]:
    """An engine with a queue that its plane serves, and the port."""
    engine = await make_engine(plane="auto")
    async with served_queue(engine, queue, partitions=1) as port:
        yield engine, port


def returned(engine: Engine) -> float:
    return engine.parts.counts().get("deliveries_returned_total", 0)


async def test_who_waits_is_pythons_at_once_when_rights_have_changed(planed: tuple[Engine, int], queue: str) -> None:
    engine, port = planed
    async with SqsConnection(port) as client:
        client.ask("ReceiveMessage", queue, WaitTimeSeconds=20)

        async def waits() -> bool:
            return engine.plane.waits(engine.parts.base.catalog.queues[queue])

        await eventually(waits)
        engine.plane.forget()
        for _ in range(300):  # turns of the loop, and nothing else wakes it
            if engine.parts.units.wait_lists.waiting:
                break
            await asyncio.sleep(0)
        assert engine.parts.units.wait_lists.waiting == 1
        await all_wait(engine, 1)
        await send(engine, queue, "x")
        assert (await client.hear())["Messages"][0]["Body"] == "x"


async def test_a_receive_that_does_not_wait_gets_what_the_plane_has_leased_ahead(
    planed: tuple[Engine, int], queue: str
) -> None:
    engine, port = planed
    async with SqsConnection(port) as client:
        for number in range(100):
            await client.call(
                "SendMessageBatch", queue, Entries=[{"Id": str(n), "MessageBody": f"{number}.{n}"} for n in range(2)]
            )
            got = (await client.call("ReceiveMessage", queue, WaitTimeSeconds=5))["Messages"]
            rest = await receive(engine, queue, max=1)
            assert [d.message.body.decode() for d in rest] == [f"{number}.1"], f"{number}: {got}"
            assert rest[0].receive_count == 1
            await client.call("DeleteMessage", queue, ReceiptHandle=got[0]["ReceiptHandle"])
            await ack(engine, queue, rest)
            await asyncio.sleep(0.01)


async def test_who_stops_has_given_back_what_was_leased(
    planed: tuple[Engine, int], make_engine: MakeEngine, queue: str
) -> None:
    engine, port = planed
    async with SqsConnection(port) as client:
        for _ in range(20):  # the more were taken lately, the more are leased ahead
            await client.call(
                "SendMessageBatch", queue, Entries=[{"Id": str(n), "MessageBody": str(n)} for n in range(2)]
            )
            await client.call("ReceiveMessage", queue, WaitTimeSeconds=5)
    before = returned(engine)
    await engine.plane.stop()
    assert not engine.plane.is_on
    catalog = engine.parts.base.catalog.queues[queue]
    offsets = range(40)
    states = await engine.parts.base.store.leases.states(
        catalog.units[0], engine.parts.base.catalog.generation, catalog.tags[0].id, list(offsets)
    )
    assert sum(state.count for state in states) == 20, f"{before} were returned before"


class Leavers:
    """Clients that go away while a message is on its way to them, each at a moment of its own."""

    def __init__(self, engine: Engine, port: int, queue: str) -> None:
        self._engine, self._port, self._queue = engine, port, queue
        self._dice = random.Random(44)
        self.seen: Counter[str] = Counter()
        self.times: list[float] = []

    async def one(self, number: int) -> None:
        """A client asks and goes; then another one asks for what it has left."""
        body = str(number)
        waits = self._dice.random() < 0.5
        async with SqsConnection(self._port) as leaver:
            if not waits:
                await send(self._engine, self._queue, body)
            leaver.ask("ReceiveMessage", self._queue, WaitTimeSeconds=20)
            if waits:
                await asyncio.sleep(0.002)
                sending = asyncio.create_task(send(self._engine, self._queue, body))
            await _pause(self._dice.random() * (0.004 if waits else 0.002))
            # Its side is closed; it reads on, so it knows what it was given.
            leaver.writer.write_eof()
            left_at = time.monotonic()
            with contextlib.suppress(OSError, EOFError):
                got = (await leaver.hear()).get("Messages", [])
                for message in got:
                    self.seen["given"] += 1
                    async with SqsConnection(self._port) as client:
                        await client.call("DeleteMessage", self._queue, ReceiptHandle=message["ReceiptHandle"])
                if got:
                    return
            if waits:
                await sending
        (delivery,) = await receive(self._engine, self._queue, max=1, wait_ms=20_000)
        self.times.append(time.monotonic() - left_at)
        assert (delivery.message.body.decode(), delivery.receive_count) == (body, 1)
        self.seen["left"] += 1
        await ack(self._engine, self._queue, [delivery])


async def _pause(seconds: float) -> None:
    """Pauses for less than a timer of the loop can."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        await asyncio.sleep(0)


async def test_a_client_that_leaves_between_lease_and_answer_counts_for_nothing(
    planed: tuple[Engine, int], queue: str
) -> None:
    engine, port = planed
    leavers = Leavers(engine, port, queue)
    for number in range(LEAVERS):
        await leavers.one(number)
    times = sorted(leavers.times)
    back = returned(engine)
    at = {share: round(times[int(len(times) * share)] * 1000, 1) for share in (0.5, 0.9, 0.99)}
    print(f"{dict(leavers.seen)}, given back {back:g}, again after ms {at}, at most {times[-1] * 1000:.0f}")
    assert leavers.seen["left"] > LEAVERS / 10
    assert back > LEAVERS / 50, "that many were leased for who had gone"
    assert times[-1] < 20, "a lease is 30 s"
