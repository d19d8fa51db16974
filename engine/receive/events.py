"""What happened to one message: what its record and the journal say, and nothing else.

The journal does not say who received or settled a message, and has what happened for 30 days.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Sequence

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, Unavailable
from engine.journal.outbox import Journal, journal_key
from engine.log import Log, value_bytes
from engine.rules.queue import Ids, Queue
from engine.shapes import Event, Life, Peeked
from engine.window.window import Journaled, Window, reach_journal
from runtime.deadline import journal_until
from runtime.scan import Scan
from schemas.filters import matches
from schemas.identity import MessageId, incarnation_in
from schemas.records import JournalEntry, JournalRecord, TagRecord
from schemas.records.moves import read_move
from schemas.vocabulary import LOG_TIME_MARGIN_MS, SETTLES, EventKind
from schemas.wire import UndecodableRecord, decode
from state.store import Store

CHUNK = 1_000
CHUNK_BYTES = 4_000_000
# What one page reads of the journal, in which the entries of all queues are.
MOST_RECORDS = 100_000
MOST_BYTES = 64_000_000
MOST_S = 3.0
SENT = "sent"
# Bookkeeping, or of many messages: what it means for one of them is told elsewhere.
_PASSED = frozenset((EventKind.FLOOR, EventKind.COPIED))
# The reasons of the others are marks and times.
_REASONED = frozenset((EventKind.DYING, EventKind.SKIPPED, EventKind.DELETED, EventKind.CANCELLED, EventKind.EXPIRED))


class _Place(msgspec.Struct, array_like=True):
    """How far the journal was read: the next offset, -1 = not begun; the last seq of the unit; how
    often the message was delivered, by tag; the tags that have settled it; from when on the journal
    is known, 0 = from the send on.
    """

    offset: int = -1
    seq: int = 0
    counts: dict[int, int] = {}
    settled: list[int] = []
    since_ms: int = 0


_places = msgspec.msgpack.Decoder(_Place)


class Events:
    """Any number of tasks may ask."""

    def __init__(
        self,
        log: Log,
        store: Store,
        catalog: Catalog,
        window: Window,
        journal: Journal,
        wait_journaled: Journaled,
        ids: Ids,
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._window = window
        self._journal = journal
        self._wait_journaled = wait_journaled
        self._ids = ids

    async def of(self, queue: Queue, peeked: Peeked, tags: Sequence[TagRecord], next: str | None) -> Life:
        """What happened to a message under some tags of its queue, oldest first; a page at a time.
        Raises InvalidValue for a bad `next`, Unavailable.
        """
        place = _Place() if next is None else _place_of(next)
        events = [self._sent(peeked)] if next is None else []
        partition, wanting = peeked.partition, _wanting(tags, peeked)
        unit = queue.units[partition]
        part, key = (self._catalog.journal_topic, self._journal.partition_of(unit)), journal_key(unit)
        is_current = await self._is_journaled(queue, partition)
        start = (await self._log.start_offsets([part])).get(part, 0)
        end = (await self._log.end_offsets([part])).get(part, 0)
        if place.offset < 0:
            place.offset = max(
                start, (await self._log.offsets_at([part], peeked.sent_at_ms - LOG_TIME_MARGIN_MS)).get(part, start)
            )
        # What came before the first record that is left may have been about the message too.
        lacks_some = start > 0 and place.offset <= start
        scan, cut = Scan(most_records=MOST_RECORDS, most_bytes=MOST_BYTES, most_s=MOST_S), ""
        while place.offset < end and not cut and not set(wanting) <= set(place.settled):
            chunk = await self._log.fetch(*part, place.offset, CHUNK, CHUNK_BYTES)
            if lacks_some and chunk.records:
                place.since_ms, lacks_some = chunk.records[0].timestamp_ms, False
            for record in chunk.records:
                if record.key == key and record.value:
                    events += self._told(peeked.offset, record.value, wanting, place)
            scan.add(len(chunk.records), value_bytes(chunk.records))
            place.offset, cut = chunk.next_offset, scan.cut()
        if lacks_some:
            place.since_ms = self._store.units.now_ms()
        is_over = set(wanting) <= set(place.settled)
        more = place.offset < end and not is_over
        return Life(
            events=events,
            complete=not more and not place.since_ms and (is_current or is_over),
            since_ms=place.since_ms or peeked.sent_at_ms,
            next=_token(place) if more else None,
            scanned=scan.records,
            cut=cut if more else "",
        )

    async def _is_journaled(self, queue: Queue, partition: int) -> bool:
        """Whether the journal has all that was done to a partition before the call."""
        with contextlib.suppress(Unavailable):
            await reach_journal(
                self._window, self._store.upkeep, self._wait_journaled, (queue, partition), journal_until()
            )
            return True
        return False

    def _sent(self, peeked: Peeked) -> Event:
        message, origin = peeked.message, peeked.message.origin
        if origin is None:
            return Event(SENT, peeked.sent_at_ms, by=message.sender)
        queue = self._catalog.by_incarnation.get(incarnation_in(origin.from_id))
        name = origin.original_queue if queue is None else queue.name
        return Event(
            SENT,
            peeked.sent_at_ms,
            tag=origin.from_tag,
            reason=origin.reason,
            by=message.sender,
            queue=name,
            id=origin.from_id,
        )

    def _told(self, offset: int, value: bytes, wanting: dict[int, str], place: _Place) -> list[Event]:
        """What a record of the unit says of a message; entries that were seen are passed."""
        try:
            record = decode(value)
        except UndecodableRecord:
            return []
        events: list[Event] = []
        if not isinstance(record, JournalRecord):
            return events
        for entry in record.entries:
            if entry.seq <= place.seq:
                continue
            place.seq = entry.seq
            is_about = offset < entry.offsets[0] if entry.kind == EventKind.PURGED else offset in entry.offsets
            if is_about and entry.kind not in _PASSED and entry.tag in wanting and entry.tag not in place.settled:
                events.append(self._event(offset, entry, wanting[entry.tag], place))
        return events

    def _event(self, offset: int, entry: JournalEntry, tag: str, place: _Place) -> Event:
        kind, count = EventKind(entry.kind), place.counts.get(entry.tag, 0)
        if kind in (EventKind.LEASED, EventKind.RETURNED, EventKind.UNPARKED):
            count = {EventKind.LEASED: count + 1, EventKind.RETURNED: max(0, count - 1)}.get(kind, 0)
            place.counts = {**place.counts, entry.tag: count}
        if kind in SETTLES or kind == EventKind.PURGED:
            place.settled = [*place.settled, entry.tag]
        until_ms = entry.times[entry.offsets.index(offset)] if entry.times and kind != EventKind.PURGED else None
        reason = entry.reason if kind in _REASONED else ""
        task, queue, copied = "", None, None
        if kind in (EventKind.DEAD, EventKind.MOVED):
            task, copy = read_move(entry.reason)
            if (at := MessageId.of_address(copy)) is not None:
                target = self._catalog.by_incarnation.get(at.incarnation)
                queue, copied = None if target is None else target.name, self._ids.id_of(at)
        return Event(
            kind,
            entry.at_ms,
            tag=tag,
            receive_count=count,
            until_ms=until_ms,
            reason=reason,
            task=task,
            queue=queue,
            id=copied,
        )


def _token(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


def _place_of(token: str) -> _Place:
    try:
        place = _places.decode(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise InvalidValue("next is not what a page of events has given out", field="next", given=token[:100]) from None
    if not (0 <= place.offset < 2**53 and 0 <= place.since_ms < 2**53):
        raise InvalidValue("next is not what a page of events has given out", field="next", given=token[:100])
    return place


def _wanting(tags: Sequence[TagRecord], peeked: Peeked) -> dict[int, str]:
    """The names of the tags that want a message, by id."""
    return {
        tag.id: tag.name
        for tag in tags
        if tag.start_offsets[peeked.partition] <= peeked.offset and matches(tag.filter, peeked.message.attributes)
    }
