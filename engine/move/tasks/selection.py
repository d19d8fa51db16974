"""Which dead letters a redrive task may move, by which key one may be claimed, and where it is
sent: to the queue that the task names, or home.

Home is the life of the queue that the dead letter came from: its first id names that. A queue that
somebody has created later by the same name is not its home. Whoever asked for the task must be
allowed to send there, and is asked about again at each move.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, TaskNotFound
from engine.log import Record
from engine.rules.limits import RESERVED_ATTRIBUTE, check_asked, check_name
from engine.rules.placement import with_priority
from engine.rules.queue import Ids, Queue
from engine.rules.rights import Rights, Targets
from engine.window.entry import move_key_of
from schemas.filters import Text, contains, matches
from schemas.identity import BadIdentity, MessageId, incarnation_in
from schemas.records import Choice, Message, TaskRecord
from schemas.vocabulary import DEATHS, Verb
from schemas.wire import UndecodableRecord, decode_message


class Destinations:
    """Destinations of tasks, by the records of now. No call waits for anything."""

    def __init__(self, catalog: Catalog, rights: Rights, targets: Targets) -> None:
        self._catalog = catalog
        self._rights = rights
        self._targets = targets

    def is_dead_letter_queue(self, queue: Queue) -> bool:
        """Whether a policy of some queue means this one."""
        return bool(self._targets.sources(queue))

    def of(self, task: TaskRecord, message: Message) -> Queue | None:
        """Where a dead letter goes; None = it can't go there."""
        queue = self._named(task) if task.destination else self._home(message)
        return queue if queue is not None and self._may_send(task, queue) else None

    def fault(self, task: TaskRecord) -> str:
        """Why a task can move nothing any more; empty = it can."""
        if not task.destination:
            return ""
        queue = self._named(task)
        if queue is None:
            return f"queue {task.destination!r} was deleted"
        return (
            ""
            if self._may_send(task, queue)
            else f"principal {task.principal!r} may not send to queue {task.destination!r}"
        )

    def _named(self, task: TaskRecord) -> Queue | None:
        queue = self._catalog.queues.get(task.destination)
        if queue is None or not task.destination_incarnation:
            # A task of before noted no life: it means the queue that was there when it began.
            return queue if queue is not None and queue.record.created_at_ms <= task.created_at_ms else None
        return queue if task.destination_incarnation in queue.lives else None

    def _home(self, message: Message) -> Queue | None:
        origin = message.origin
        queue = None if origin is None else self._catalog.queues.get(origin.original_queue)
        if origin is None or queue is None:
            return None
        return queue if incarnation_in(origin.original_id) in queue.lives else None

    def _may_send(self, task: TaskRecord, queue: Queue) -> bool:
        return self._rights.still_may(task.principal, Verb.SEND, queue)


def no_task(id: str) -> TaskNotFound:
    """The same for a task that does not exist and for one of a queue that who asks is not told
    of.
    """
    return TaskNotFound(f"there is no task {id!r}", field="id", given=id[:100])


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
            raise InvalidValue(
                f"{text[:100]!r} is no id or address of a message in {queue.name!r}", field="ids", given=text[:100]
            )
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
        raise InvalidValue(
            f"reason must be {' or '.join(DEATHS)}, given {given!r}", field="reason", limit=list(DEATHS), given=given
        )
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


def letters_of(
    task: TaskRecord, queue: Queue, partition: int, records: Sequence[Record]
) -> dict[int, tuple[Message, int]]:
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
