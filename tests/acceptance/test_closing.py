"""SIGKILL of a worker between `close(queue)` of its plane and the change for which the queue was
closed: nothing is lost, the change has happened as a whole or not at all, and the queue is served
again.

The same point with a step that raises: tests/integration/test_failpoints.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.test_failpoints import WITHIN_S, Service
from tests.acceptance.traffic import Client
from tests.conftest import StartUp

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("library")]

POINT = "change.closed"
LEASE_S = 5
# What the plane has to serve of a queue before it is changed.
SERVED = 3
CHANGES: dict[str, tuple[str, str, Any]] = {
    "setting": ("PATCH", "", {"lease_seconds": 7}),
    "quota": ("PATCH", "", {"daily_bytes": 1_000_000_000}),
    "policy": ("PUT", "/redrive-policy", {"dead_letter_queue": "letters", "max_receive_count": 9}),
    "right": ("PUT", "/grants/bob", {"level": "receive"}),
    "pause": ("POST", "/pause", {"reason": "late"}),
    "purge": ("POST", "/purge", None),
    "delete": ("DELETE", "", None),
}


@pytest.fixture(scope="module")
def service(leaseway_up_module: StartUp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    marks = tmp_path_factory.mktemp("marks")
    points = f"{POINT}=kill@{marks / POINT}"
    up = leaseway_up_module("--workers", "2", environment={"LEASEWAY_FAILPOINTS": points, "LEASEWAY_PLANE": "auto"})
    up.wait_ready()
    started = Service(up, marks)
    started.create("letters")
    yield started
    started.client.close()


def served_by_plane(client: Client) -> float:
    """How many requests the plane of the worker at the other end of a connection has served."""
    status, text = client.text("GET", "/metrics")
    assert status == 200
    return sum(
        map(
            float,
            re.findall(r'^leaseway_plane_requests_total{.*way="plane"(?:,worker="\d+")?} (\S+)$', text, re.MULTILINE),
        )
    )


def open_in_plane(client: Client, queue: str) -> None:
    """Sends, receives and acks by one connection until the plane of its worker does it."""
    end, path = time.monotonic() + WITHIN_S, f"/v1/queues/{queue}"
    while True:
        before = served_by_plane(client)
        assert client.call("POST", f"{path}/messages", {"messages": [{"body": "warm"}]})[0] == 200
        status, found = client.call("POST", f"{path}/receive", {"max": 1, "wait_seconds": 5})
        assert status == 200 and [message["body"] for message in found["messages"]] == ["warm"]
        assert client.call("POST", f"{path}/ack", {"handles": [found["messages"][0]["handle"]]})[0] == 200
        if served_by_plane(client) - before >= SERVED:
            return
        assert time.monotonic() < end, "the plane does not serve the queue"


def settings(service: Service, queue: str) -> dict[str, Any]:
    """What a change could have changed."""
    found = service.insist("GET", f"/v1/queues/{queue}", ok=(200, 404))
    grants = service.insist("GET", f"/v1/queues/{queue}/grants", ok=(200, 404))
    if "tags" in found:
        found["tags"] = [tag["name"] for tag in found["tags"]]
        found = {
            name: value for name, value in found.items() if name not in ("backlog", "modified_at_ms", "purged_at_ms")
        }
    return {"queue": found, "grants": grants}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_worker_killed_when_it_has_closed_a_queue_has_changed_nothing(service: Service, kind: str) -> None:
    method, path, body = CHANGES[kind]
    queue = f"closed-{kind}"
    service.create(queue)
    client = Client(service.up.endpoint)
    open_in_plane(client, queue)
    bodies = [f"{kind}{n}" for n in range(6)]
    assert (
        client.call("POST", f"/v1/queues/{queue}/messages", {"messages": [{"body": text} for text in bodies]})[0] == 200
    )
    status, got = client.call(
        "POST", f"/v1/queues/{queue}/receive", {"max": 2, "wait_seconds": 5, "lease_seconds": LEASE_S}
    )
    assert status == 200
    acked, held = got["messages"][0], got["messages"][1:]
    assert client.call("POST", f"/v1/queues/{queue}/ack", {"handles": [acked["handle"]]})[0] == 200
    before = settings(service, queue)
    time.sleep(0.5)  # the ack is in the journal, whatever becomes of its worker
    service.arm(POINT)
    status, answer = client.call(method, f"/v1/queues/{queue}{path}", body)
    client.close()
    assert not (service.marks / POINT).exists() and status == 0, f"the worker was not killed there: {status} {answer}"
    service.client.close()
    assert settings(service, queue) == before, "the change has happened in part"
    open_after = set(bodies) - {acked["body"]}
    if kind not in ("purge", "delete"):
        found = service.take_all(queue, 2, expect=len(open_after))
        # What was held when the worker was killed is leased until its lease ends.
        assert set(found) == open_after, f"{held}"
    assert status == 0
    service.insist(method, f"/v1/queues/{queue}{path}", body, (200, 204))
    if kind == "delete":
        service.create(queue)
    else:
        assert kind == "purge" or settings(service, queue) != before
    again = Client(service.up.endpoint)
    if kind == "pause":
        service.insist("POST", f"/v1/queues/{queue}/resume", None, (204,))
    if kind in ("purge", "delete"):
        service.send(queue, ["new"])
        assert set(service.take_all(queue, 2, expect=1)) == {"new"}
    open_in_plane(again, queue)
    again.close()
