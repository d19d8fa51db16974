"""Which dead letters a redrive task may move: by partition, the offsets of the ids it was given;
and by which key one may be claimed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from engine.errors import InvalidValue
from engine.rules.ids import Ids
from engine.rules.limits import check_asked
from engine.rules.queue import Queue
from engine.window.entry import move_key_of
from schemas.identity import BadIdentity, MessageId
from schemas.records import Message

Offsets = list[list[int]]  # by partition, ascending

_ADDRESS = re.compile(r"([0-9a-f]{12})/(\d{1,4})/(\d{1,13})", re.ASCII)


def chosen_offsets(queue: Queue, ids: Sequence[str], known: Ids) -> Offsets:
    """The offsets of 1 to 10,000 message ids, or of addresses incarnation/partition/offset (Spark
    can't make ids: no secret).

    Raises InvalidValue: not an id, or of another queue or an earlier life of this one.
    """
    check_asked("ids", len(ids))
    chosen: list[set[int]] = [set() for _ in queue.units]
    for text in ids:
        address = _address(text, known)
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


def left_of(chosen: Offsets | None, nexts: Sequence[int], *, ended: bool) -> Offsets | None:
    """What of `chosen` is still to be moved, `nexts` being the positions; nothing of an ended
    task.
    """
    if chosen is None:
        return None
    return [[] if ended else offsets[bisect_left(offsets, at) :] for offsets, at in zip(chosen, nexts, strict=True)]


def _address(text: str, known: Ids) -> MessageId | None:
    if match := _ADDRESS.fullmatch(text):
        return MessageId(match[1], int(match[2]), int(match[3]))
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
