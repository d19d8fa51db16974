"""Which dead letters a redrive task may move: by partition, the offsets of the ids it was given;
and by which key one may be claimed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from engine.errors import InvalidValue
from engine.log import Record
from engine.rules.ids import Ids
from engine.rules.limits import RESERVED_ATTRIBUTE, check_asked, check_name
from engine.rules.placement import with_priority
from engine.rules.queue import Queue
from engine.window.entry import move_key_of
from schemas.filters import Text, contains, matches
from schemas.identity import BadIdentity, MessageId
from schemas.records import Choice, Message, TaskRecord
from schemas.vocabulary import DEATHS
from schemas.wire import UndecodableRecord, decode_message

Offsets = list[list[int]]  # by partition, ascending


def chosen_offsets(queue: Queue, ids: Sequence[str], known: Ids) -> Offsets:
    """The offsets of 1 to 10,000 message ids, or of addresses incarnation/partition/offset (Spark
    can't make ids: no secret).

    Raises InvalidValue: not an id, or of another queue or an earlier life of this one.
    """
    check_asked("ids", len(ids))
    chosen: list[set[int]] = [set() for _ in queue.units]
    for text in ids:
        address = address_of(text, known)
        if address is None or address.incarnation != queue.incarnation or address.partition >= len(chosen):
            raise InvalidValue(f"{text[:100]!r} is no id or address of a message in {queue.name!r}", field="ids", given=text[:100])
        chosen[address.partition].add(address.offset)
    return [sorted(offsets) for offsets in chosen]


def next_chosen(chosen: Offsets | None, partition: int, offset: int, end: int) -> int:
    """The first offset from `offset` on that may be moved; `end` when there is none. None chosen =
    all may be.
    """
    if chosen is None:
        return min(offset, end)
    offsets = chosen[partition]
    at = bisect_left(offsets, offset)
    return min(offsets[at], end) if at < len(offsets) else end


def check_choice(choice: Choice | None) -> None:
    """Raises InvalidValue."""
    if choice is None:
        return
    check_asked("from", choice.from_ms)
    check_asked("to", choice.to_ms)
    if choice.reason and choice.reason not in DEATHS:
        given = choice.reason[:100]
        raise InvalidValue(f"reason must be {' or '.join(DEATHS)}, given {given!r}", field="reason", limit=list(DEATHS), given=given)
    if choice.source:
        check_name("source", choice.source)
    if choice.text:
        check_asked("text", len(choice.text))


def fits(choice: Choice | None, message: Message) -> bool:
    """Whether a dead letter is one that a task may move, by why and where it died and what is in
    its body. (By when it came, the positions of the task say.)
    """
    if choice is None:
        return True
    origin, source = message.origin, message.attributes.get(RESERVED_ATTRIBUTE)
    if choice.reason and (origin is None or origin.reason != choice.reason):
        return False
    if choice.source and (source is None or source.value != choice.source.encode()):
        return False
    return contains(message.body, Text(choice.text, choice.any_case) if choice.text else None)


def letters_of(task: TaskRecord, queue: Queue, partition: int, records: Sequence[Record]) -> dict[int, tuple[Message, int]]:
    """The dead letters among some records that a task may move, by offset, and when they came."""
    end, letters = task.end_offsets[partition], dict[int, tuple[Message, int]]()
    for record in records:
        try:
            message = with_priority(queue.record, partition, decode_message(record.value, record.headers))
        except UndecodableRecord:
            continue
        may_go = record.offset < end and next_chosen(task.chosen, partition, record.offset, end) == record.offset
        if may_go and matches(task.filter, message.attributes) and fits(task.choice, message):
            letters[record.offset] = (message, record.timestamp_ms)
    return letters


def left_of(chosen: Offsets | None, nexts: Sequence[int], *, ended: bool) -> Offsets | None:
    """What of `chosen` is still to be moved, `nexts` being the positions; nothing of an ended
    task.
    """
    if chosen is None:
        return None
    return [[] if ended else offsets[bisect_left(offsets, at) :] for offsets, at in zip(chosen, nexts, strict=True)]


def address_of(text: str, known: Ids) -> MessageId | None:
    """What a message id or an address names; None = it is neither."""
    if (address := MessageId.of_address(text)) is not None:
        return address
    try:
        return known.read_id(text)
    except BadIdentity:
        return None


def beyond_key(queue: Queue, message: Message) -> str:
    """The key by which a dead letter may be claimed beyond the window; FIFO dead letters go in
    order, so from the window.
    """
    origin = message.origin
    return "" if origin is None or queue.record.fifo else move_key_of(origin.from_id, origin.from_tag)
