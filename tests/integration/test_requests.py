"""Who has asked for what, as the requests topic tells it, is what the clients have noted: two
principals in two dialects, what is refused, strangers, clients that go, by Python and by the plane.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from engine.engine import Engine
from schemas.records.watching import RequestsRecord
from schemas.topics import requests_topic
from schemas.wire import decode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, eventually, knows
from tests.integration.served import served_by_plane

pytestmark = pytest.mark.usefixtures("library")

# Principal, queue, operation, verb, dialect, outcome.
Row = tuple[str, str, str, str, str, str]
ROUNDS = 20
SECRET = "admin's secret"


class Book:
    """What clients have asked for, and what they were told."""

    def __init__(self) -> None:
        self.rows: Counter[Row] = Counter()

    @contextlib.contextmanager
    def asks(self, principal: str, queue: str, operation: str, verb: str, outcome: str = "ok") -> Iterator[None]:
        """Notes a request, which is refused unless its outcome is ok."""
        dialect = "sqs" if operation.startswith("sqs.") else "native"
        self.rows[principal, queue, operation, verb, dialect, outcome] += 1
        if outcome == "ok":
            yield
            return
        with pytest.raises((ClientError, httpx.HTTPStatusError)):
            yield


@contextlib.contextmanager
def sqs(port: int, key_id: str, secret: str) -> Iterator[Any]:
    url = f"http://127.0.0.1:{port}"
    keys = {"aws_access_key_id": key_id, "aws_secret_access_key": secret, "region_name": "us-east-1"}
    client = boto3.client("sqs", endpoint_url=url, config=Config(retries={"total_max_attempts": 1}), **keys)
    with contextlib.closing(client):
        yield client


@contextlib.contextmanager
def native(port: int, key_id: str = "", secret: str = "") -> Iterator[Callable[..., Any]]:
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}/v1/queues/", auth=(key_id, secret) if key_id else None)

    def post(path: str, **body: Any) -> Any:
        return client.post(path, json=body).raise_for_status().json()

    with client:
        yield post


def by_sqs(client: Any, book: Book, url: str, queue: str) -> None:
    for n in range(ROUNDS):
        with book.asks("alice", queue, "sqs.SendMessage", "send"):
            client.send_message(QueueUrl=url, MessageBody=f"{n}")
        with book.asks("alice", queue, "sqs.ReceiveMessage", "receive"):
            [got] = client.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
        with book.asks("alice", queue, "sqs.DeleteMessage", "ack"):
            client.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
    with book.asks("alice", "", "sqs.SendMessage", "", "MissingParameter"):
        client.send_message(QueueUrl=url, MessageBody="")
    with book.asks("alice", "", "sqs.GetQueueUrl", "get_queue", "queue_not_found"):
        client.get_queue_url(QueueName="made-up")


def by_native(port: int, secret: str, book: Book, queue: str) -> None:
    message = {"messages": [{"body": "x"}]}
    with native(port, "bob", secret) as post:
        with book.asks("bob", queue, "receive", "receive"):
            post(f"{queue}/receive", wait_seconds=0)
        for _ in range(3):
            with book.asks("bob", queue, "send", "send", "not_authorised"):
                post(f"{queue}/messages", **message)
        for n in range(3):
            with book.asks("bob", "", "send", "send", "queue_not_found"):
                post(f"made-up-{n}/messages", **message)
    for who in ((), ("bob", "wrong"), ("nobody", "x")):
        with native(port, *who) as post, book.asks("", "", "send", "", "not_authenticated"):
            post(f"{queue}/messages", **message)


async def leaves(engine: Engine, port: int, secret: str, book: Book, queue: str) -> None:
    """A client that waits for messages, and goes."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", auth=("bob", secret), timeout=30) as client:
        waiting = asyncio.ensure_future(client.post(f"/v1/queues/{queue}/receive", json={"wait_seconds": 20}))

        async def waits() -> bool:
            return engine.counts()["long_polls_waiting"] == 1

        await eventually(waits)
        waiting.cancel()
    book.rows["bob", queue, "receive", "receive", "native", "gone"] += 1

    async def has_gone() -> bool:
        return engine.counts()["long_polls_waiting"] == 0

    await eventually(has_gone)


async def told(engine: Engine) -> Counter[Row]:
    """What the topic has, a record that it has twice once."""
    topic, offset, numbers, rows = (
        requests_topic(engine.settings.topic_prefix),
        0,
        set[tuple[str, int]](),
        Counter[Row](),
    )
    while True:
        chunk = await engine.log.fetch(topic, 0, offset, 1_000, 1_000_000)
        for record in chunk.records:
            found = cast(RequestsRecord, decode(record.value or b""))
            if (found.worker, found.number) in numbers:
                continue
            numbers.add((found.worker, found.number))
            for row in found.rows:
                assert 0 < row.max_us <= row.sum_us
                rows[row.principal, row.queue, row.operation, row.verb, row.dialect, row.outcome] += row.requests
        offset = chunk.next_offset
        if chunk.at_end:
            return rows


async def test_the_topic_has_what_the_clients_have_noted(make_engine: MakeEngine, queue: str) -> None:
    secured = {"auth": "required", "admin_key_secret": SECRET, "default_partitions": 1}
    other = await make_engine(**secured)
    engine = await make_engine(plane="auto", meter_minute_s=1, **secured)
    keys = {name: (await other.callers.create_key(BY, name, name, "member"))[1] for name in ("alice", "bob")}
    await other.stop()
    await engine.catalog.sync()
    book = Book()
    async with served_by_plane(engine) as port, contextlib.AsyncExitStack() as opened:
        await knows(engine, alone=True)
        client = opened.enter_context(sqs(port, "alice", keys["alice"]))
        with book.asks("alice", queue, "sqs.CreateQueue", "create_queue"):
            url = (await asyncio.to_thread(client.create_queue, QueueName=queue))["QueueUrl"]
        await engine.callers.grant(BY, queue, "bob", "receive")
        await asyncio.to_thread(by_sqs, client, book, url, queue)
        await asyncio.to_thread(by_native, port, keys["bob"], book, queue)
        stranger = opened.enter_context(sqs(port, "alice", "wrong"))
        with book.asks("", "", "sqs.SendMessage", "", "SignatureDoesNotMatch"):
            await asyncio.to_thread(stranger.send_message, QueueUrl=url, MessageBody="x")
        await leaves(engine, port, keys["bob"], book, queue)
        # Who has asked is known of those too that were answered before rights changed.
        await engine.callers.delete_key(BY, "bob")
        await asyncio.to_thread(by_sqs, client, book, url, queue)
        text = (await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{port}/metrics")).text
        book.rows["", "", "metrics", "", "native", "ok"] += 1
        [by_plane] = [line for line in text.splitlines() if line.startswith('leaseway_plane_requests_total{reason=""')]
    await engine.parts.watching.reporter.stop()
    assert await told(engine) == book.rows
    assert float(by_plane.split()[-1]) > ROUNDS, "the plane has served some of them"
