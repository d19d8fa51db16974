"""One look at a queue: what the values of a minute change, also when it is not the first look."""

from __future__ import annotations

from msgspec.structs import replace

from engine.rules.alerts import look
from schemas.records.watching import AlertPolicy, WatchRecord

MINUTE = 60_000
COUNT = AlertPolicy("a1", "", "send_request", "count", 100.0, 10)
LATENCY = AlertPolicy("a2", "t", "receive_request", "latency", 50.0, 10)
RECORD = WatchRecord("q", "i", 0, [COUNT, LATENCY])


def after(record: WatchRecord, *values: dict[str, float | None], first: int = 1) -> WatchRecord:
    """The record after minutes with these values."""
    calm: dict[str, int] = {}
    for minute, some in enumerate(values, first):
        record, calm = look(record, some, minute * MINUTE, calm)
    return record


def told(record: WatchRecord) -> list[tuple[str, str, int, str]]:
    return [(event.id.split("-")[1], event.change, event.at_ms // MINUTE, event.told) for event in record.events]


def test_each_policy_fires_and_clears_by_itself() -> None:
    record = after(RECORD, {"a1": 100, "a2": None}, {"a1": 80, "a2": 60}, {"a1": 80, "a2": 60})
    assert told(record) == [
        ("a1", "fired", 1, "pending"),
        ("a2", "fired", 2, "pending"),
        ("a1", "cleared", 3, "pending"),
    ]
    assert {state.id: state.firing for state in record.states} == {"a1": False, "a2": True}
    assert [(event.tag, event.value, event.threshold) for event in record.events] == [
        ("", 100, 100),
        ("t", 60, 50),
        ("", 80, 100),
    ]


def test_what_fires_again_within_the_silence_is_noted_and_not_told() -> None:
    record = after(RECORD, {"a1": 100}, {"a1": 0}, {"a1": 0}, {"a1": 100}, {"a1": 0}, {"a1": 0})
    assert told(record)[2:] == [("a1", "fired", 4, "silent"), ("a1", "cleared", 6, "silent")]


def test_a_second_look_at_the_same_minutes_changes_nothing() -> None:
    """Whoever takes over knows no more than the record."""
    minutes: list[dict[str, float | None]] = [{"a1": 100}, {"a1": 0}, {"a1": 0}, {"a1": 10}]
    record = after(RECORD, *minutes)
    assert after(record, *minutes) == record
    assert after(record, *minutes[2:], first=3) == record
    # Killed between the two low minutes, the next one comes to the same.
    assert after(after(RECORD, *minutes[:2]), *minutes[1:], first=2) == record


def test_a_policy_is_not_judged_by_minutes_before_it_nor_without_a_value() -> None:
    young = replace(RECORD, policies=[replace(COUNT, added_at_ms=MINUTE)])
    assert after(young, {"a1": 1_000}) == young
    assert told(after(young, {"a1": 1_000}, {"a1": 1_000})) == [("a1", "fired", 2, "pending")]
    assert after(RECORD, {}) == RECORD
    firing = after(RECORD, {"a1": 100})
    assert after(firing, {}, {}, {}, first=2) == firing


def test_a_policy_that_is_gone_leaves_its_events_alone() -> None:
    firing = after(RECORD, {"a1": 100})
    gone = after(replace(firing, policies=[LATENCY]), {"a1": 0}, first=2)
    assert gone.states == [] and told(gone) == told(firing)
