"""Where a tag has a filter, messages with attributes are not sent by the plane: it does not know
which tags want them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import httpx
import pytest

from engine.engine import Engine
from schemas.filters import Condition, Filter
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, knows
from tests.integration.served import SqsConnection, served_by_plane

pytestmark = pytest.mark.usefixtures("library")

RED = {"colour": {"DataType": "String", "StringValue": "red"}}
FILTER = Filter([Condition("colour", "string", b"red")])
BLUE = {"colour": {"DataType": "String", "StringValue": "blue"}}


async def ways(port: int) -> Counter[str]:
    """How many requests went to Python, by reason; "" = the plane served them."""
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"http://127.0.0.1:{port}/metrics", timeout=30)).text
    rows = re.findall(r'^leaseway_plane_requests_total{reason="(.*?)",.*?} (\S+)$', text, re.MULTILINE)
    return Counter({reason: int(float(number)) for reason, number in rows})


async def sends_by_plane(engine: Engine, port: int, queue: str, client: SqsConnection) -> None:
    """Returns when the plane serves sends to a queue; the worker knows that it is alone, so the
    queue is not closed again.
    """
    await knows(engine, alone=True)

    async def does() -> bool:
        before = (await ways(port))[""]
        await client.call("SendMessage", queue, MessageBody="warm")
        return (await ways(port))[""] > before

    await eventually(does)


@pytest.mark.parametrize("filtered", [False, True], ids=["no filter", "a filter"])
async def test_attributes_leave_the_plane_where_a_tag_has_a_filter(
    make_engine: MakeEngine, queue: str, filtered: bool
) -> None:
    engine = await make_engine(plane="auto")
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await engine.queues.create_tag(BY, queue, "red", 0, FILTER if filtered else None, {})
    async with served_by_plane(engine) as port, SqsConnection(port) as client:
        await sends_by_plane(engine, port, queue, client)
        before = await ways(port)
        await client.call("SendMessage", queue, MessageBody="bare")
        single: list[dict[str, Any]] = [
            {"MessageBody": "r", "MessageAttributes": RED},
            {"MessageBody": "b", "MessageAttributes": BLUE},
        ]
        for fields in single:
            await client.call("SendMessage", queue, **fields)
        entries = [
            {"Id": "0", "MessageBody": "bare too"},
            {"Id": "1", "MessageBody": "r too", "MessageAttributes": RED},
        ]
        await client.call("SendMessageBatch", queue, Entries=entries)
        after = await ways(port)
    found = after - before
    assert found["attributes"] == (3 if filtered else 0), found
    assert found[""] == (1 if filtered else 4), "what has no attributes is the plane's in any case"
    reds = [body for body in await drain(engine, queue, "red", patience_ms=1_000) if body != "warm"]
    everything = ["bare", "r", "b", "bare too", "r too"]
    assert sorted(reds) == sorted(["r", "r too"] if filtered else everything)
    assert sorted(body for body in await drain(engine, queue, patience_ms=1_000) if body != "warm") == sorted(
        everything
    )
