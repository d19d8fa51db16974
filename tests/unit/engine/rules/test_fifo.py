"""What a FIFO queue asks of a send, and what repeats what."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.errors import InvalidValue
from engine.rules.fifo import check_entries, check_fifo_settings, dedup_digest, group_digest, sequence_number
from engine.shapes import SendEntry
from schemas.records import Message, Origin, QueueRecord
from schemas.records.settings import QueueSettings
from tests.unit.records import queue_record

RECORD = queue_record(partitions=2)
FIFO = replace(RECORD, fifo=True, dedup_scope="queue")
BY_GROUP = replace(FIFO, dedup_scope="group")
CONTENT = replace(FIFO, content_dedup=True)


def entry(group: str | None = "g", dedup_id: str | None = "d", **more: int) -> SendEntry:
    return SendEntry(b"body", group=group, dedup_id=dedup_id, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "entries", "field"),
    [
        (FIFO, [entry(group=None)], "group"),
        (FIFO, [entry(delay_ms=1)], "delay_ms"),
        (FIFO, [entry(dedup_id=None)], "dedup_id"),
        (FIFO, [entry(group="with space")], "group"),
        (FIFO, [entry(group="g" * 129)], "group"),
        (FIFO, [entry(dedup_id="")], "dedup_id"),
        (BY_GROUP, [entry("a"), entry("b")], "group"),
        (RECORD, [entry(group="g")], "dedup_id"),
        (RECORD, [entry("é", None)], "group"),
    ],
)
def test_what_a_kind_of_queue_refuses_is_named(record: QueueRecord, entries: list[SendEntry], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        check_entries(record, entries)
    assert refused.value.field == field


def test_what_is_allowed_passes_and_content_gives_the_id() -> None:
    assert check_entries(RECORD, [entry("g", None)])[0].dedup_id is None
    assert check_entries(FIFO, [entry("a"), entry("b")])[1].group == "b"
    one, same, other = check_entries(CONTENT, [entry("a", None), entry("b", None), SendEntry(b"other", group="a")])
    assert one.dedup_id == same.dedup_id != other.dedup_id


def test_an_id_repeats_within_its_scope_and_a_moved_message_repeats_nothing() -> None:
    a, b = Message(b"", group="a", dedup_id="d"), Message(b"", group="b", dedup_id="d")
    assert dedup_digest(FIFO, a) == dedup_digest(FIFO, b) != b""
    assert dedup_digest(BY_GROUP, a) != dedup_digest(BY_GROUP, b)
    assert dedup_digest(FIFO, replace(a, origin=Origin("i", "t", "i", "q", "t", "killed", 1, 1, 1, 1))) == b""
    assert dedup_digest(FIFO, Message(b"", group="a")) == b""
    assert group_digest(None) == group_digest("") != group_digest("a")


def test_sequence_numbers_have_20_digits_and_grow() -> None:
    numbers = [sequence_number(offset) for offset in (0, 1, 9, 10, 2**40)]
    assert {len(number) for number in numbers} == {20} and sorted(numbers) == numbers


@pytest.mark.parametrize(
    ("settings", "fifo", "field"),
    [
        (QueueSettings(content_dedup=True), False, "content_dedup"),
        (QueueSettings(dedup_scope="group"), False, "dedup_scope"),
        (QueueSettings(on_exhausted="park"), False, "on_exhausted"),
        (QueueSettings(max_receive_count=3), False, "max_receive_count"),
        (QueueSettings(dedup_scope="group", content_dedup=False), True, None),
    ],
)
def test_settings_of_fifo_queues_are_for_them_alone(settings: QueueSettings, fifo: bool, field: str | None) -> None:
    if field is None:
        check_fifo_settings(settings, fifo)
        return
    with pytest.raises(InvalidValue) as refused:
        check_fifo_settings(settings, fifo)
    assert refused.value.field == field
