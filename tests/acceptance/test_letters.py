"""A redrive of chosen dead letters while workers are killed: each has one outcome, and each that
was moved is once where that says. The real `leaseway up`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.test_bad_days import wait_for
from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.services import Up

LETTERS = 10_000
WITHIN_S = 180


@pytest.fixture
def up(leaseway_up: StartUp) -> Up:
    started = leaseway_up("--workers", "2")
    started.wait_ready()
    return started


def insist(client: Client, method: str, path: str, body: Any = None) -> Any:
    """Repeats a call until it is answered well; what it answers then."""
    end = time.monotonic() + WITHIN_S
    while True:
        status, answer = client.call(method, path, body)
        if 200 <= status < 300:
            return answer
        assert time.monotonic() < end, f"{method} {path}: {status} {answer}"
        time.sleep(0.2)


def pages(client: Client, path: str, field: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        page = insist(client, "GET", f"{path}?limit=1000{token}")
        found += page[field]
        if page["next"] is None:
            return found
        token = f"&next={page['next']}"


def kill_messages(endpoint: str, number: int) -> None:
    """Receives and kills so many messages."""
    with contextlib.closing(Client(endpoint)) as client:
        while number > 0:
            body = {"max": min(100, number), "wait_seconds": 5}
            got = insist(client, "POST", "/v1/queues/q/receive", body)["messages"]
            handles = [message["handle"] for message in got]
            if handles:
                results = insist(client, "POST", "/v1/queues/q/kill", {"handles": handles})["results"]
                assert {result["status"] for result in results} == {"ok"}
            number -= len(handles)


def kill_workers(up: Up, count: int) -> None:
    """SIGKILL of workers, all at once; returns when the others have taken their place."""
    before = [facade["pid"] for facade in up.run["facades"]]
    for pid in before[:count]:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: bool(up.workers) and not set(before[:count]) & set(up.workers), WITHIN_S)


@pytest.mark.long
def test_outcomes_of_a_redrive_add_up_by_message_whatever_is_killed(up: Up) -> None:
    with contextlib.closing(Client(up.endpoint)) as client:
        insist(client, "POST", "/v1/queues", {"name": "dead", "partitions": 2})
        policy = {"dead_letter_queue": "dead", "max_receive_count": 5}
        insist(client, "POST", "/v1/queues", {"name": "q", "partitions": 2, "redrive_policy": policy})
        for at in range(0, LETTERS, 100):
            messages = [{"body": f"{number}"} for number in range(at, at + 100)]
            insist(client, "POST", "/v1/queues/q/messages", {"messages": messages})
        with ThreadPoolExecutor(4) as killers:
            for done in [killers.submit(kill_messages, up.endpoint, LETTERS // 4) for _ in range(4)]:
                done.result()
        letters = {one["id"]: one["body"] for one in pages(client, "/v1/queues/dead/messages", "messages")}
        assert len(letters) == LETTERS
        # One stays behind, and one is settled by somebody else before the task comes to it.
        *chosen, _left = letters
        insist(client, "DELETE", f"/v1/queues/dead/messages/{chosen[-1]}")

        task = insist(client, "POST", "/v1/queues/dead/redrive", {"ids": chosen, "rate": 2000})
        path = f"/v1/tasks/{task['id']}"
        for moved, workers in ((500, 1), (2500, 2), (5000, 1)):
            wait_for(lambda moved=moved: insist(client, "GET", path)["moved"] >= moved, WITHIN_S)  # type: ignore[misc]
            kill_workers(up, workers)
        wait_for(lambda: insist(client, "GET", path)["status"] == "completed", WITHIN_S)

        task = insist(client, "GET", path)
        outcomes = pages(client, f"{path}/outcomes", "letters")
        assert Counter(one["id"] for one in outcomes) == Counter(chosen)
        assert Counter(one["outcome"] for one in outcomes) == {"moved": LETTERS - 2, "gone": 1}
        assert (task["moved"], task["failed"]) == (LETTERS - 2, 0)
        there = {
            one["id"]: one["body"]
            for one in pages(client, "/v1/queues/q/messages", "messages")
            if one["state"] != "settled"
        }
        assert there == {one["moved_id"]: letters[one["id"]] for one in outcomes if one["outcome"] == "moved"}
        assert len(set(there.values())) == LETTERS - 2
