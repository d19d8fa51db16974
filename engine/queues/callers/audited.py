"""The audit read again, the newest record first, in pages with a bound.

Times are those of Kafka's log, which has a record within a second of its answer, but later where
Kafka was away meanwhile. An append whose answer was lost is in the log twice, near each other: the
records behind a page are read too, so that a repeat is dropped also where a page ends between both.
"""

from __future__ import annotations

from msgspec import Struct

from engine.errors import InvalidValue
from engine.log import Log, Record, value_bytes
from runtime.scan import Scan
from schemas.accounts import account_of
from schemas.records.watching import AuditRecord
from schemas.wire import UndecodableRecord, decode

CHUNK = 1_000
CHUNK_BYTES = 4_000_000
# What one page reads: the client goes on with `next`.
MOST_RECORDS = 20_000
MOST_BYTES = 64_000_000
MOST_S = 3.0


class AuditQuery(Struct, frozen=True):
    """Which records: `from_ms` <= time < `to_ms` (epoch ms, None = no bound), and what is equal; ""
    = anything. `account`: what its principals have asked and what was asked of its queues; None =
    all.
    """

    from_ms: int | None = None
    to_ms: int | None = None
    principal: str = ""
    queue: str = ""
    verb: str = ""
    account: str | None = None

    def fits(self, record: AuditRecord) -> bool:
        """Whether it is one of them, whatever its time."""
        return (
            self.principal in ("", record.principal)
            and self.queue in ("", record.queue)
            and self.verb in ("", record.verb)
            and (
                self.account is None
                or self.account in (account_of(record.principal or record.key_id), account_of(record.queue))
            )
        )


class AuditPage(Struct, frozen=True):
    """Records, newest first; `next`, `scanned` and `cut` as of a page of messages."""

    records: list[AuditRecord]
    next: str | None
    scanned: int
    cut: str


class AuditReader:
    """Any number of tasks may read at once."""

    def __init__(self, topic: str, log: Log) -> None:
        self._topic = topic
        self._log = log

    async def page(self, wanted: AuditQuery, limit: int, cursor: str | None) -> AuditPage:
        """A page. Raises InvalidValue for a bad cursor, LogUnavailable."""
        before = None if cursor is None else _offset_of(cursor)
        low, high = await self._range(wanted, before)
        seen = (
            set() if before is None else {_name(record) for _, record in _read(await self._block(high, high + CHUNK))}
        )
        found: list[AuditRecord] = []
        scan, cut = Scan(most_records=MOST_RECORDS, most_bytes=MOST_BYTES, most_s=MOST_S), ""
        while low < high and not cut:
            start = max(low, high - CHUNK)
            records = await self._block(start, high)
            for offset, record in reversed(_read(records)):
                if _name(record) in seen:
                    continue
                seen.add(_name(record))
                if wanted.fits(record):
                    found.append(record)
                    if len(found) == limit:
                        return AuditPage(found, str(offset) if offset > low else None, scan.records + high - offset, "")
            scan.add(len(records), value_bytes(records))
            high, cut = start, scan.cut()
        more = low < high
        return AuditPage(found, str(high) if more else None, scan.records, cut if more else "")

    async def _range(self, wanted: AuditQuery, before: int | None) -> tuple[int, int]:
        """From which offset on, and below which, records are looked at."""
        part = self._topic, 0
        low = (await self._log.start_offsets([part])).get(part, 0)
        high = end = (await self._log.end_offsets([part])).get(part, 0)
        if wanted.from_ms:
            low = max(low, (await self._log.offsets_at([part], wanted.from_ms)).get(part, end))
        if wanted.to_ms is not None:
            high = min(high, (await self._log.offsets_at([part], wanted.to_ms)).get(part, end))
        return low, high if before is None else min(high, before)

    async def _block(self, start: int, end: int) -> list[Record]:
        """The records between two offsets, ascending; those that Kafka has no more are left out."""
        records: list[Record] = []
        while start < end:
            chunk = await self._log.fetch(self._topic, 0, start, end - start, CHUNK_BYTES)
            records += [record for record in chunk.records if record.offset < end]
            if chunk.next_offset <= start:
                break
            start = chunk.next_offset
        return records


def _read(records: list[Record]) -> list[tuple[int, AuditRecord]]:
    found = []
    for record in records:
        try:
            decoded = decode(record.value or b"")
        except UndecodableRecord:
            continue
        if isinstance(decoded, AuditRecord):
            found.append((record.offset, decoded))
    return found


def _name(record: AuditRecord) -> tuple[str, int]:
    """What no other record has, but for a repeat of it."""
    return record.worker, record.number


def _offset_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 16):
        raise InvalidValue("cursor is not what a page of the audit has given out", field="cursor", given=cursor[:100])
    return int(cursor)
