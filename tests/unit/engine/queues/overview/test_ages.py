"""When a message was sent: between two looks, or by a read."""

from __future__ import annotations

from typing import Any

from engine.errors import LogUnavailable
from engine.log.shapes import Chunk, Record
from engine.queues.overview.ages import READS, REMEMBERED_MS, Ages

PART = ("lw.q.a", 0)


class _Log:
    """A log whose record at each offset was sent at 1,000 times that."""

    def __init__(self) -> None:
        self.reads: list[int] = []
        self.away = False

    async def fetch(self, topic: str, partition: int, offset: int, max_records: int, max_bytes: int) -> Chunk:
        self.reads.append(offset)
        if self.away:
            raise LogUnavailable("away")
        return Chunk([Record(topic, partition, offset, offset * 1000, None, b"", None)], offset + 1, True)


def _ages() -> tuple[Ages, _Log]:
    log: Any = _Log()
    return Ages(log), log


async def test_what_came_between_two_looks_is_not_read() -> None:
    ages, log = _ages()
    for end, at_ms in ((5, 10_000), (8, 12_000), (8, 14_000), (9, 16_000)):
        ages.note_end(PART, end, at_ms)
    # 5 to 7 came after the look of 10 s and before that of 12; 8 after that of 14.
    assert [await ages.sent_at_ms(PART, offset) for offset in (5, 7, 8)] == [10_000, 10_000, 14_000]
    assert log.reads == []


async def test_what_is_older_than_all_looks_or_came_in_a_long_pause_is_read_once() -> None:
    ages, log = _ages()
    ages.note_end(PART, 5, 10_000)
    ages.note_end(PART, 9, 12_001)
    assert [await ages.sent_at_ms(PART, offset) for offset in (3, 3, 6, 6)] == [3000, 3000, 6000, 6000]
    assert log.reads == [3, 6]


async def test_looks_are_forgotten_after_a_minute() -> None:
    ages, log = _ages()
    for number in range(100):
        ages.note_end(PART, 1 + number, number * 2000)
    assert await ages.sent_at_ms(PART, 98) == 97 * 2000
    assert log.reads == []
    old = 99 - REMEMBERED_MS // 2000 - 2
    assert await ages.sent_at_ms(PART, old) == old * 1000
    assert log.reads == [old]


async def test_a_round_reads_so_much_and_an_older_record_stands_for_the_rest() -> None:
    ages, log = _ages()
    for offset in range(READS):
        await ages.sent_at_ms(PART, offset)
    assert await ages.sent_at_ms(PART, READS) == (READS - 1) * 1000
    assert await ages.sent_at_ms(("lw.q.b", 0), 7) is None
    assert len(log.reads) == READS
    ages.begin_round()
    assert await ages.sent_at_ms(("lw.q.b", 0), 7) == 7000


async def test_kafka_that_is_away_is_not_known() -> None:
    ages, log = _ages()
    log.away = True
    assert await ages.sent_at_ms(PART, 3) is None
    log.away = False
    assert await ages.sent_at_ms(PART, 3) == 3000


async def test_a_partition_that_is_gone_is_forgotten() -> None:
    ages, log = _ages()
    assert await ages.sent_at_ms(PART, 3) == 3000
    ages.forget([PART])
    await ages.sent_at_ms(PART, 3)
    assert log.reads == [3, 3]
