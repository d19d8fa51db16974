"""Every series that the files of deploy/monitoring name is found in scrapes of a running service:
two workers behind one port, after some traffic.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from facade.http.queue_metrics import EMPTY, RECEIVES, SENT_BYTES
from tests.monitoring import UP, expressions, rules, samples_of, selectors
from tests.services import Services
from tests.stack.serving import serving

ROOT = Path(__file__).parents[2]
WITHIN_S = 60.0
WORKERS = ("0", "1")
PLANE = "leaseway_plane_requests_total"  # there is none without the native library
# Counters that each worker keeps for itself.
OF_WORKERS = {*RECEIVES, SENT_BYTES}
RECORDED = {rule["record"] for rule in rules("cloudwatch.rules.yml")}


@pytest.fixture(scope="module")
def endpoint(stack: Services) -> Iterator[str]:
    """Two workers that share a port."""
    with serving(stack, "lwmonitored", "--workers", "2") as endpoint:
        yield endpoint


class Queue:
    """Requests of one queue, each over a connection of its own: either worker may take it."""

    def __init__(self, endpoint: str, name: str, **settings: Any) -> None:
        self._endpoint, self._name = endpoint, name
        self.call("POST", "/v1/queues", {"name": name, **settings})

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(method, self._endpoint + path, json=body, timeout=60)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def do(self, verb: str, **body: Any) -> Any:
        return self.call("POST", f"/v1/queues/{self._name}/{verb}", body)

    def send(self, count: int) -> None:
        self.do("messages", messages=[{"body": str(n)} for n in range(count)])

    def take(self, count: int) -> list[str]:
        """The handles of as many messages."""
        found: list[str] = []
        while len(found) < count:
            found += [one["handle"] for one in self.do("receive", max=count - len(found), wait_seconds=5)["messages"]]
        return found

    def delete(self) -> None:
        self.call("DELETE", f"/v1/queues/{self._name}")


def scrape(endpoint: str, path: str = "/metrics") -> str:
    """By a connection of its own."""
    return httpx.get(endpoint + path, timeout=30).text


def scrapes(endpoint: str) -> dict[str, str]:
    """What each worker shows."""
    found: dict[str, str] = {}
    end = time.monotonic() + WITHIN_S
    while len(found) < len(WORKERS):
        assert time.monotonic() < end, f"only {list(found)} answer"
        text = scrape(endpoint)
        (worker,) = {one["worker"] for one in samples_of([text])["leaseway_units_owned"]}
        found[worker] = text
    return found


def traffic(endpoint: str) -> None:
    """All that is counted: sent, received, acked, given back, received again, dead."""
    dead = Queue(endpoint, "orders.dead")
    orders = Queue(
        endpoint,
        "orders",
        lease_seconds=60,
        redrive_policy={"dead_letter_queue": "orders.dead", "max_receive_count": 2},
    )
    while not all(f'{EMPTY}{{queue="orders"' in text for text in scrapes(endpoint).values()):
        assert orders.do("receive", max=1, wait_seconds=1)["messages"] == []
    orders.send(20)
    handles = orders.take(4)
    orders.do("ack", handles=handles[:2])
    stale = httpx.post(f"{endpoint}/v1/queues/orders/ack", json={"handles": handles[:1]}, timeout=30)
    assert "stale" in stale.text or stale.status_code >= 400
    orders.do("release", handles=handles[2:])
    orders.do("release", handles=orders.take(4))
    orders.take(3)  # two have died now
    dead.send(1)
    for _ in range(10):  # the plane serves a caller whom it knows
        orders.send(1)
    aimless = Queue(endpoint, "aimless.dead")
    Queue(endpoint, "aimless", redrive_policy={"dead_letter_queue": "aimless.dead", "max_receive_count": 2})
    aimless.delete()  # an alarm: the policy of `aimless` moves nothing


def test_every_series_that_rules_and_dashboard_name_is_scraped(endpoint: str) -> None:
    traffic(endpoint)

    has_plane = httpx.get(f"{endpoint}/health", timeout=30).json()["plane"] == "on"
    without = {UP, *RECORDED, *(() if has_plane else (PLANE,))}
    left, end = expressions(), time.monotonic() + WITHIN_S
    while left:
        samples = samples_of([*scrapes(endpoint).values(), scrape(endpoint, "/metrics/queues")])
        left = {
            place: said
            for place in left
            for one in selectors(expressions()[place])
            if one.name not in without and (said := one.missing(samples))
        }
        assert time.monotonic() < end, left
        if left:
            time.sleep(1)

    # A series of a worker says whose it is; one of queues is no worker's, and the same at each.
    by_worker = scrapes(endpoint)
    assert sorted(by_worker) == list(WORKERS)
    of_queues = []
    for worker, text in by_worker.items():
        samples = samples_of([text])
        shared = {name for name in samples if name.startswith("leaseway_queue_")} - OF_WORKERS
        for name, found in samples.items():
            is_of_queues = name in shared or name == "leaseway_messages"
            assert {one.get("worker") for one in found} == ({None} if is_of_queues else {worker}), name
        of_queues.append(shared)
    assert of_queues[0] == of_queues[1]
