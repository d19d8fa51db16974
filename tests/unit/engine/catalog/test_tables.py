"""The records that count, by name, and what is told of queues that are gone."""

from __future__ import annotations

import msgspec

from engine.catalog.tables import REMEMBER_DELETED_MS, Tables
from engine.rules.queue import Queue
from runtime.signals import Signal
from schemas.records import GenerationRecord, KeyRecord, QueueRecord, UserRecord
from schemas.records.settings import RedrivePolicy
from tests.unit.records import queue_record

KEY = KeyRecord("k", "its secret", "alice", False, 1)


def tables() -> tuple[Tables, list[str]]:
    gone: list[str] = []
    signal: Signal[[Queue]] = Signal()
    signal.connect(lambda queue: gone.append(queue.incarnation))
    return Tables("lw", signal), gone


def record(name: str, incarnation: str) -> QueueRecord:
    return queue_record(name, incarnation=incarnation)


def test_a_queue_that_was_renewed_is_known_by_its_former_lives_until_it_is_gone() -> None:
    known, _ = tables()
    first, second = "1" * 12, "2" * 12
    known.put("queue", "orders", record("orders", first), 0)
    known.put("queue", "orders", queue_record("orders", incarnation=second, former_incarnations=[first]), 0)
    for tables_of in (known, known.future()):
        assert set(tables_of.by_incarnation) == {second}
        assert {life: queue.incarnation for life, queue in tables_of.by_life.items()} == {first: second, second: second}
    known.put("queue", "orders", None, 0)
    assert known.by_life == {}


def test_a_record_is_taken_under_its_kind_and_no_other() -> None:
    known, _ = tables()
    known.put("key", "k", KEY, 0)
    known.put("user", "k", KEY, 0)
    known.put("nothing", "k", KEY, 0)
    assert (known.keys, known.users) == ({"k": KEY}, {})
    known.put("user", "u", UserRecord("u", 1), 0)
    known.put("key", "k", None, 0)
    assert (known.keys, list(known.users)) == ({}, ["u"])
    known.put("generation", "", GenerationRecord(3, "run", 0), 0)
    known.put("generation", "", None, 0)
    assert (known.generation, known.life.redis_run_id) == (3, "run")


def test_a_queue_is_known_by_name_and_life_and_its_end_is_told_once() -> None:
    known, gone = tables()
    policy = RedrivePolicy("dead", 3)
    known.put("queue", "b", msgspec.structs.replace(record("b", "0" * 12), redrive_policy=policy), 0)
    known.put("queue", "a", record("a", "1" * 12), 0)
    assert known.names == ["a", "b"]
    assert known.sources["dead"] == {"b"}
    known.put("queue", "b", record("b", "0" * 12), 0)
    assert gone == [] and known.sources["dead"] == set()
    known.put("queue", "b", record("b", "2" * 12), 0)
    assert gone == ["0" * 12] and set(known.by_incarnation) == {"1" * 12, "2" * 12}
    known.put("queue", "a", msgspec.structs.replace(record("a", "1" * 12), deleting=True), 5)
    assert (known.names, list(known.unfinished), known.deleted) == (["b"], ["a"], {"a": 5})
    known.put("queue", "a", None, 6)
    assert gone == ["0" * 12, "1" * 12] and known.unfinished == {}


def test_deleted_queues_are_remembered_for_a_minute() -> None:
    known, _ = tables()
    for name, at_ms in (("a", 0), ("b", 1), ("c", REMEMBER_DELETED_MS), ("d", REMEMBER_DELETED_MS + 1)):
        known.put("queue", name, record(name, f"{at_ms:012x}"), 0)
        known.put("queue", name, None, at_ms)
    assert list(known.deleted) == ["b", "c", "d"]


def test_a_creation_that_ended_early_is_no_deletion() -> None:
    known, _ = tables()
    known.put("queue", "a", msgspec.structs.replace(record("a", "1" * 12), deleting=True), 5)
    assert list(known.unfinished) == ["a"]
    known.put("queue", "a", None, 6)
    assert (known.unfinished, known.deleted) == ({}, {})


def test_changes_of_rights_are_told() -> None:
    known, _ = tables()
    told: list[str] = []
    known.rights_changed.connect(told.append)
    known.put("key", "k", KEY, 0)
    known.put("queue", "a", record("a", "1" * 12), 0)
    known.put("queue", "a", msgspec.structs.replace(record("a", "1" * 12), lease_ms=5), 0)
    assert told == [""]
    known.put("queue", "a", msgspec.structs.replace(record("a", "1" * 12), owner="bob"), 0)
    assert told == ["", "1" * 12] and known.changes == 4
