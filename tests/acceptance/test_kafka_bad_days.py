"""Kafka's bad days through the real `leaseway up`: what the client gets meanwhile, and that nothing
answered is lost.

Kill -9 of the broker: test_bad_days.py. Loss to retention in detail:
tests/integration/test_retention.py.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.acceptance.test_bad_days import make_queue, wait_for
from tests.acceptance.traffic import Client, Traffic
from tests.conftest import StartUp
from tests.services import Up
from tests.stopping import stand_still

SEND_TIMEOUT_S = 4.0
REBUILD_S = 60.0


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    # A part of 12,000 messages has to be left out of the window: not all may be kept beside it.
    environment = {"LEASEWAY_SEND_TIMEOUT_MS": str(int(SEND_TIMEOUT_S * 1000)), "LEASEWAY_KEPT_BYTES": "500000"}
    started = leaseway_up_module(environment=environment)
    started.wait_ready()
    return started


@pytest.fixture
def admin(up: Up) -> AdminClient:
    return AdminClient(up.kafka_client)


def kafka_pid(up: Up) -> int:
    return int(up.run["kafka"]["pid"])


def send(client: Client, queue: str, *bodies: str) -> tuple[int, Any]:
    return client.call("POST", f"/v1/queues/{queue}/messages", {"messages": [{"body": body} for body in bodies]})


def take_all(client: Client, queue: str, wait_s: float = 2) -> list[str]:
    """Receives and acks until nothing comes. A queue that is still rebuilt answers 503: on a slow
    machine that may be so for a while after its sends work. An ack that gets one is repeated.
    """
    bodies: list[str] = []
    rebuilt_by = time.monotonic() + REBUILD_S
    while True:
        status, answer = client.call(
            "POST", f"/v1/queues/{queue}/receive", {"max": 100, "wait_seconds": wait_s, "lease_seconds": 60}
        )
        if status == 503 and answer["code"] == "rebuilding" and time.monotonic() < rebuilt_by:
            time.sleep(0.2)
            continue
        assert status == 200, answer
        if not answer["messages"]:
            return bodies
        bodies += [m["body"] for m in answer["messages"]]
        handles = [m["handle"] for m in answer["messages"]]
        while (acked := client.call("POST", f"/v1/queues/{queue}/ack", {"handles": handles}))[0] == 503:
            assert time.monotonic() < rebuilt_by, acked
            time.sleep(0.2)
        assert acked[0] == 200, acked


def metric(up: Up, name: str) -> float:
    """Sum of a metric's series, 0 when there is none."""
    with urllib.request.urlopen(f"{up.endpoint}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.partition(" ")[0].partition("{")[0] == f"leaseway_{name}"
    )


def test_a_broker_that_stands_still_makes_sends_fail_in_time_and_doubles_none(up: Up, client: Client) -> None:
    make_queue(up, "paused")
    make_queue(up, "quiet")
    traffic = Traffic(up.endpoint, "paused", lease_s=30)
    traffic.start()
    time.sleep(1.5)
    stand_still(kafka_pid(up))
    stopped_at = time.monotonic()
    try:
        began = time.monotonic()
        status, answer = send(client, "quiet", "unknown")
        took = time.monotonic() - began
        # Of a topic that nobody has asked the broker for, nothing was given to it.
        assert (
            status == 503
            and answer["code"] in {"log_unavailable", "not_stored"}
            and client.headers["retry-after"] == "1"
        )
        may_be_stored = ["unknown"] if answer["code"] == "log_unavailable" else []
        assert SEND_TIMEOUT_S - 0.5 < took < SEND_TIMEOUT_S + 1.5
        began = time.monotonic()
        status, answer = client.call("POST", "/v1/queues/quiet/receive", {"wait_seconds": 0})
        assert (status, answer["messages"]) == (200, []) and time.monotonic() - began < 3, (
            "an empty answer hung on Kafka"
        )
        assert metric(up, "journal_lag_seconds") > 1
        time.sleep(max(0.0, stopped_at + 8 - time.monotonic()))
    finally:
        os.kill(kafka_pid(up), signal.SIGCONT)
    woken_at = time.monotonic()
    wait_for(lambda: traffic.back_after(woken_at) < float("inf"), within_s=10)
    time.sleep(3)
    traffic.stop()
    unanswered = set(traffic.deliveries) - traffic.acked_sends
    print(
        f"SIGSTOP kafka 8 s: {len(traffic.acked_sends)} sent, lost {len(traffic.lost())}, {len(unanswered)} "
        "delivered of the"
        f" unanswered, back {traffic.back_after(woken_at):.2f} s after, statuses {dict(traffic.statuses)}"
    )
    assert traffic.lost() == set()
    assert traffic.statuses[503] > 0 and traffic.statuses.keys() <= {200, 503}
    # No body twice: a request that is not answered is not repeated by us, and what is repeated
    # inside Kafka's client is idempotent.
    assert max(traffic.deliveries.values()) == 1
    assert traffic.back_after(woken_at) < 10
    assert take_all(client, "quiet") in ([], may_be_stored)
    # Requests that were under way when Kafka woke up, fenced, had left a client that never found
    # its broker again.
    make_queue(up, "after")
    wait_for(lambda: metric(up, "journal_lag_seconds") < 1)


def test_a_full_disk_makes_sends_fail_and_loses_nothing(up: Up, client: Client) -> None:
    make_queue(up, "full")
    body = "x" * 10_000
    answered = [f"before-{n}-{body}" for n in range(20)]
    assert send(client, "full", *answered)[0] == 200
    old, supervisor = kafka_pid(up), up.process.pid
    limits = resource.prlimit(supervisor, resource.RLIMIT_FSIZE)
    # This broker can't make a file longer than 64 KiB; the next one, and the supervisor, can't
    # write to any.
    for pid, size in ((old, 65_536), (supervisor, 0)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, limits[1]))
    statuses: list[int] = []
    try:
        end = time.monotonic() + 7
        while time.monotonic() < end:
            bodies = [f"during-{len(statuses)}-{n}-{body}" for n in range(5)]
            status, answer = send(client, "full", *bodies)
            statuses.append(status)
            if status == 200:
                answered += bodies
            else:
                # Who stands behind those that Kafka does not answer was not given to Kafka.
                assert status == 503 and answer["code"] in {"log_unavailable", "not_stored"}, answer
    finally:
        resource.prlimit(supervisor, resource.RLIMIT_FSIZE, limits)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(kafka_pid(up), resource.RLIMIT_FSIZE, limits)
    began = time.monotonic()
    wait_for(lambda: send(client, "full", "after")[0] == 200, within_s=60)
    answered.append("after")
    print(
        f"disk full: statuses {statuses}, restarted {kafka_pid(up) != old}, sends work "
        f"{time.monotonic() - began:.1f} s after"
    )
    assert 503 in statuses
    assert up.process.poll() is None
    wait_for(lambda: Path(f"/proc/{kafka_pid(up)}").exists())  # run.json is true again
    got = take_all(client, "full")
    assert set(answered) <= set(got)
    assert len(got) == len(set(got)) or got.count("after") > 1


def test_records_deleted_beyond_the_floor_are_told(up: Up, client: Client, admin: AdminClient) -> None:
    assert client.call("POST", "/v1/queues", {"name": "truncated", "partitions": 1})[0] == 201
    for start in range(0, 12_000, 100):
        assert send(client, "truncated", *map(str, range(start, start + 100)))[0] == 200
    before = metric(up, "lost_to_retention_total")
    for done in admin.delete_records([TopicPartition("lw.q.truncated", 0, 11_000)]).values():
        done.result(10)
    got = take_all(client, "truncated")
    lost = metric(up, "lost_to_retention_total") - before
    assert len(got) == len(set(got)) and len(got) + lost == 12_000
    assert {str(n) for n in range(11_000, 12_000)} <= set(got)
    assert lost > 1000, "the window held everything"
    assert "action=expire queue=truncated" in (up.data / "logs" / "facade-0.log").read_text()


def test_a_topic_deleted_under_a_queue_is_renewed_and_told(up: Up, client: Client, admin: AdminClient) -> None:
    make_queue(up, "deleted")
    assert send(client, "deleted", *map(str, range(10)))[0] == 200
    admin.delete_topics(["lw.q.deleted"])["lw.q.deleted"].result(10)
    # The controller answers before the broker has let go of the partitions.
    wait_for(lambda: "lw.q.deleted" not in admin.list_topics(timeout=10).topics)
    statuses: list[int] = []

    def works() -> bool:
        status, answer = send(client, "deleted", "again")
        statuses.append(status)
        assert status in (200, 404, 503), answer
        return status == 200

    wait_for(works)
    assert statuses[0] == 503
    print(f"topic deleted: statuses until it works again {statuses}")
    # The new life of the queue is made whole in Redis first: on a full machine that takes longer
    # than one receive waits.
    wait_for(lambda: "again" in take_all(client, "deleted"))
    assert metric(up, "topics_lost_total") == 1 and metric(up, "lost_with_topic_total") == 10
