"""What the plane has counted is in the meters whenever somebody looks at them: at the end of a
minute, and when the worker stops; and so is who has asked.
"""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.meters.meters import NO_TAG
from schemas.records.settings import QueueSettings
from schemas.vocabulary import Operation
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, eventually, knows
from tests.integration.served import SqsConnection, served_by_plane

pytestmark = pytest.mark.usefixtures("library")

ROUNDS = 20


def taken(engine: Engine, queue: str) -> dict[tuple[int, Operation], tuple[int, int]]:
    """Takes the requests and messages of a queue that were not taken yet, by tag and operation."""
    known = engine.catalog.queues[queue]
    cells = engine.parts.base.meters.take().items()
    return {key[1:]: (cell.requests, cell.messages) for key, cell in cells if key[0] == known.incarnation}


def asked(engine: Engine, queue: str) -> dict[tuple[str, str, str], int]:
    """Takes the requests of a queue that were not taken yet, by operation, verb and outcome."""
    rows = [row for row in engine.parts.base.meters.requests.take() if row.queue == queue]
    assert {(row.principal, row.dialect) for row in rows} <= {("anonymous", "sqs")}
    return {(row.operation, row.verb, row.outcome): row.requests for row in rows}


async def test_no_request_is_left_to_the_next_minute_or_lost_at_a_stop(make_engine: MakeEngine, queue: str) -> None:
    engine = await make_engine(plane="auto")
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    tag = engine.catalog.queues[queue].tags[0].id

    async def waits() -> bool:
        return engine.plane.waiting()[0] == 1

    async with served_by_plane(engine) as port, SqsConnection(port) as client:
        await knows(engine, alone=True)  # until then it may be closed again

        async def is_served() -> bool:
            await client.call("SendMessage", queue, MessageBody="x")
            got = await client.call("ReceiveMessage", queue, WaitTimeSeconds=5)
            await client.call("DeleteMessage", queue, ReceiptHandle=got["Messages"][0]["ReceiptHandle"])
            return any(engine.plane.is_open(number) for number in range(1, 10))

        await eventually(is_served)
        taken(engine, queue), asked(engine, queue)
        for _ in range(3):  # the plane is asked twice a second by itself: here sooner
            for n in range(ROUNDS):
                await client.call("SendMessage", queue, MessageBody=f"{n}")
                got = (await client.call("ReceiveMessage", queue, WaitTimeSeconds=5))["Messages"]
                await client.call("DeleteMessage", queue, ReceiptHandle=got[0]["ReceiptHandle"])
            assert taken(engine, queue) == {
                (NO_TAG, Operation.SINGLE_SEND): (ROUNDS, ROUNDS),
                (tag, Operation.LONG_RECEIVE): (ROUNDS, ROUNDS),
                (tag, Operation.DELETE): (ROUNDS, ROUNDS),
            }
            assert asked(engine, queue) == {
                ("sqs.SendMessage", "send", "ok"): ROUNDS,
                ("sqs.ReceiveMessage", "receive", "ok"): ROUNDS,
                ("sqs.DeleteMessage", "ack", "ok"): ROUNDS,
            }
        async with SqsConnection(port) as leaver:
            leaver.ask("ReceiveMessage", queue, WaitTimeSeconds=20)
            await eventually(waits)

        async def has_left() -> bool:
            return engine.plane.waiting()[0] == 0

        await eventually(has_left)
        client.ask("ReceiveMessage", queue, WaitTimeSeconds=20)
        await eventually(waits)
        await engine.plane.stop()
        assert "Messages" not in await client.hear()
        assert taken(engine, queue) == {(tag, Operation.LONG_RECEIVE): (1, 0)}, "who waited at the stop is counted"
        receives = {("sqs.ReceiveMessage", "receive", "gone"): 1, ("sqs.ReceiveMessage", "receive", "ok"): 1}
        assert asked(engine, queue) == receives, "and who has left"
