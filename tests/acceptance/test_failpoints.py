"""SIGKILL of a worker at each failpoint, in one `leaseway up` with three workers that are started
again.

At rest: each dead letter once, each answered send delivered, nothing acked comes again, creations
and deletions can be finished. The same points with a step that raises:
tests/integration/test_failpoints.py.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from engine.move.tasks.outcomes import PAGE
from runtime.failpoints import POINTS
from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.services import Up

MESSAGES = 10
ACKED = 6
STATES = ("ready", "delayed", "leased", "stored")
OWN_POINTS = ("move.appended", "move.before_settle")
# Over when the test looks, so that a forgotten ack would show.
LEASE_S = 10
WITHIN_S = 45.0  # a lost mover is waited for 30 s


class Service:
    """The running service, its armed points, and calls that are repeated when a worker dies under
    them.
    """

    def __init__(self, up: Up, marks: Path) -> None:
        self.up = up
        self.marks = marks
        self.client = Client(up.endpoint)

    def kill(self, point: str, method: str, path: str, body: Any) -> None:
        """Makes the call that comes to `point`, and sees it cut off by the death of its worker."""
        self.arm(point)
        self.client.close()
        status = self.client.call(method, path, body)[0]
        if (self.marks / point).exists():
            self.wait_fired(
                point, lambda: self.client.call(method, path, body)
            )  # it went to a worker that was just killed
        else:
            assert status in (0, 200), f"{point}: {status}"

    def insist(self, method: str, path: str, body: Any = None, ok: tuple[int, ...] = (200,)) -> Any:
        """Repeats a call until it has one of the statuses `ok`; what it answers then."""
        end = time.monotonic() + WITHIN_S
        while True:
            status, answer = self.client.call(method, path, body)
            if status in ok:
                return answer
            assert time.monotonic() < end, f"{method} {path}: {status} {answer}"
            time.sleep(0.1)

    def arm(self, point: str) -> None:
        (self.marks / point).touch()

    def wait_fired(self, point: str, again: Callable[[], object] = lambda: None) -> None:
        end = time.monotonic() + 20
        while (self.marks / point).exists():
            assert time.monotonic() < end, f"nobody came to {point}"
            time.sleep(0.05)
            again()

    def create(self, name: str, **settings: Any) -> None:
        self.insist("POST", "/v1/queues", {"name": name, "partitions": 1, **settings}, (200, 201))

    def with_dead_letters(self, name: str, bodies: list[str]) -> list[str]:
        """A queue with a dead-letter queue; sends bodies and returns the handles of all."""
        self.create(f"{name}-dlq")
        self.create(name, redrive_policy={"dead_letter_queue": f"{name}-dlq", "max_receive_count": 9})
        self.send(name, bodies)
        return [m["handle"] for m in self.receive(name)]

    def send(self, queue: str, bodies: list[str]) -> None:
        self.insist("POST", f"/v1/queues/{queue}/messages", {"messages": [{"body": b} for b in bodies]})

    def receive(self, queue: str, wait_s: float = 3, lease_s: float = 60) -> list[dict[str, Any]]:
        ask = {"max": 100, "wait_seconds": wait_s, "lease_seconds": lease_s}
        return self.insist("POST", f"/v1/queues/{queue}/receive", ask)["messages"]  # type: ignore[no-any-return]

    def take_all(self, queue: str, wait_s: float = 1, expect: int = 0) -> Counter[str]:
        """Receives and acks until nothing comes; what is expected may take a while."""
        bodies: Counter[str] = Counter()
        end = time.monotonic() + WITHIN_S
        while (got := self.receive(queue, wait_s)) or (bodies.total() < expect and time.monotonic() < end):
            bodies.update(m["body"] for m in got)
            if got:
                self.insist("POST", f"/v1/queues/{queue}/ack", {"handles": [m["handle"] for m in got]})
        return bodies


@pytest.fixture
def service(leaseway_up: StartUp, tmp_path: Path) -> Iterator[Service]:
    points = ",".join(f"{point}=kill@{tmp_path / point}" for point in POINTS)
    # The plane serves what it can. The points are in Python: sends that are to meet one have a
    # field that only Python reads, and while a point of a drain is armed Python drains.
    up = leaseway_up("--workers", "3", environment={"LEASEWAY_FAILPOINTS": points, "LEASEWAY_PLANE": "auto"})
    up.wait_ready()
    started = Service(up, tmp_path)
    yield started
    started.client.close()


def points_of(kind: str) -> list[str]:
    return [point for point in POINTS if point.startswith(f"{kind}.")]


def slug(point: str) -> str:
    return point.replace(".", "-")


def kill_at_drains(service: Service) -> None:
    for point in points_of("drain"):
        name = slug(point)
        service.create(name)
        service.send(name, [str(n) for n in range(MESSAGES)])
        handles = [m["handle"] for m in service.receive(name, lease_s=LEASE_S)]
        time.sleep(0.5)
        service.arm(point)
        service.insist("POST", f"/v1/queues/{name}/ack", {"handles": handles[-ACKED:]})
        service.insist("POST", f"/v1/queues/{name}/release", {"handles": handles[:-ACKED]})
        service.wait_fired(point)


def kill_at_rebuilds(service: Service, store: redis.Redis) -> None:
    """Redis is emptied once for each point; the queues of the drains are rebuilt as well."""
    service.create("rebuilt")
    service.send("rebuilt", [str(n) for n in range(MESSAGES)])
    handles = [m["handle"] for m in service.receive("rebuilt", lease_s=LEASE_S)]
    service.insist("POST", "/v1/queues/rebuilt/ack", {"handles": handles[-ACKED:]})
    service.insist("POST", "/v1/queues/rebuilt/release", {"handles": handles[:-ACKED]})
    time.sleep(6)  # the leases of killed owners end, the workers are back, and what was left behind is drained
    for point in points_of("rebuild"):
        service.arm(point)
        store.flushall()
        service.insist("GET", "/v1/queues/rebuilt")
        service.wait_fired(point)


def kill_at_sends(service: Service) -> None:
    service.create("sent")
    for point in points_of("send"):
        service.kill(point, "POST", "/v1/queues/sent/messages", {"messages": [{"body": point, "deliver_at_ms": 1}]})
        service.send("sent", [f"{point} again"])


def kill_at_moves(service: Service) -> None:
    handles = service.with_dead_letters("moved", points_of("move"))
    for point, handle in zip(points_of("move"), handles, strict=True):
        service.kill(point, "POST", "/v1/queues/moved/kill", {"handles": [handle]})
        service.insist("GET", "/v1/queues/moved")
    # A queue that is its own dead-letter queue: source and copy are in one window.
    service.create("own")
    service.insist("PATCH", "/v1/queues/own", {"redrive_policy": {"dead_letter_queue": "own", "max_receive_count": 9}})
    service.send("own", list(OWN_POINTS))
    for point, m in zip(OWN_POINTS, service.receive("own"), strict=True):
        service.kill(point, "POST", "/v1/queues/own/kill", {"handles": [m["handle"]]})
        service.insist("GET", "/v1/queues/own")


def letters_at(point: str) -> int:
    """How many a task comes to: a page takes some hundreds."""
    return MESSAGES + PAGE if point == "redrive.paged" else MESSAGES


def kill_at_redrives(service: Service) -> dict[str, str]:
    tasks = {}
    for point in points_of("redrive"):
        name = slug(point)
        handles = service.with_dead_letters(name, [str(n) for n in range(MESSAGES)])
        service.insist("POST", f"/v1/queues/{name}/kill", {"handles": handles})
        for at in range(MESSAGES, letters_at(point), 100):
            service.send(name, [str(n) for n in range(at, at + 100)])
            handles = [m["handle"] for m in service.receive(name)]
            service.insist("POST", f"/v1/queues/{name}/kill", {"handles": handles})
        service.arm(point)
        tasks[point] = service.insist("POST", f"/v1/queues/{name}-dlq/redrive", {}, (202,))["id"]
        service.wait_fired(point)
    return tasks


def kill_at_changes(service: Service) -> None:
    for point in points_of("create"):
        service.kill(point, "POST", "/v1/queues", {"name": slug(point), "partitions": 1})
    for point in points_of("delete"):
        service.create(slug(point))
        service.send(slug(point), ["old"])
        service.kill(point, "DELETE", f"/v1/queues/{slug(point)}", None)
        # Who came to the point may have been about to finish the deletion before.
        service.insist("DELETE", f"/v1/queues/{slug(point)}", None, (200, 204, 404))
    service.create("purged")
    service.send("purged", ["old"])
    service.kill("purge.before_delete", "POST", "/v1/queues/purged/purge", None)
    service.insist("POST", "/v1/queues/purged/purge", None, (200, 204))
    service.send("purged", ["new"])
    service.create("kept")
    service.kill("keep.before_set", "PATCH", "/v1/queues/kept", {"retention_seconds": 1_000_000})
    service.insist("PATCH", "/v1/queues/kept", {"retention_seconds": 1_000_000})


def kill_at_transactions(service: Service) -> None:
    """A transaction of its own for each point, prepared and committed; its client repeats what had
    no answer.
    """
    for point in points_of("transaction"):
        name = slug(point)
        service.create(name)
        body: dict[str, Any] = {"producer_group": name, "messages": [{"body": "0"}, {"body": "1"}]}
        prepare = ("POST", f"/v1/queues/{name}/transactions", body)
        if point.endswith(("prepare", "prepared")):
            service.kill(point, *prepare)
        elif point.endswith("check"):
            service.arm(point)
            body["check_immunity_seconds"] = 0
        half = service.insist(*prepare, ok=(201,))["id"]
        if point.endswith("check"):
            # A check is written only while a member of the group asks for checks.
            ask = ("POST", f"/v1/producer-groups/{name}/checks", {"max": 1, "wait_seconds": 0})
            service.wait_fired(point, partial(service.client.call, *ask))
        elif not point.endswith(("prepare", "prepared")):
            service.kill(point, "POST", f"/v1/transactions/{half}/commit", {})
        assert len(service.insist("POST", f"/v1/transactions/{half}/commit", {})["message_ids"]) == 2


def test_a_worker_killed_at_any_point_leaves_nothing_lost_and_nothing_twice(service: Service) -> None:
    began = time.monotonic()
    kill_at_moves(service)
    tasks = kill_at_redrives(service)
    kill_at_changes(service)
    kill_at_sends(service)
    kill_at_transactions(service)
    kill_at_drains(service)
    for task in tasks.values():
        # What a task settled within 150 ms before Redis is emptied may be forgotten: it must be
        # over.
        while service.insist("GET", f"/v1/tasks/{task}")["status"] == "running":
            time.sleep(0.2)
    with contextlib.closing(redis.Redis.from_url(service.up.run["redis"]["url"])) as store:
        kill_at_rebuilds(service, store)
    print(f"{len(POINTS)} kills, {time.monotonic() - began:.0f} s")
    for kind in ("create", "delete"):
        for point in points_of(kind):
            service.create(slug(point))
            service.send(slug(point), ["new"])
            assert service.take_all(slug(point), expect=1) == {"new": 1}, point
    assert service.take_all("purged", expect=1) == {"new": 1}
    for point in points_of("transaction"):
        assert service.take_all(slug(point), expect=2) == {"0": 1, "1": 1}, point
    sent = service.take_all("sent", 2, expect=len(points_of("send")))
    assert {f"{point} again" for point in points_of("send")} <= sent.keys() and max(sent.values()) == 1
    dead_letters: Counter[str] = Counter()
    end = time.monotonic() + WITHIN_S
    while len(dead_letters) < len(points_of("move")) and time.monotonic() < end:
        assert service.receive("moved", 0) == [], "a dying message was leased"
        dead_letters += service.take_all("moved-dlq", 0.5)
    assert dead_letters + service.take_all("moved-dlq") == dict.fromkeys(points_of("move"), 1)
    assert service.take_all("own", expect=len(OWN_POINTS)) == dict.fromkeys(OWN_POINTS, 1)
    end = time.monotonic() + WITHIN_S
    while any((tag := service.insist("GET", "/v1/queues/own")["tags"][0])[state] for state in STATES):
        assert time.monotonic() < end, f"a source is not settled: {tag}"
        time.sleep(0.5)
    for point in tasks:
        letters = letters_at(point)
        assert service.take_all(slug(point), expect=letters) == {str(n): 1 for n in range(letters)}, point
        assert service.take_all(f"{slug(point)}-dlq") == {}
    for name in ("rebuilt", *map(slug, points_of("drain"))):
        assert service.take_all(name, 2, expect=MESSAGES - ACKED) == {str(n): 1 for n in range(MESSAGES - ACKED)}, name
    assert not [point for point in POINTS if (service.marks / point).exists()]
    print(f"at rest after {time.monotonic() - began:.0f} s")
