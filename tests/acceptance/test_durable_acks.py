"""Acks that the plane serves in a queue with `durable_acks`: what was answered is acked for ever,
whatever ends right after the answer.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.acceptance.test_closing import open_in_plane, served_by_plane
from tests.acceptance.test_failpoints import WITHIN_S, Service
from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.stopping import stand_still

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("library")]

ROUNDS = 4
MESSAGES = 6
# A lease that ends before the test looks, so that a forgotten ack shows.
LEASE_S = 5


@pytest.fixture(scope="module")
def service(leaseway_up_module: StartUp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    up = leaseway_up_module("--workers", "1", environment={"LEASEWAY_PLANE": "auto"})
    up.wait_ready()
    started = Service(up, Path(tmp_path_factory.mktemp("marks")))
    yield started
    started.client.close()


def leased(client: Client, queue: str, number: int) -> dict[str, str]:
    """Sends so many messages to a queue, and returns the handle of each body."""
    path, handles = f"/v1/queues/{queue}", dict[str, str]()
    bodies = [f"{time.monotonic_ns()}-{n}" for n in range(number)]
    assert client.call("POST", f"{path}/messages", {"messages": [{"body": body} for body in bodies]})[0] == 200
    end = time.monotonic() + WITHIN_S
    while len(handles) < number:
        status, got = client.call("POST", f"{path}/receive", {"max": 10, "wait_seconds": 5, "lease_seconds": LEASE_S})
        assert status == 200 and time.monotonic() < end, got
        handles.update((message["body"], message["handle"]) for message in got["messages"])
    return handles


def begun_by_plane(client: Client) -> float:
    """Returns how many requests the plane has begun that ended with an error of Python's."""
    status, text = client.text("GET", "/metrics")
    assert status == 200
    return sum(
        map(float, re.findall(r'^leaseway_plane_requests_total{.*reason="failed".*} (\S+)$', text, re.MULTILINE))
    )


def kill_worker(service: Service) -> None:
    os.kill(service.up.run["facades"][0]["pid"], signal.SIGKILL)


def wipe_redis(service: Service) -> None:
    with redis.Redis.from_url(service.up.run["redis"]["url"]) as client:
        client.flushall()


@pytest.mark.parametrize("lose", [wipe_redis, kill_worker], ids=lambda lose: lose.__name__)
def test_what_the_plane_answered_as_acked_never_comes_again(service: Service, lose: Callable[[Service], None]) -> None:
    acked, kept, repeated = dict[str, set[str]](), dict[str, str](), dict[str, str]()
    for number in range(ROUNDS):
        queue = f"durable-{lose.__name__.replace('_', '-')}-{number}"
        service.create(queue, durable_acks=True)
        client = Client(service.up.endpoint)
        open_in_plane(client, queue)
        handles = leased(client, queue, MESSAGES + 1)
        kept[queue], _ = handles.popitem()
        acked[queue] = set(handles)
        before = served_by_plane(client)
        *first, last = handles.values()
        repeated[queue] = last
        for handle in first:
            status, answer = client.call("POST", f"/v1/queues/{queue}/ack", {"handles": [handle]})
            assert (status, answer["results"][0]["status"]) == (200, "ok"), answer
        assert served_by_plane(client) - before == len(first), "the plane served each"
        status, answer = client.call("POST", f"/v1/queues/{queue}/ack", {"handles": [last]})
        lose(service)
        assert (status, answer["results"][0]["status"]) == (200, "ok"), answer
        client.close()
        service.client.close()
    time.sleep(LEASE_S)
    for queue, body in kept.items():
        # The journal has it: nobody waits for another entry.
        answer = service.insist("POST", f"/v1/queues/{queue}/ack", {"handles": [repeated[queue]]})
        assert answer["results"][0]["status"] == "stale", answer
        found = service.take_all(queue, 1, expect=1)
        assert not found.keys() & acked[queue], "an ack was answered, and is forgotten"
        assert found.keys() == {body}


def test_an_ack_is_not_answered_as_done_while_the_journal_can_not_have_it(service: Service) -> None:
    service.create("durable-stopped", durable_acks=True)
    client = Client(service.up.endpoint)
    open_in_plane(client, "durable-stopped")
    (handle,) = leased(client, "durable-stopped", 1).values()
    kafka, before = int(service.up.run["kafka"]["pid"]), begun_by_plane(client)
    stand_still(kafka)
    try:
        while not all(" T " in task.read_text() for task in Path(f"/proc/{kafka}/task").glob("*/stat")):
            time.sleep(0.01)  # a thread that still runs may take the entry
        for _ in ("the ack", "the same again"):
            status, answer = client.call("POST", "/v1/queues/durable-stopped/ack", {"handles": [handle]})
            assert (status, answer.get("code")) == (503, "log_unavailable"), answer
    finally:
        os.kill(kafka, signal.SIGCONT)
    assert begun_by_plane(client) - before == 2
    status, answer = client.call("POST", "/v1/queues/durable-stopped/ack", {"handles": [handle]})
    assert (status, answer["results"][0]["status"]) == (200, "stale"), answer
    client.close()
