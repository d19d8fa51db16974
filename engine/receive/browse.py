"""peek, query, direct delete: messages looked at where they are, in Kafka, with their state from
the window. Nothing is counted. Each look is told what whoever asks sees of messages (`sight`; None
= all, also what a mask hides): text and attributes are looked for in that.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence

import msgspec

from engine.errors import InvalidValue, MessageLeased, MessageNotFound
from engine.log import Log, Record, value_bytes
from engine.receive.serving import Refresh
from engine.rules.fifo import sequence_number
from engine.rules.limits import MAX_BATCH, MAX_RECEIVE_BYTES, check_asked, check_filter, check_range, message_bytes
from engine.rules.masks.sight import Sight
from engine.rules.placement import with_priority
from engine.rules.queue import Ids, Queue
from engine.rules.rights import Targets
from engine.shapes import Page, Peeked
from engine.window.batches.message_log import MessageLog
from engine.window.entry import far_due_ms, far_dues
from engine.window.window import Window
from runtime.scan import Scan
from schemas.filters import Filter, Text, contains, matches
from schemas.identity import BadIdentity, Handle, MessageId
from schemas.records import Message, TagRecord
from schemas.vocabulary import MessageState
from schemas.wire import UndecodableRecord, decode_message
from state.keys import Unit
from state.replies import Next, State
from state.store import Store

CHUNK = 500
CHUNK_BYTES = 4_000_000
# A query looks at no more than this before it answers with a page, be it empty: the client goes on
# with `next`. Time is counted between reads, of which there is one at least.
LOOKED_AT = 20_000
LOOKED_AT_BYTES = 64_000_000
LOOKED_S = 3.0
# Messages that are read one by one are in memory together, so many at a time.
AT_ONCE = 25


class Wanted(msgspec.Struct, frozen=True):
    """Which messages a query wants: in a state under the tag, with attributes, with text; `held`:
    not settled under every tag. A message fits as it is shown.
    """

    sight: Sight | None
    state: str | None
    filter: Filter | None
    held: bool = False
    text: Text | None = None

    def check(self) -> None:
        """Raises InvalidValue."""
        check_filter(self.filter)
        check_asked("text", None if self.text is None else len(self.text.words))
        state = self.state
        if state is not None and state not in set(MessageState):
            raise InvalidValue(
                f"state must be one of {', '.join(MessageState)}", field="state", limit=list(MessageState), given=state
            )

    def fits(self, message: Message) -> bool:
        return matches(self.filter, message.attributes) and contains(message.body, self.text)


class Browse:
    """Reads of single messages and of ranges."""

    def __init__(self, log: Log, store: Store, targets: Targets, window: Window, ids: Ids, refresh: Refresh) -> None:
        self._log = log
        self._messages = MessageLog(log)
        self._store = store
        self._targets = targets
        self._window = window
        self._ids = ids
        self._refresh = refresh

    def address(self, queue: Queue, text: str) -> tuple[int, int]:
        """(partition, offset) of a message id or a receipt handle. Raises MessageNotFound, also for
        those of other queues.
        """
        try:
            found: MessageId | Handle = self._ids.read_id(text)
        except BadIdentity:
            try:
                found = self._ids.read_handle(text)
            except BadIdentity:
                raise MessageNotFound(
                    f"{text[:100]!r} is neither a message id nor a receipt handle", field="id", given=text[:100]
                ) from None
        if found.incarnation != queue.incarnation or found.partition >= len(queue.units):
            raise MessageNotFound(f"queue {queue.name!r} has no message {text[:100]!r}", field="id", given=text[:100])
        return found.partition, found.offset

    async def peek(
        self, queue: Queue, text: str, tag: TagRecord, sight: Sight | None, *, of_tag: bool = False, held: bool = False
    ) -> Peeked:
        """One message by id or handle, whatever its state; `of_tag`: only one that the tag's filter
        takes; `held`: only one that is not settled under every tag. Raises MessageNotFound.
        """
        partition, offset = self.address(queue, text)
        record = (await self._messages.read_at(queue.topic, partition, [offset])).get(offset)
        message = _decoded(record)
        wanted = message is not None and matches(tag.filter, message.attributes)
        if record is None or message is None or (of_tag and not wanted):
            raise MessageNotFound(
                f"queue {queue.name!r} has no message {text[:100]!r}, or no longer", field="id", given=text[:100]
            )
        due_ms = far_due_ms(queue, record.timestamp_ms, message) if wanted else 0
        (state,) = await self._states(queue, tag, partition, {offset: due_ms})
        found = self._peeked(queue, record, message, state)
        if held and not await self._held(queue, partition, [found]):
            raise MessageNotFound(f"message {text[:100]!r} is settled under all tags", field="id", given=text[:100])
        (shown,) = await _masked(sight, [found.message])
        return _seen(found, shown)

    async def _held(self, queue: Queue, partition: int, rows: Sequence[Peeked]) -> list[Peeked]:
        """Those of some messages of a partition that are not settled under every tag."""
        left = {row.offset: row for row in rows if row.state == MessageState.SETTLED}
        for tag in queue.tags:
            if left:
                dues = {
                    offset: far_due_ms(queue, row.sent_at_ms, row.message)
                    if matches(tag.filter, row.message.attributes)
                    else 0
                    for offset, row in left.items()
                }
                states = await self._states(queue, tag, partition, dues)
                left = {
                    offset: left[offset]
                    for offset, one in zip(dues, states, strict=True)
                    if one.state == MessageState.SETTLED
                }
        return [row for row in rows if row.offset not in left]

    async def peek_next(self, queue: Queue, tag: TagRecord, sight: Sight | None, max: int) -> list[Peeked]:
        """What a receive would lease now, up to `max`, in its order. Others may lease it meanwhile.
        Raises InvalidValue, Unavailable.
        """
        check_asked("max", max)
        peeked, over = await self._peek_next(queue, tag, max)
        if over:
            peeked, _ = await self._peek_next(queue, tag, MAX_BATCH)
        masked = await _masked(sight, [one.message for one in peeked[:max]])
        return list(map(_seen, peeked, masked))

    async def _peek_next(self, queue: Queue, tag: TagRecord, max: int) -> tuple[list[Peeked], int]:
        """Up to `max` messages, and how many of so many were left out, for their retention is over
        since they were sent: the window knows due times alone.
        """
        found = await self._next(queue, tag, max)
        if not found and await self._refresh(queue):
            found = await self._next(queue, tag, max)
        offsets: dict[int, list[int]] = {}
        for partition, one in found:
            offsets.setdefault(partition, []).append(one.offset)
        most = MAX_RECEIVE_BYTES // (len(offsets) or 1)
        reads = await asyncio.gather(
            *(self._log.read_at(queue.topic, p, some, max_bytes=most) for p, some in offsets.items())
        )
        records = dict(zip(offsets, reads, strict=True))
        peeked, over, size = list[Peeked](), 0, 0
        over_ms = (
            self._store.units.now_ms() - self._store.units.keep_ms(queue.expires_ms) if queue.expires_from_send else -1
        )
        for partition, one in found:
            record = records[partition].get(one.offset)
            message = _decoded(record)
            size += len((record and record.value) or b"")
            if peeked and (
                size > MAX_RECEIVE_BYTES or (record is None and value_bytes(records[partition].values()) >= most)
            ):
                break
            if record is not None and record.timestamp_ms <= over_ms:
                over += 1
            elif record is not None and message is not None:
                state = State(MessageState.READY, one.count, one.first_received_at_ms or None, None)
                peeked.append(self._peeked(queue, record, message, state))
        return peeked, over

    async def _next(self, queue: Queue, tag: TagRecord, max: int) -> list[tuple[int, Next]]:
        """Partition and place of the first messages: of the first priorities, else by age."""
        record, bounds = queue.record, queue.bounds[tag.id]
        most = bounds.park or (bounds.dead_letter if self._targets.most_receives(queue, tag.id) else 0)

        async def ask(unit: Unit) -> list[Next]:
            self._window.used(queue, unit.partition)
            return await self._window.call(
                queue,
                lambda g: self._store.leases.peek_next(
                    unit,
                    g,
                    tag.id,
                    max=max,
                    max_receive_count=most,
                    retention_ms=queue.expires_ms,
                    per_group=int(record.one_per_group),
                ),
            )

        looks = await asyncio.gather(*(ask(unit) for unit in queue.units))
        found = [(partition, one) for partition, some in enumerate(looks) for one in some]
        if not record.priority and not record.fifo:
            found.sort(key=lambda at: (at[1].later, at[1].since_ms))
        return found[:max]

    async def _states(self, queue: Queue, tag: TagRecord, partition: int, dues: dict[int, int]) -> list[State]:
        """States of messages that the tag wants; `dues` has when each is due that is far, else
        0.
        """
        unit = queue.units[partition]
        return await self._window.call(queue, lambda g: self._store.leases.states(unit, g, tag.id, list(dues), dues))

    def _peeked(self, queue: Queue, record: Record, message: Message, state: State) -> Peeked:
        word = state.state
        if word == MessageState.STORED and message.delay_ms:
            word = MessageState.DELAYED
        return Peeked(
            id=self._ids.message_id(queue, record.partition, record.offset),
            message=with_priority(queue.record, record.partition, message),
            sent_at_ms=record.timestamp_ms,
            state=word,
            receive_count=state.count,
            first_received_at_ms=state.first_received_at_ms,
            next_visible_at_ms=state.next_visible_at_ms,
            partition=record.partition,
            offset=record.offset,
            sequence_number=sequence_number(record.offset) if queue.record.fifo else "",
        )

    async def query(
        self,
        queue: Queue,
        tag: TagRecord,
        wanted: Wanted,
        from_ms: int | None,
        to_ms: int | None,
        limit: int,
        next: str | None,
        only: int | None = None,
    ) -> Page:
        """Messages sent in [from_ms, to_ms), partition by partition in log order; a page at a time.
        `only` one partition of them. Raises InvalidValue.
        """
        wanted.check()
        check_asked("limit", limit)
        check_asked("from", from_ms)
        check_asked("to", to_ms)
        check_range("partition", only, 0, len(queue.units) - 1)
        last = len(queue.units) if only is None else only + 1
        partition, offset = _resume(next, len(queue.units)) if next else (only or 0, -1)
        scan = Scan(most_records=LOOKED_AT, most_bytes=LOOKED_AT_BYTES, most_s=LOOKED_S)
        found, room = list[Peeked](), MAX_RECEIVE_BYTES
        while partition < last:
            if offset < 0:
                offset = await self._first(queue, partition, from_ms)
            # Masks take long, so the bound of time is looked at more often.
            size = CHUNK_BYTES if wanted.sight is None else CHUNK_BYTES // 16
            chunk = await self._messages.fetch(queue.topic, partition, offset, CHUNK, size)
            records = [r for r in chunk.records if to_ms is None or r.timestamp_ms < to_ms]
            for peeked in await self._matching(queue, tag, partition, records, wanted):
                room -= message_bytes(peeked.message)
                if len(found) == limit or (found and room < 0):
                    scanned = scan.records + sum(record.offset < peeked.offset for record in records)
                    return Page(found, page_token(partition, peeked.offset), scanned)
                found.append(peeked)
            scan.add(len(chunk.records), value_bytes(chunk.records))
            is_over = chunk.at_end or len(records) < len(chunk.records)
            partition, offset = (partition + 1, -1) if is_over else (partition, chunk.next_offset)
            if (cut := scan.cut()) and partition < last:
                return Page(found, page_token(partition, offset), scan.records, cut)
        return Page(found, None, scan.records)

    async def among(
        self, queue: Queue, tag: TagRecord, partition: int, offsets: Sequence[int], wanted: Wanted, max: int
    ) -> list[Peeked]:
        """The first `max`, or a few more, of some messages of a partition that are wanted, in the
        order of the log.
        """
        found, left = list[Peeked](), sorted(offsets)
        while left and len(found) < max:
            some, left = left[:AT_ONCE], left[AT_ONCE:]
            records = await self._messages.read_at(queue.topic, partition, some)
            found += await self._matching(
                queue, tag, partition, [records[offset] for offset in sorted(records)], wanted
            )
        return found

    async def _first(self, queue: Queue, partition: int, from_ms: int | None) -> int:
        parts = [(queue.topic, partition)]
        found = await (self._log.start_offsets(parts) if not from_ms else self._log.offsets_at(parts, from_ms))
        return found.get(parts[0], 0)

    async def _matching(
        self, queue: Queue, tag: TagRecord, partition: int, records: list[Record], wanted: Wanted
    ) -> list[Peeked]:
        decoded = ((record, _decoded(record)) for record in records)
        of_tag = [
            (record, with_priority(queue.record, partition, message))
            for record, message in decoded
            if message is not None and matches(tag.filter, message.attributes)
        ]
        masked = await _masked(wanted.sight, [message for _, message in of_tag])
        kept = [(*pair, other) for pair, other in zip(of_tag, masked, strict=True) if wanted.fits(other or pair[1])]
        if not kept:
            return []
        dues = {record.offset: far_due_ms(queue, record.timestamp_ms, message) for record, message, _ in kept}
        states = await self._states(queue, tag, partition, dues)
        rows = [
            _seen(self._peeked(queue, record, message, state), other)
            for (record, message, other), state in zip(kept, states, strict=True)
        ]
        rows = [row for row in rows if wanted.state is None or row.state == wanted.state]
        return await self._held(queue, partition, rows) if wanted.held else rows

    async def delete(self, queue: Queue, text: str, *, unreceived: bool) -> None:
        """Settles a message under all tags by its id; one that was received under one of them is
        MessageLeased if only `unreceived` ones are to go. Raises MessageNotFound, MessageLeased.
        """
        partition, offset = self.address(queue, text)
        ends = await self._log.end_offsets([(queue.topic, partition)])
        if offset >= ends.get((queue.topic, partition), 0):
            raise MessageNotFound(f"queue {queue.name!r} has no message {text[:100]!r}", field="id", given=text[:100])
        self._window.used(queue, partition)
        unit = queue.units[partition]
        record = (await self._messages.read_at(queue.topic, partition, [offset])).get(offset)
        message = _decoded(record)
        wanted = _wanted(queue, partition, offset, message) if unreceived else ""
        dues = [0] * len(queue.tags)
        if record is not None and message is not None:
            dues = far_dues(queue, record.timestamp_ms, message)
        word = await self._window.call(
            queue, lambda g: self._store.deferred.delete(unit, g, queue.tag_ids, offset, dues, wanted=wanted)
        )
        given = text[:100]
        if word == "busy":
            raise MessageLeased(f"message {given!r} is leased; delete it with its handle", field="id", given=given)
        if word == "received":
            raise MessageLeased(f"message {given!r} was received; delete it with its handle", field="id", given=given)
        if word == "settled":
            raise MessageNotFound(f"message {given!r} is settled under all tags", field="id", given=given)


def _wanted(queue: Queue, partition: int, offset: int, message: Message | None) -> str:
    """A digit for each tag: 1 = it began at or before a message and its filter takes that."""
    if message is None:
        return "0" * len(queue.tags)
    wants = (tag.start_offsets[partition] <= offset and matches(tag.filter, message.attributes) for tag in queue.tags)
    return "".join("1" if want else "0" for want in wants)


def _decoded(record: Record | None) -> Message | None:
    if record is None:
        return None
    try:
        return decode_message(record.value, record.headers)
    except UndecodableRecord:
        return None


async def _masked(sight: Sight | None, messages: list[Message]) -> list[Message | None]:
    """Messages as they are shown, None = as they are. In a thread: a mask of many paths may take a
    second of a large body, and its owner chooses it.
    """
    if sight is None or not messages:
        return [None] * len(messages)
    return await asyncio.to_thread(lambda: [sight.of(message) for message in messages])


def _seen(peeked: Peeked, shown: Message | None) -> Peeked:
    """A message that is looked at, as it is shown; None = as it is."""
    return peeked if shown is None else msgspec.structs.replace(peeked, message=shown, masked=True)


def page_token(partition: int, offset: int) -> str:
    """The `next` of a page that begins at an offset of a partition."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((partition, offset))).decode().rstrip("=")


def _resume(token: str, partitions: int) -> tuple[int, int]:
    try:
        partition, offset = msgspec.msgpack.decode(
            base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True), type=tuple[int, int]
        )
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise InvalidValue("next is not a token that a query has given out", field="next", given=token[:100]) from None
    if not 0 <= partition < partitions or not -1 <= offset < 2**40:
        raise InvalidValue("next is not a token of this queue", field="next", given=token[:100])
    return partition, offset
