"""What is promised of move tasks: none lost, none twice, each to its own source, at the rate asked
for.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from tests.acceptance.fifo_bars import drain
from tests.acceptance.sqs_client import Sqs, in_threads
from tests.acceptance.traffic import Client
from tests.services import Up

SOURCES = 4
ARN = "arn:aws:sqs:us-east-1:000000000000:"


def _names(word: str, *, fifo: bool) -> tuple[str, list[str]]:
    end = ".fifo" if fifo else ""
    return f"{word}-dead{end}", [f"{word}-s{n}{end}" for n in range(SOURCES)]


def make_dead_letters(up: Up, word: str, messages: int, *, fifo: bool) -> float:
    """Sends `messages` to four queues and kills each (native API); returns when the dead-letter
    queue has them all, after how long.
    """
    dead, sources = _names(word, fifo=fifo)
    kind = {"FifoQueue": "true"} if fifo else {}
    with contextlib.closing(Sqs(up.endpoint)) as client:
        client.insist("CreateQueue", QueueName=dead, Attributes=kind)
        policy = json.dumps({"deadLetterTargetArn": ARN + dead, "maxReceiveCount": 1})
        for name in sources:
            client.insist("CreateQueue", QueueName=name, Attributes={**kind, "RedrivePolicy": policy})
    each = messages // SOURCES

    def work(number: int) -> None:
        name, at = sources[number % SOURCES], number // SOURCES
        with contextlib.closing(Client(up.endpoint)) as client:
            bodies = [f"{name}/{n}" for n in range(at, each, 2)]
            for start in range(0, len(bodies), 100):
                # A group for each tenth message: dead letters of a group are moved one after the
                # other.
                rows = [{"body": body, **_fifo_ids(body, fifo=fifo)} for body in bodies[start : start + 100]]
                status, answer = client.call("POST", f"/v1/queues/{name}/messages", {"messages": rows})
                assert status == 200, answer
            killed = 0
            while killed < len(bodies):
                status, answer = client.call(
                    "POST", f"/v1/queues/{name}/receive", {"max": 100, "wait_seconds": 2, "lease_seconds": 600}
                )
                handles = [message["handle"] for message in answer["messages"]]
                if not handles:
                    break
                status, answer = client.call("POST", f"/v1/queues/{name}/kill", {"handles": handles}, 300)
                assert status == 200 and {r["status"] for r in answer["results"]} == {"ok"}, answer
                killed += len(handles)

    took = in_threads(SOURCES * 2, work)
    with contextlib.closing(Sqs(up.endpoint)) as client:
        _wait_ready(client, client.url(dead), messages)
    return took


def _fifo_ids(body: str, *, fifo: bool) -> dict[str, str]:
    return {"group": f"g{int(body.rpartition('/')[2]) % 100}", "dedup_id": body} if fifo else {}


def _wait_ready(client: Sqs, url: str, messages: int) -> None:
    for _ in range(600):
        found = client.insist("GetQueueAttributes", QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])[
            "Attributes"
        ]
        # More: a slow move was made twice. The second copy counts until the window comes to it, and
        # must never be seen.
        if int(found["ApproximateNumberOfMessages"]) >= messages:
            return
        time.sleep(0.1)
    raise AssertionError(f"{found} in {url}, expected {messages}")


def move(up: Up, word: str, messages: int, rate: int | None, *, fifo: bool, within_s: float) -> dict[str, Any]:
    """Moves the dead letters back; figures of the task, and what is in the sources and in the
    dead-letter queue then.
    """
    dead, sources = _names(word, fifo=fifo)
    with contextlib.closing(Sqs(up.endpoint)) as client:
        asked = {} if rate is None else {"MaxNumberOfMessagesPerSecond": rate}
        began = time.monotonic()
        client.insist("StartMessageMoveTask", SourceArn=ARN + dead, **asked)
        task: dict[str, Any] = {"Status": "RUNNING"}
        while task["Status"] == "RUNNING" and time.monotonic() - began < within_s:
            time.sleep(0.1)
            (task,) = client.insist("ListMessageMoveTasks", SourceArn=ARN + dead)["Results"]
        took = time.monotonic() - began
        each = messages // SOURCES
        seen = [drain(up, client.url(name), each, quiet_s=1) for name in sources]
        left = drain(up, client.url(dead), 0, threads=1, quiet_s=1).total()
    expected = [{f"{name}/{n}" for n in range(each)} for name in sources]
    return {
        "messages": messages,
        "asked_rate": rate,
        "status": task["Status"],
        "moved": task["ApproximateNumberOfMessagesMoved"],
        "rate": round(messages / took),
        "seconds": round(took, 1),
        "lost": sum(len(mine - found.keys()) for mine, found in zip(expected, seen, strict=True)),
        "twice": sum(count - 1 for found in seen for count in found.values()),
        "strangers": sum(len(found.keys() - mine) for mine, found in zip(expected, seen, strict=True)),
        "left_behind": left,
    }
