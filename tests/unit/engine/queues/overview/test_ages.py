"""When a message was sent: between two looks, or by a read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from engine.errors import LogUnavailable
from engine.log import Record
from engine.queues.overview.counting import READS, REMEMBERED_MS, Ages
from state.keys import Unit

UNIT, OTHER = Unit("1" * 12, 0), Unit("2" * 12, 0)


class _Log:
    """A log whose record at each offset was sent at 1,000 times that, but for markers."""

    def __init__(self) -> None:
        self.reads: list[int] = []
        self.markers: set[int] = set()
        self.away = False

    async def read_each(
        self, topic: str, partition: int, offsets: Collection[int], use: Callable[[Record], None]
    ) -> None:
        self.reads += offsets
        if self.away:
            raise LogUnavailable("away")
        for offset in offsets:
            if offset not in self.markers:
                use(Record(topic, partition, offset, offset * 1000, None, b"", None))


def _ages() -> tuple[Ages, _Log]:
    log: Any = _Log()
    return Ages(log), log


async def _sent(ages: Ages, *offsets: int, unit: Unit = UNIT) -> list[int]:
    return [await ages.sent_at_ms("lw.q.a", unit, offset) for offset in offsets]


async def test_what_came_between_two_looks_is_not_read() -> None:
    ages, log = _ages()
    for end, at_ms in ((5, 10_000), (8, 12_000), (8, 14_000), (9, 16_000)):
        ages.note_end(UNIT, end, at_ms)
    # 5 to 7 came after the look of 10 s and before that of 12; 8 after that of 14.
    assert await _sent(ages, 5, 7, 8) == [10_000, 10_000, 14_000]
    assert log.reads == []


async def test_what_is_older_than_all_looks_or_came_in_a_long_pause_is_read_once() -> None:
    ages, log = _ages()
    ages.note_end(UNIT, 5, 10_000)
    ages.note_end(UNIT, 9, 12_001)
    assert await _sent(ages, 3, 3, 6, 6) == [3000, 3000, 6000, 6000]
    assert log.reads == [3, 6]


async def test_looks_are_forgotten_after_a_minute() -> None:
    ages, log = _ages()
    for number in range(100):
        ages.note_end(UNIT, 1 + number, number * 2000)
    assert await _sent(ages, 98) == [97 * 2000]
    assert log.reads == []
    old = 99 - REMEMBERED_MS // 2000 - 2
    assert await _sent(ages, old) == [old * 1000]
    assert log.reads == [old]


async def test_a_round_reads_so_much_and_an_older_record_stands_for_the_rest() -> None:
    ages, log = _ages()
    await _sent(ages, *range(READS))
    assert await _sent(ages, READS) == [(READS - 1) * 1000]
    assert await _sent(ages, 7, unit=OTHER) == [0]
    assert len(log.reads) == READS
    ages.begin_round()
    assert await _sent(ages, 7, unit=OTHER) == [7000]


async def test_what_kafka_does_not_give_is_not_known() -> None:
    ages, log = _ages()
    log.markers = {3}
    assert await _sent(ages, 3) == [0]
    log.away = True
    assert await _sent(ages, 4) == [0]
    log.away = False
    assert await _sent(ages, 4) == [4000]


async def test_another_life_of_a_queue_has_nothing_of_the_one_before() -> None:
    ages, log = _ages()
    ages.note_end(UNIT, 5, 10_000)
    ages.note_end(UNIT, 9, 11_000)
    await _sent(ages, 3)
    assert await _sent(ages, 3, 6, unit=OTHER) == [3000, 6000]
    assert log.reads == [3, 3, 6]


async def test_a_life_that_is_over_is_forgotten() -> None:
    ages, log = _ages()
    await _sent(ages, 3)
    ages.forget([UNIT.incarnation])
    await _sent(ages, 3)
    assert log.reads == [3, 3]
