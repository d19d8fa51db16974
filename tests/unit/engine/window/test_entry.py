"""A message on its way into the window and out of it: which tags want it, and what is delivered of
what was leased.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from engine.errors import LogUnavailable
from engine.log import Log, Record
from engine.receive.returns import Returns
from engine.rules.queue import Queue
from engine.settings import Settings
from engine.window.entry import far_due_ms, load_entry
from engine.window.retention import Retention
from engine.wiring.worker import wire
from schemas.filters import Condition, Filter
from schemas.identity import Handle, MessageId
from schemas.records import Attribute, Message, TagRecord
from schemas.records.settings import MAX_DELAY_MS
from schemas.wire import decode_message, encode
from state.packed import pack_body
from state.replies import Leased, LoadEntry, Received
from tests.unit.records import queue_record

SECRET = b"secret"
DEFAULT = TagRecord(0, "default", 1, 0, [0, 0])
RED = TagRecord(1, "red", 1, 0, [0, 0], Filter([Condition("color", "string", b"red")]))
ALL = TagRecord(2, "all", 1, 0, [0, 0])
RECORD = queue_record(partitions=2, delay_ms=7000, tags=[DEFAULT])
COLORED = Message(b"body", {"color": Attribute("string", b"red")}, sender="alice")


def entry(tags: list[TagRecord], message: Message, *, fifo: bool = False) -> LoadEntry:
    return load_entry(Queue(replace(RECORD, tags=tags, fifo=fifo), "lw"), 5, 1_000, message, b"value")


@pytest.mark.parametrize(
    ("tags", "message", "mask"),
    [
        ([DEFAULT], Message(b""), "1"),
        ([DEFAULT, ALL], Message(b""), "11"),
        ([DEFAULT, RED, ALL], Message(b""), "101"),
        ([DEFAULT, RED, ALL], COLORED, "111"),
        ([RED], Message(b""), "0"),
    ],
)
def test_a_message_goes_to_the_tags_that_want_it(tags: list[TagRecord], message: Message, mask: str) -> None:
    assert entry(tags, message).mask == mask


def test_the_delay_of_the_queue_holds_for_a_record_without_a_sender() -> None:
    assert entry([DEFAULT], Message(b"", delay_ms=3, lease_ms=9)).packed == pack_body(1_000, 8_000, 9, b"value")
    assert entry([DEFAULT], Message(b"", delay_ms=3, sender="a")).packed == pack_body(1_000, 1_003, None, b"value")


@pytest.mark.parametrize(
    ("written", "counts"), [(-(10**15), 0), (-1, 0), (2**63 - 1, MAX_DELAY_MS), (MAX_DELAY_MS, MAX_DELAY_MS)]
)
def test_a_delay_that_no_send_may_have_counts_as_the_nearest(written: int, counts: int) -> None:
    """A native producer may write any number, and must not hold up what is behind it."""
    message = decode_message(encode(Message(b"", delay_ms=written, sender="a")), None)
    assert entry([DEFAULT], message).packed == pack_body(1_000, 1_000 + counts, None, b"value")
    queue = Queue(replace(RECORD, tags=[DEFAULT]), "lw")
    assert far_due_ms(queue, 1_000, message) == (1_000 + counts if counts else 0)


def test_groups_have_digests_and_in_a_fifo_queue_none_is_one_too() -> None:
    assert (entry([DEFAULT], Message(b"")).group, entry([DEFAULT], Message(b"", group="g")).dedup) == (b"", b"")
    assert len(entry([DEFAULT], Message(b"", group="g")).group) == 8
    assert len(entry([DEFAULT], Message(b""), fifo=True).group) == 8
    assert len(entry([DEFAULT], Message(b"", group="g", dedup_id="d"), fifo=True).dedup) == 12


async def test_what_was_leased_is_delivered_in_order_from_the_window_or_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = Queue(RECORD, "lw")
    packed = {offset: pack_body(offset * 10, 0, None, encode(Message(b"%d" % offset, sender="a"))) for offset in (3, 9)}
    leased = [Leased(offset, 2, 50, 60_000 + offset, packed.get(offset, b"")) for offset in (3, 4, 5, 6, 9)]
    received = Received(
        now_ms=1_000,
        nonce=77,
        wait_ms=None,
        head_ms=None,
        cursor=9,
        open=5,
        in_flight=0,
        hungry=False,
        leased=leased,
        dying=[],
    )
    ended: list[tuple[int, int]] = []

    async def read_at(
        self: Log, topic: str, partition: int, offsets: Sequence[int], *, max_bytes: int
    ) -> dict[int, Record]:
        assert [*offsets] == [4, 5, 6]
        return {4: Record(topic, 1, 4, 44, None, b"native", [("color", b"red")])}

    async def gone(self: Retention, queue: Queue, partition: int, offsets: Sequence[int]) -> set[int]:
        assert [*offsets] == [5, 6]
        return {5}

    async def expire(
        self: Retention, queue: Queue, tag: TagRecord, partition: int, held: Sequence[tuple[int, int]]
    ) -> None:
        ended.extend(held)

    monkeypatch.setattr(Log, "read_at", read_at)
    monkeypatch.setattr(Retention, "gone", gone)
    monkeypatch.setattr(Retention, "expire", expire)
    back: list[tuple[int, int, int]] = []

    async def rows(self: Returns, queue: Queue, tag: int, partition: int, rows: Sequence[tuple[int, int, int]]) -> None:
        back.extend(rows)

    monkeypatch.setattr(Returns, "rows", rows)
    found, faults = await wire(Settings(secret=SECRET.decode())).messages.receives.deliveries.complete(
        queue, RED, [(1, received)], 30_000
    )

    assert (ended, back) == ([(5, 77)], [(6, 77, 0)]) and isinstance(faults[1], LogUnavailable)
    assert [(d.offset, d.message.body, d.sent_at_ms, d.next_visible_at_ms) for d in found] == [
        (3, b"3", 30, 60_003),
        (4, b"native", 44, 60_004),
        (9, b"9", 90, 60_009),
    ]
    assert found[1].message.attributes == {"color": Attribute("string", b"red")}
    for d in found:
        assert (d.receive_count, d.first_received_at_ms, d.partition, d.sequence_number) == (2, 50, 1, "")
        assert MessageId.parse(d.id, SECRET) == MessageId("0123456789ab", 1, d.offset)
        assert Handle.parse(d.handle, SECRET) == Handle("0123456789ab", 1, 1, d.offset, 77, 1_000)
