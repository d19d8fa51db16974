"""kill -9 of each part and a wiped Redis in mid-traffic, through the real `leaseway up` with two
workers.

After each: no answered send is lost, service is back within 10 s of the part's return, acks older
than 1 s stay acked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from confluent_kafka import Consumer, TopicPartition

from schemas.records import JournalRecord
from schemas.wire import decode
from tests.acceptance.traffic import Client, Traffic
from tests.conftest import StartUp
from tests.services import Up
from tests.stopping import stand_still


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module("--workers", "2")
    started.wait_ready()
    return started


def bound(up: Up) -> float:
    """The service is back within ten seconds; on a machine so full that its first start took over
    five, within twice that.
    """
    return max(10.0, 2 * up.ready_s)


def wait_for(check: Callable[[], bool], within_s: float = 30.0) -> float:
    """Polls until `check` holds; returns when that was (monotonic)."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if check():
            return time.monotonic()
        time.sleep(0.02)
    raise AssertionError(f"did not hold within {within_s} s")


def started_again(up: Up, part: Callable[[dict[str, Any]], int], old: int) -> Callable[[], bool]:
    def check() -> bool:
        try:
            return part(up.run) != old
        except (OSError, ValueError, KeyError, IndexError):
            return False

    return check


def make_queue(up: Up, name: str) -> None:
    with contextlib.closing(Client(up.endpoint)) as client:
        status, answer = client.call("POST", "/v1/queues", {"name": name})
    assert status == 201, answer


@pytest.fixture
def store(up: Up) -> Iterator[redis.Redis]:
    with contextlib.closing(redis.Redis.from_url(up.run["redis"]["url"])) as opened:
        yield opened


PARTS: dict[str, Callable[[dict[str, Any]], int]] = {
    "facade": lambda run: int(run["facades"][0]["pid"]),
    "redis": lambda run: int(run["redis"]["pid"]),
    "kafka": lambda run: int(run["kafka"]["pid"]),
}


@pytest.mark.parametrize("name", PARTS)
def test_nothing_answered_is_lost_when_a_part_is_killed(up: Up, name: str) -> None:
    part = PARTS[name]
    make_queue(up, f"kill-{name}")
    traffic = Traffic(up.endpoint, f"kill-{name}")
    traffic.start()
    wait_for(lambda: len(traffic.acked_sends) > 250, within_s=60)
    old = part(up.run)
    killed_at = time.monotonic()
    os.kill(old, signal.SIGKILL)
    returned_at = wait_for(started_again(up, part, old))
    traffic.wait_back(returned_at, within_s=bound(up) + 1)
    traffic.stop()
    back = max(traffic.back_after(killed_at) - (returned_at - killed_at), 0)
    again = [row for row in traffic.again_after_ack if killed_at - row[1] > 1.0]
    print(
        f"kill -9 {name}: {len(traffic.acked_sends)} sends answered, {len(traffic.lost())} lost, part back after"
        f" {returned_at - killed_at:.1f} s, service {back:.1f} s later, delivered again after an ack:"
        f" {len(traffic.again_after_ack)}, statuses {dict(traffic.statuses)}"
    )
    assert traffic.lost() == set()
    assert back < bound(up)
    assert again == [], "an ack older than 1 s was forgotten"


def test_a_wiped_redis_is_noticed_and_rebuilt_in_mid_traffic(up: Up, client: Client, store: redis.Redis) -> None:
    make_queue(up, "wiped-dlq")
    policy = {"name": "wiped", "redrive_policy": {"dead_letter_queue": "wiped-dlq", "max_receive_count": 4}}
    assert client.call("POST", "/v1/queues", policy)[0] == 201
    assert client.call("POST", "/v1/queues/wiped/messages", {"messages": [{"body": "poison"}]})[0] == 200
    counts = []
    for _ in range(2):
        _, answer = client.call("POST", "/v1/queues/wiped/receive", {"wait_seconds": 5, "lease_seconds": 1})
        counts += [m["receive_count"] for m in answer["messages"]]
    traffic = Traffic(up.endpoint, "wiped")
    wait_ack = {"max": 100, "wait_seconds": 0, "lease_seconds": 60}
    long_lease = client.call(
        "POST", "/v1/queues/wiped/messages", {"messages": [{"body": f"held-{n}"} for n in range(10)]}
    )
    assert long_lease[0] == 200
    _, held = client.call("POST", "/v1/queues/wiped/receive", wait_ack)
    held_handles = [m["handle"] for m in held["messages"] if m["body"].startswith("held-")]
    traffic.start()
    workers = [facade["pid"] for facade in up.run["facades"]]
    time.sleep(3)
    wiped_at = time.monotonic()
    store.flushall()
    traffic.wait_back(wiped_at + 1, within_s=bound(up))
    traffic.stop()
    back = traffic.back_after(wiped_at)
    again = [row for row in traffic.again_after_ack if wiped_at - row[1] > 1.0]
    print(
        f"FLUSHALL: {len(traffic.acked_sends)} sends answered, {len(traffic.lost())} lost, service back after "
        f"{back:.1f} s,"
        f" delivered again after an ack: {len(traffic.again_after_ack)} ({len(again)} older than 1 s), "
        f"statuses {dict(traffic.statuses)}"
    )
    assert traffic.lost() == set()
    assert back < bound(up)
    assert again == []
    assert [facade["pid"] for facade in up.run["facades"]] == workers, "a worker has ended"
    # Leases older than the last drain are as they were: their handles still ack.
    status, answer = client.call("POST", "/v1/queues/wiped/ack", {"handles": held_handles})
    assert status == 200, answer
    assert {r["status"] for r in answer["results"]} == {"ok"}
    # The counts of the poison message went on, so it died after four deliveries in all; its dead
    # letter is there once.
    seen = counts + traffic.counts.get("poison", [])
    assert seen == sorted(seen) and max(seen) <= 4
    if "poison" not in traffic.acks:
        dead_letters: list[str] = []
        while got := client.call("POST", "/v1/queues/wiped-dlq/receive", {"wait_seconds": 2, "lease_seconds": 60})[1][
            "messages"
        ]:
            dead_letters += [m["body"] for m in got]
        assert dead_letters.count("poison") == 1


def test_scripts_that_redis_forgets_in_mid_traffic_are_loaded_again(up: Up, store: redis.Redis) -> None:
    make_queue(up, "forgotten")
    traffic = Traffic(up.endpoint, "forgotten", lease_s=60)
    traffic.start()
    wait_for(lambda: len(traffic.acks) > 100, within_s=60)
    for _ in range(20):
        store.script_flush()
        time.sleep(0.1)
    traffic.stop(quiet_s=2)
    assert set(traffic.statuses) == {200}
    assert traffic.lost() == set()
    assert traffic.again_after_ack == []


def owner_of(store: redis.Redis, meta: bytes) -> tuple[str, int]:
    """(worker, epoch) of the loader of a unit."""
    return str(store.hget(meta, "owner"), "utf-8"), int(store.hget(meta, "epoch") or 0)  # type: ignore[arg-type]


def test_a_stopped_owner_is_fenced_and_loads_nothing_when_it_wakes(up: Up, store: redis.Redis) -> None:
    # Units of other tests' queues have owners too, but no traffic: nobody would take them over.
    others = set(store.scan_iter("lw:{*:meta"))
    make_queue(up, "fence")
    # Longer than the stop: an answer that the stopped worker still holds is no lapse.
    traffic = Traffic(up.endpoint, "fence", lease_s=60)
    traffic.start()
    time.sleep(2)
    metas = [key for key in store.scan_iter("lw:{*:meta") if key not in others and store.hget(key, "owner")]
    owners = {key: owner_of(store, key) for key in metas}
    stopped = min(int(owner.split("-")[0]) for owner, _ in owners.values())
    stand_still(stopped)
    # Every connection of the traffic may be with the stopped worker: new ones come to the other
    # too, and it hears of the queue.
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with contextlib.closing(Client(up.endpoint)) as fresh:
            fresh.call(
                "POST", "/v1/queues/fence/messages", {"messages": [{"body": f"fresh-{time.monotonic_ns()}"}]}, 0.5
            )
        time.sleep(0.1)
    taken = {key: owner_of(store, key) for key in metas}
    os.kill(stopped, signal.SIGCONT)
    time.sleep(3)
    traffic.stop()
    moved = [k for k in metas if owners[k][0].startswith(f"{stopped}-") and taken[k][0] != owners[k][0]]
    assert moved, "nobody took over the units of the stopped owner"
    for key in moved:
        assert taken[key][1] > owners[key][1]
    assert traffic.lost() == set()
    assert traffic.again_after_ack == []


def test_the_journal_has_entries_that_count_in_their_order(up: Up) -> None:
    """Of all that was killed, wiped and stopped above: an entry that comes again was there before;
    one that came out of turn would count for nobody.
    """
    seqs: dict[tuple[str, int], list[int]] = {}
    for record in journal(up):
        seqs.setdefault((record.incarnation, record.partition), []).extend(entry.seq for entry in record.entries)
    assert sum(map(len, seqs.values())) > 1_000
    for unit, found in seqs.items():
        fresh = list(dict.fromkeys(found))
        assert fresh == sorted(fresh), unit


def journal(up: Up) -> Iterator[JournalRecord]:
    """All records of the journal, in order within a unit."""
    consumer = Consumer({**up.kafka_client, "group.id": "journal", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics("lw.journal", timeout=10).topics["lw.journal"].partitions
        for partition in partitions:
            place = TopicPartition("lw.journal", partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            at = 0
            while at < end:
                message = consumer.poll(10)
                assert message is not None and message.error() is None, message
                at = (message.offset() or 0) + 1
                record = decode(message.value() or b"")
                assert isinstance(record, JournalRecord)
                yield record
    finally:
        consumer.close()
