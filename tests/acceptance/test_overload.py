"""More than the service can take: refused with a time to try again and nothing stored; other queues
go on; idle polls cost little.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from benchmarks.idle_polls import make_queues, measure
from engine.engine import Engine
from engine.errors import Overloaded
from engine.log import Appended
from engine.rules.linger import RECENT_S
from engine.send import sender
from engine.shapes import SendEntry
from facade.app import create_app
from facade.config import Settings
from facade.http.bounds.intake import Intake
from schemas.records.settings import QueueSettings
from tests.acceptance.test_bad_days import make_queue, wait_for
from tests.acceptance.traffic import Client
from tests.integration.conftest import MakeEngine, make_engine
from tests.integration.drive import BY, drain
from tests.services import Up

__all__ = ["make_engine"]

# Idle: 30 KiB a poll, all processes together (300 MiB for 10,000); the first ones pay for what the
# rest shares.
POLLS = 1_000
POLLS_MIB = 60


def p99_ms(client: Client, queue: str, count: int) -> float:
    """Of `count` sends, each received and acked at once: the 99th of 100 times of a whole cycle,
    ms.
    """
    times = []
    for n in range(count):
        began = time.perf_counter()
        assert client.call("POST", f"/v1/queues/{queue}/messages", {"messages": [{"body": str(n)}]})[0] == 200
        status, answer = client.call("POST", f"/v1/queues/{queue}/receive", {"wait_seconds": 2, "max": 1})
        assert status == 200 and [m["body"] for m in answer["messages"]] == [str(n)]
        assert client.call("POST", f"/v1/queues/{queue}/ack", {"handles": [answer["messages"][0]["handle"]]})[0] == 200
        times.append(time.perf_counter() - began)
    return sorted(times)[int(count * 0.99) - 1] * 1000


def flood(port: int, over: Any, sent: Any) -> None:
    """16 senders of batches of 100 x 1,000 bytes; counts messages in `sent`."""
    body = json.dumps({"messages": [{"body": "x" * 1000}] * 100}).encode()

    def one() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not over.is_set():
            connection.request("POST", "/v1/queues/flooded/messages", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (200, 503), answer.status
            with sent.get_lock():
                sent.value += 100 if answer.status == 200 else 0
        connection.close()

    with ThreadPoolExecutor(16) as threads:
        for done in [threads.submit(one) for _ in range(16)]:
            done.result()


def test_a_flood_on_one_queue_leaves_another_its_answers(up: Up, client: Client) -> None:
    make_queue(up, "flooded")
    make_queue(up, "calm")
    p99_ms(client, "calm", 100)
    quiet = p99_ms(client, "calm", 200)
    context = multiprocessing.get_context("spawn")
    over, sent = context.Event(), context.Value("q", 0)
    # A process of its own: threads here would take the time that is measured.
    other = context.Process(target=flood, args=(up.port, over, sent))
    other.start()
    try:
        wait_for(lambda: sent.value > 0)
        time.sleep(1)
        began, before = time.monotonic(), sent.value
        flooded = p99_ms(client, "calm", 200)
        beside = sent.value - before
        rate = beside / (time.monotonic() - began)
    finally:
        over.set()
        other.join()
    assert other.exitcode == 0
    assert beside > 5 * 200, "that is no flood beside the calm queue"
    print(
        f"p99 of send + receive + ack: quiet {quiet:.1f} ms, beside {rate:.0f} msg/s {flooded:.1f} ms "
        f"({flooded / quiet:.1f}x)"
    )
    # The bar is 2x on a quiet machine (docs/lab/harness.md has what was seen); this one may be
    # full. Without turns it was 147 ms.
    assert flooded < max(4 * quiet, 120)


def test_a_thousand_idle_polls_cost_little_and_are_woken(up: Up) -> None:
    make_queues(up, 10)
    found = asyncio.run(measure(up, POLLS, 10))
    print(found)
    assert isinstance(found["cost_mib_in_all"], float) and found["cost_mib_in_all"] < POLLS_MIB
    assert isinstance(found["woken_after_ms"], float) and found["woken_after_ms"] < 2000


async def test_sends_beyond_the_bound_are_refused_and_nothing_of_them_is_stored(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    monkeypatch.setattr(sender, "WAITING_SENDS", 20)
    bodies = [f"{n}" for n in range(200)]
    results = await asyncio.gather(
        *(engine.messages.send(BY, "q", [SendEntry(b.encode())]) for b in bodies), return_exceptions=True
    )
    taken = [b for b, result in zip(bodies, results, strict=True) if not isinstance(result, BaseException)]
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(taken) == 20 and all(isinstance(error, Overloaded) for error in refused)
    assert sorted(await drain(engine, "q", expect=len(taken), patience_ms=300)) == sorted(taken)
    monkeypatch.setattr(sender, "WAITING_SENDS", 2000)
    monkeypatch.setattr(sender, "WAITING_BYTES", 10_000)
    large = [engine.messages.send(BY, "q", [SendEntry(b"x" * 4_000)]) for _ in range(10)]
    assert sum(isinstance(result, Overloaded) for result in await asyncio.gather(*large, return_exceptions=True)) == 7
    assert len(await drain(engine, "q", expect=3, patience_ms=300)) == 3


async def test_a_queue_with_much_to_send_takes_small_turns_while_another_is_in_use(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine()
    for name in ("much", "other"):
        await engine.queues.create_queue(BY, name, QueueSettings())
    sizes: list[int] = []
    append_many = engine.log.append_many

    async def counted(topic: str, partition: int, values: Sequence[bytes]) -> list[Appended | Exception]:
        if topic.endswith(".much"):
            sizes.append(len(values))
        return await append_many(topic, partition, values)

    monkeypatch.setattr(engine.log, "append_many", counted)

    async def send_much() -> float:
        sizes.clear()
        began = time.monotonic()
        await asyncio.gather(*(engine.messages.send(BY, "much", [SendEntry(b"x")] * 20) for _ in range(40)))
        assert sum(sizes) == 800
        return time.monotonic() - began

    await asyncio.sleep(RECENT_S)
    await send_much()
    assert max(sizes) > 5 * sender.SHARED_RECORDS

    async def use_other() -> None:
        while True:
            await engine.messages.send(BY, "other", [SendEntry(b"x")])
            await asyncio.sleep(0.05)

    using = asyncio.create_task(use_other())
    await asyncio.sleep(0.1)
    await send_much()
    using.cancel()
    # The last send of a group may be the one that fills it.
    assert max(sizes) < sender.SHARED_RECORDS + 20
    monkeypatch.setattr(sender, "REST", 100.0)
    await engine.messages.send(BY, "other", [SendEntry(b"x")])
    took = await send_much()
    assert took > 0.5 * RECENT_S, "it did not rest"
    await asyncio.sleep(RECENT_S)
    await send_much()
    assert max(sizes) > 5 * sender.SHARED_RECORDS


async def test_each_dialect_says_in_its_own_words_when_to_try_again(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    async with over_http(engine) as client:
        monkeypatch.setattr(sender, "WAITING_SENDS", 0)
        native = await client.post("/v1/queues/q/messages", json={"messages": [{"body": "no"}]})
        assert (native.status_code, native.json()["code"], native.headers["retry-after"]) == (503, "overloaded", "1")
        target = {"x-amz-target": "AmazonSQS.SendMessage", "content-type": "application/x-amz-json-1.0"}
        sqs = await client.post("/", json={"QueueUrl": "http://x/000000000000/q", "MessageBody": "no"}, headers=target)
        assert (sqs.status_code, sqs.headers["retry-after"]) == (403, "1")
        assert sqs.json()["__type"] == "com.amazonaws.sqs#RequestThrottled"
        monkeypatch.setattr(sender, "WAITING_SENDS", 10)
        monkeypatch.setattr("engine.receive.waits.wait_lists.MAX_LONG_POLLS", 0)
        poll = await client.post("/v1/queues/q/receive", json={"wait_seconds": 1})
        assert (poll.status_code, poll.json()["code"], poll.headers["retry-after"]) == (503, "overloaded", "1")
    monkeypatch.undo()
    assert await drain(engine, "q", patience_ms=300) == []


def over_http(engine: Engine) -> httpx.AsyncClient:
    app = create_app(Settings(topic_prefix=engine.settings.topic_prefix), engine)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


async def test_an_intake_takes_so_many_requests_at_once() -> None:
    intake = Intake(held_requests=2)

    async def body() -> dict[str, object]:
        return {"type": "http.request", "body": b"{}"}

    first = await intake.read({}, body)
    await intake.read({}, body)
    with pytest.raises(Overloaded):
        await intake.read({}, body)
    intake.release(first)
    await intake.read({}, body)
    assert (intake.requests, intake.shares.held) == (2, 4)
