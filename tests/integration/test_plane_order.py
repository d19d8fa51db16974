"""Messages come in their order, whichever of the plane and Python has sent them and receives them.

The real library serves the engine over sockets; Kafka and Redis are real too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.engine import Engine
from engine.rules.placement import RUN
from tests.integration.conftest import MakeEngine
from tests.integration.drive import ack, receive, send
from tests.integration.served import SqsConnection, served_queue

pytestmark = pytest.mark.usefixtures("library")
PARTITIONS = 4


@pytest.fixture
async def planed(make_engine: MakeEngine, queue: str) -> AsyncIterator[tuple[Engine, SqsConnection]]:
    """An engine with a queue that its plane serves, and a client of the plane."""
    engine = await make_engine(plane="auto")
    async with served_queue(engine, queue, PARTITIONS) as port, SqsConnection(port) as client:
        yield engine, client


@pytest.mark.parametrize("wait_ms", [0, 1000])
async def test_python_receives_what_the_plane_has_sent_in_order(
    planed: tuple[Engine, SqsConnection], queue: str, wait_ms: int
) -> None:
    """Python has seen that every partition was empty; what filled them since was sent by the plane,
    but for the last message, which it has sent itself.
    """
    engine, client = planed
    assert await receive(engine, queue, max=10, wait_ms=wait_ms) == []
    texts = [str(number) for number in range(PARTITIONS * RUN)]
    for place in range(0, len(texts), 10):
        some = texts[place : place + 10]
        await client.call("SendMessageBatch", queue, Entries=[{"Id": text, "MessageBody": text} for text in some])
    await send(engine, queue, "last")
    found: list[str] = []
    while deliveries := await receive(engine, queue, max=7, wait_ms=wait_ms):
        found += [one.message.body.decode() for one in deliveries]
        await ack(engine, queue, deliveries)
    assert found == [*texts, "last"]
