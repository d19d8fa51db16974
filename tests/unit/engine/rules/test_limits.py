"""Every limit holds at its two ends and not one beyond; sizes are counted in encoded bytes."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import DelayTooLong, InvalidValue, MessageTooLarge
from engine.queues.lives.creating import new_record
from engine.rules.limits import (
    ASKED,
    MAX_BATCH_BYTES,
    MAX_NAME,
    MAX_QUEUE_NAME,
    RESERVED_ATTRIBUTE,
    UNCOUNTED_BYTES,
    check_asked,
    check_attributes,
    check_deliver_at,
    check_filter,
    check_name,
    check_own_delay,
    check_send,
    check_settings,
    message_bytes,
)
from engine.shapes import SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute, QueueRecord
from schemas.records.settings import MAX_DELAY_MS, TABLE, Grant, QueueSettings, RedrivePolicy
from schemas.vocabulary import TRACE_ATTRIBUTE

# The settings that are numbers: their ends.
NUMBERS = {
    name: (setting.low, setting.high)
    for name, setting in TABLE.items()
    if setting.high and not isinstance(setting.default, list)
}


def queue_with(**more: int) -> QueueRecord:
    return msgspec.structs.replace(new_record("q", "me", QueueSettings(), 1, (), 0), **more)


@pytest.mark.parametrize(("field", "bounds"), ASKED.items())
def test_what_is_asked_for_has_both_ends(field: str, bounds: tuple[int, int]) -> None:
    low, high = bounds
    for good in (low, high, None):
        check_asked(field, good)
    for bad in (low - 1, high + 1):
        with pytest.raises(InvalidValue) as refused:
            check_asked(field, bad)
        assert (refused.value.field, refused.value.limit, refused.value.given) == (field, [low, high], bad)


@pytest.mark.parametrize(("field", "bounds"), NUMBERS.items())
def test_a_setting_has_both_ends(field: str, bounds: tuple[int, int]) -> None:
    low, high = bounds
    for good in (low, high):
        check_settings(QueueSettings(**{field: good}))
    for bad in (low - 1, high + 1):
        with pytest.raises(InvalidValue) as refused:
            check_settings(QueueSettings(**{field: bad}))
        assert refused.value.field == field


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(redrive_policy=RedrivePolicy("dlq", 0)),
        QueueSettings(redrive_policy=RedrivePolicy("-dlq", 1)),
        QueueSettings(user_attributes={"": "x"}),
        QueueSettings(user_attributes={"k": "x" * 1025}),
        QueueSettings(user_attributes={f"k{n}": "" for n in range(51)}),
        QueueSettings(labels={"k": "x" * 257}),
        QueueSettings(dedup_scope="topic"),
        QueueSettings(on_exhausted="stop"),
        QueueSettings(retention_from="never"),
        QueueSettings(grants=[Grant(True, ["bob"], ["send"])] * 21),
        QueueSettings(allowed_sources=[f"q{n}" for n in range(11)]),
    ],
)
def test_settings_out_of_bounds_are_refused(settings: QueueSettings) -> None:
    with pytest.raises(InvalidValue):
        check_settings(settings)


@pytest.mark.parametrize("name", ["", "-a", ".a", "a/b", "a b", "ä", "a\n"])
def test_a_name_is_plain(name: str) -> None:
    with pytest.raises(InvalidValue):
        check_name("name", name)


def test_names_of_queues_may_be_longer_than_others() -> None:
    check_name("name", "q" * MAX_QUEUE_NAME)
    check_name("tag", "t" * MAX_NAME)
    for field, length in (("name", MAX_QUEUE_NAME), ("tag", MAX_NAME)):
        with pytest.raises(InvalidValue) as refused:
            check_name(field, "x" * (length + 1))
        assert refused.value.limit == length


def test_a_size_is_that_of_the_encoded_bytes_of_body_and_attributes() -> None:
    assert message_bytes(SendEntry(b"abc", {"é": Attribute("string", "ü".encode())})) == 3 + 2 + 6 + 2
    entries = [SendEntry(b"x" * 100)] * 100
    assert check_send(entries, queue_with(max_message_bytes=100)) == 10_000
    with pytest.raises(MessageTooLarge) as refused:
        check_send(
            [*entries[1:], SendEntry(b"x" * 99, {"a": Attribute("string", b"")})], queue_with(max_message_bytes=100)
        )
    assert (refused.value.limit, refused.value.given) == (100, 106)


def test_a_batch_has_a_size_of_its_own() -> None:
    half = SendEntry(b"x" * (MAX_BATCH_BYTES // 4))
    assert check_send([half] * 4, queue_with(max_message_bytes=MAX_BATCH_BYTES)) == MAX_BATCH_BYTES
    with pytest.raises(MessageTooLarge) as refused:
        check_send([half] * 5, queue_with(max_message_bytes=MAX_BATCH_BYTES))
    assert refused.value.field == "messages"


@pytest.mark.parametrize("most_ms", [0, 60_000, MAX_DELAY_MS])
def test_no_message_asks_for_a_longer_delay_than_its_queue_allows(most_ms: int) -> None:
    queue, at = queue_with(max_delay_ms=most_ms), 1_700_000_000_000
    check_send(
        [SendEntry(b"a", delay_ms=most_ms), SendEntry(b"b", deliver_at_ms=at), SendEntry(b"c", deliver_at_ms=0)], queue
    )
    for due_ms in (0, at, at + most_ms):
        check_deliver_at(queue, due_ms, at)
    for refuse, field, given in (
        (
            lambda: check_send([SendEntry(b"good"), SendEntry(b"x", delay_ms=most_ms + 1)], queue),
            "delay_ms",
            most_ms + 1,
        ),
        (lambda: check_deliver_at(queue, at + most_ms + 1, at), "deliver_at_ms", at + most_ms + 1),
    ):
        with pytest.raises(InvalidValue) as refused:
            refuse()
        assert (refused.value.field, refused.value.given) == (field, given)
        if most_ms < MAX_DELAY_MS or field == "deliver_at_ms":
            assert isinstance(refused.value, DelayTooLong)
            assert f"{most_ms} ms at most, which is its max_delay_ms" in refused.value.detail


def test_a_queue_has_no_longer_delay_than_its_messages_may_ask_for() -> None:
    check_own_delay(queue_with(delay_ms=1000, max_delay_ms=1000))
    with pytest.raises(DelayTooLong, match="1000 ms at most, which is its max_delay_ms, given 1001 ms"):
        check_own_delay(queue_with(delay_ms=1001, max_delay_ms=1000))


@pytest.mark.parametrize(
    ("name", "type"),
    [
        (RESERVED_ATTRIBUTE, "string"),
        ("with space", "string"),
        ("é\n", "string"),
        ("\u2028", "string"),
        ("a", "text"),
        ("a", "string."),
        ("", "number"),
    ],
)
def test_an_attribute_out_of_bounds_is_refused(name: str, type: str) -> None:
    check_attributes({"good": Attribute("Number.float", b"1"), "größe_数": Attribute("string", b"1")})
    with pytest.raises(InvalidValue):
        check_attributes({name: Attribute(type, b"1")})


def test_a_filter_has_1_to_20_conditions_with_legal_names_and_types() -> None:
    condition = Condition("colour", "string", b"red")
    check_filter(None)
    check_filter(Filter([condition] * 20))
    check_filter(Filter([Condition("colour", "EMPTY", b"")]))
    for bad in ([], [condition] * 21, [Condition("a b", "string", b"")], [Condition("a", "colour", b"")]):
        with pytest.raises(InvalidValue):
            check_filter(Filter(bad))


def test_a_trace_header_does_not_count_into_the_size() -> None:
    body = SendEntry(b"x" * 1000, {TRACE_ATTRIBUTE: Attribute("String", b"t" * UNCOUNTED_BYTES)})
    long = SendEntry(b"x" * 1000, {TRACE_ATTRIBUTE: Attribute("String", b"t" * (UNCOUNTED_BYTES + 1))})

    assert message_bytes(body) == 1000
    assert message_bytes(long) > 1000 + UNCOUNTED_BYTES
