"""What a wait list holds that was leased ahead: how much, for whom and for how long."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.receive.ahead import LEAST_LEASE_MS, MOST, PAUSE_S, SPAN_S, Stock, may_wait
from engine.rules.queue import Queue
from engine.shapes import Delivery
from engine.window.window import AHEAD_S
from schemas.records import Message, QueueRecord, RedrivePolicy, TagRecord

RECORD = QueueRecord("orders", "0123456789ab", "alice", 1, 2, 1, 0, 30_000, 7, 8, 9, 10, [TagRecord(0, "default", 1, 0, [0])], 1)


def queue(**settings: object) -> Queue:
    return Queue(replace(RECORD, **settings), "lw")


def deliveries(count: int) -> list[Delivery]:
    return [Delivery(f"id{n}", f"h{n}", Message(b"x"), 0, 1, 0, 0, 0, n) for n in range(count)]


# A little more than a span: the next one has begun.
LATER_S = SPAN_S * 1.01


def test_as_much_is_wanted_as_was_handed_out_in_a_span() -> None:
    stock = Stock(0)
    assert stock.wanted(10.0) == 0
    for at in range(5):
        stock.note(2, 10.0 + at * SPAN_S / 5)
    assert stock.wanted(10.0 + SPAN_S * 0.9) == 10
    stock.note(1, 10.0 + LATER_S)  # the span before counts still
    assert stock.wanted(10.0 + LATER_S) == 10
    stock.note(1, 10.0 + 2 * LATER_S)
    assert stock.wanted(10.0 + 2 * LATER_S) == 1
    assert stock.wanted(10.0 + 5 * SPAN_S) == 0


def test_a_span_without_receives_is_no_demand() -> None:
    stock = Stock(0)
    stock.note(50, 1.0)
    stock.note(1, 1.0 + 2 * LATER_S)
    assert stock.wanted(1.0 + 2 * LATER_S) == 1


def test_no_more_than_the_bound_is_wanted_and_nothing_while_some_are_left() -> None:
    stock, of = Stock(0), queue()
    stock.note(10 * MOST, 1.0)
    assert stock.wanted(1.0) == MOST
    stock.put(deliveries(2), of, None, 1.0 + AHEAD_S)
    assert stock.wanted(1.0) == 0
    stock.take(2, of, None, 1.0)
    assert stock.wanted(1.0) == MOST


def test_who_asks_gets_the_first_ones_in_their_order() -> None:
    stock, of, held = Stock(0), queue(), deliveries(5)
    stock.put(held, of, 30_000, 1.0 + AHEAD_S)
    assert stock.take(2, of, 30_000, 1.0) == held[:2]
    assert stock.take(4, of, 30_000, 1.0) == held[2:]
    assert stock.take(1, of, 30_000, 1.0) == [] and len(stock) == 0


def test_nobody_gets_them_with_another_lease_after_their_time_or_of_a_queue_that_has_changed() -> None:
    stock, of = Stock(0), queue()
    stock.put(deliveries(3), of, None, 1.0 + AHEAD_S)
    assert stock.take(1, of, 30_000, 1.0) == []
    assert stock.take(1, of, None, 1.0 + AHEAD_S) == []
    assert stock.take(1, queue(purged_at_ms=5), None, 1.0) == []
    assert len(stock.take(1, of, None, 1.0 + AHEAD_S * 0.99)) == 1
    assert stock.empty() == (of, deliveries(3)[1:]) and stock.empty() == (of, [])


def test_a_pause_ends() -> None:
    stock = Stock(0)
    stock.pause(1.0)
    stock.note(3, 0.9 + PAUSE_S)
    assert stock.wanted(0.9 + PAUSE_S) == 0
    stock.note(3, 1.0 + PAUSE_S)
    assert stock.wanted(1.0 + PAUSE_S) == 3


@pytest.mark.parametrize(
    ("settings", "lease_ms", "expected"),
    [
        ({}, None, True),
        ({"lease_ms": LEAST_LEASE_MS - 1}, None, False),
        ({"lease_ms": LEAST_LEASE_MS - 1}, LEAST_LEASE_MS, True),
        ({}, LEAST_LEASE_MS - 1, False),
        ({"fifo": True}, None, False),
        ({"priority": True}, None, False),
        ({"redrive_policy": RedrivePolicy("dead", 3)}, None, False),
    ],
)
def test_order_and_counts_and_short_leases_keep_messages_from_being_leased_ahead(
    settings: dict[str, object], lease_ms: int | None, expected: bool
) -> None:
    of = queue(**settings)
    assert may_wait(of, of.tags[0], lease_ms) is expected
