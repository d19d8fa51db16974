"""The native API says why a handle is good for nothing, a metric counts it and the log has it: the
same of a service with a plane and of one without.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Struct

from schemas.vocabulary import StaleReason
from tests.conformance.beside import beside
from tests.conformance.cases.mns import MnsClient
from tests.conformance.cases.native import NativeClient
from tests.conformance.conftest import Running
from tests.services import Up

pytestmark = [
    pytest.mark.skipif("SQS_ENDPOINT" in os.environ, reason="other services are started beside ours"),
    pytest.mark.skipif(os.environ.get("LEASEWAY_NATIVE") == "off", reason="the plane is a thread of the library"),
    pytest.mark.usefixtures("library"),
]
WAYS = {"plane": "auto", "python": "off"}
_numbers = itertools.count()


class Way(Struct):
    """A service that writes down each stale handle."""

    endpoint: str
    log: Path

    def noted(self) -> Counter[str]:
        """How many handles the metric has, by reason."""
        text = httpx.get(f"{self.endpoint}/metrics").text
        rows = re.findall(r'^leaseway_stale_handles_total{reason="([^"]*)"} (\S+)$', text, re.MULTILINE)
        return Counter({reason: int(float(number)) for reason, number in rows})

    def lines(self, queue: str) -> list[tuple[int, str]]:
        """Offset and reason of each line about a queue."""
        found = re.findall(
            rf"DEBUG .* action=stale queue={queue} partition=\d+ offset=(\d+) reason=(\w+)(?: request_id=\S+)?$",
            self.log.read_text(),
            re.M,
        )
        return [(int(offset), reason) for offset, reason in found]


@pytest.fixture(scope="module")
def ways(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Way]]:
    """A service with a plane, and one whose requests Python serves."""
    with contextlib.ExitStack() as stack:
        made = []
        for name, plane in WAYS.items():
            service = contextlib.contextmanager(beside)(
                up, f"stale-{name}", {"PLANE": plane, "LOG_LEVEL": "debug"}, tmp_path_factory, "open"
            )
            endpoint = stack.enter_context(service).endpoint
            assert (httpx.get(f"{endpoint}/health").json()["plane"] == "on") == (name == "plane")
            (log,) = tmp_path_factory.getbasetemp().glob(f"stale-{name}[0-9]*/log")
            made.append(Way(endpoint, log))
        yield made


class Act:
    """A queue with one message, whose handle somebody tries to use."""

    def __init__(self, way: Way, queue: str) -> None:
        self.client = NativeClient(way.endpoint)
        self.mns = MnsClient(way.endpoint)
        self.queue = queue

    def create(self, **settings: Any) -> None:
        """One partition, so that offsets are the same in each service."""
        self.client.ask("POST", "/queues", {"name": self.queue, "partitions": 1, **settings})

    def lease(self, lease_s: int = 60, **more: str) -> str:
        (got,) = self.client.receive(self.queue, 1, wait_s=5, lease_s=lease_s, **more)
        return got.handle

    def sent(self, lease_s: int = 60) -> str:
        """The handle of a new message."""
        self.client.send(self.queue, "x")
        return self.lease(lease_s)

    def results(self, handle: str) -> list[dict[str, Any]]:
        """What each verb answers."""
        asked = {
            "ack": {"handles": [handle]},
            "extend": {"entries": [{"handle": handle, "lease_seconds": 30}]},
            "release": {"handles": [handle]},
        }
        answers = [
            self.client.ask("POST", f"/queues/{self.queue}/{verb}", body)["results"] for verb, body in asked.items()
        ]
        return [one for (one,) in answers]

    def close(self) -> None:
        self.client.close()
        self.mns.close()


def superseded(act: Act) -> str:
    act.create()
    handle = act.sent(1)
    time.sleep(1.1)
    act.lease()
    return handle


def released(act: Act) -> str:
    # Of a queue whose messages may die nothing is leased ahead of receives.
    act.client.create(f"{act.queue}-dead")
    act.create(redrive_policy={"dead_letter_queue": f"{act.queue}-dead", "max_receive_count": 5})
    handle = act.sent()
    act.client.release(act.queue, handle)
    return handle


def settled(act: Act) -> str:
    act.create()
    handle = act.sent()
    act.client.ack(act.queue, handle)
    return handle


def dead(act: Act) -> str:
    """Killed, and in the dead-letter queue."""
    act.client.create(f"{act.queue}-dead")
    act.create(redrive_policy={"dead_letter_queue": f"{act.queue}-dead", "max_receive_count": 5})
    handle = act.sent()
    assert act.client.ask("POST", f"/queues/{act.queue}/kill", {"handles": [handle]})["results"][0]["status"] == "ok"
    return handle


def purged(act: Act) -> str:
    act.create()
    handle = act.sent()
    act.client.purge(act.queue)
    return handle


def parked(act: Act) -> str:
    act.create(fifo=True, on_exhausted="park", max_receive_count=1)
    act.client.send(act.queue, "x", group="g")
    handle = act.lease(1)
    time.sleep(1.1)
    assert act.client.receive(act.queue, wait_s=1) == []
    return handle


def used(act: Act) -> str:
    """MNS gives handles for one use."""
    act.create()
    act.client.send(act.queue, "x")
    (got,) = act.mns.receive(act.queue, wait_s=5)
    act.mns.extend(act.queue, got.handle, 60)
    return got.handle


def tag_gone(act: Act) -> str:
    act.create()
    act.client.create_tag(act.queue, "t")
    act.client.send(act.queue, "x")
    handle = act.lease(tag="t")
    act.client.delete_tag(act.queue, "t")
    return handle


def queue_remade(act: Act) -> str:
    handle = settled(act)
    act.client.delete(act.queue)
    act.create()
    return handle


CASES: dict[Callable[[Act], str], StaleReason] = {
    superseded: StaleReason.SUPERSEDED,
    released: StaleReason.RELEASED,
    settled: StaleReason.SETTLED,
    dead: StaleReason.SETTLED,
    purged: StaleReason.SETTLED,
    parked: StaleReason.PARKED,
    used: StaleReason.USED,
    tag_gone: StaleReason.TAG_GONE,
    queue_remade: StaleReason.QUEUE_REMADE,
}


@pytest.mark.parametrize("prepare", CASES, ids=[prepare.__name__ for prepare in CASES])
def test_a_stale_handle_says_why(ways: list[Way], prepare: Callable[[Act], str]) -> None:
    reason, queue = CASES[prepare].value, f"stale-{prepare.__name__}"
    for way in ways:
        act, before = Act(way, queue), way.noted()
        handle = prepare(act)
        assert act.results(handle) == [{"handle": handle, "status": "stale", "reason": reason}] * 3
        act.close()
        end = time.monotonic() + 10
        while (since := way.noted() - before) != {reason: 3} or way.lines(queue) != [(0, reason)] * 3:
            assert time.monotonic() < end, (since, way.lines(queue))
            time.sleep(0.05)


def test_a_lease_that_has_run_out_has_expired_where_that_does_not_count(ways: list[Way]) -> None:
    queue = "stale-expired"
    for way in ways:
        act, before = Act(way, queue), way.noted()
        act.create()
        act.client.send(queue, "x")
        (got,) = act.mns.receive(queue, wait_s=5, lease_s=1)
        time.sleep(1.1)
        with contextlib.suppress(Exception):
            act.mns.ack(queue, got.handle)
        assert way.noted() - before == {"expired": 1}
        assert way.lines(queue) == [(0, "expired")]
        act.close()
