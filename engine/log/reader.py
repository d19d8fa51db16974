"""One consumer that reads one partition at a time and remembers its place. Blocking: called from
one thread at a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from engine.errors import LogUnavailable
from engine.log.kafka_errors import NO_SUCH_OFFSET, PARTITION_EOF, UNKNOWN, client_logger, engine_error, error_of, note
from engine.log.shapes import Chunk, Headers, Record, TopicPartition

_SLICE = 500  # Records taken from the client at a time; bounds what is held beyond max_bytes.
_PATIENCE_S = 5.0  # A fetch without any sign from the broker fails after that.
_LOOK_AGAIN_S = 0.1  # No sign for so long after an assignment: the client's memory of the topic may be old, ask anew.
_METADATA_S = 2.0

_OUTSIDE = frozenset({NO_SUCH_OFFSET, KafkaError.OFFSET_OUT_OF_RANGE})

# Of a consumer that leaves out what was aborted, and stops where a transaction has not ended.
COMMITTED = "read_committed"

READ_CONFIG: dict[str, Any] = {
    "group.id": "leaseway-readers",  # The client wants one; nothing is ever joined or committed.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # A place outside of the log is told, not silently moved.
    "isolation.level": "read_uncommitted",
    "fetch.wait.max.ms": 10,  # An idle poll blocks the connection, and so a new assignment, for that long.
    "fetch.error.backoff.ms": 50,
    "fetch.queue.backoff.ms": 5,  # The default, 1 s, is how long a full read-ahead would pause.
    # What a worker may hold read ahead is READERS times this and one fetch: with 4 MiB the memory
    # of workers grew by as much for hours.
    "fetch.message.max.bytes": 512 * 1024,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 1024,
    "check.crcs": False,
}


class Reader:
    """A consumer and its place: `unit` and `position` are what it reads next; `unit` None =
    nowhere.

    `end_of` asks for the end of a partition over another connection (this one may be blocked by a
    fetch), None = not known now.
    """

    def __init__(self, config: dict[str, Any], end_of: Callable[[TopicPartition], int | None]) -> None:
        self._end_of = end_of
        self.unit: TopicPartition | None = None
        self.position = 0
        self.made_at = time.monotonic()
        self.used_at = 0.0
        # When the broker was last heard of by this client.
        self.heard_at = self.made_at
        self.stopping = False
        self._held: deque[Message] = deque()
        self._known: set[TopicPartition] = set()
        self._consumer = Consumer({**READ_CONFIG, **config, "error_cb": note}, logger=client_logger)

    def stop(self) -> None:
        """A fetch that waits for more ends now."""
        self.stopping = True

    def note_use(self) -> None:
        self.used_at = time.monotonic()

    def stands_at(self, unit: TopicPartition, offset: int) -> bool:
        """Whether a fetch at that place goes on without a new assignment."""
        return self.unit == unit and self.position == offset

    def rest(self) -> None:
        """Gives up the place and what was read ahead."""
        self.unit = None
        self._held.clear()
        self._consumer.unassign()

    def close(self) -> None:
        """Ends the consumer."""
        self.unit = None
        self._consumer.close()

    def fetch(self, unit: TopicPartition, offset: int, max_records: int, max_bytes: int, wait_s: float) -> Chunk:
        """See `Log.fetch`; `wait_s` counts from now."""
        try:
            return self._fetch(unit, offset, max_records, max_bytes, wait_s)
        except KafkaException as fault:
            self._forget(unit)
            raise engine_error(error_of(fault)) from fault
        except BaseException:
            self._forget(unit)
            raise

    def _forget(self, unit: TopicPartition) -> None:
        self._known.discard(unit)
        self.unit = None  # the next fetch assigns anew, which drops whatever is queued

    def _fetch(self, unit: TopicPartition, offset: int, max_records: int, max_bytes: int, wait_s: float) -> Chunk:
        began = time.monotonic()
        at_end = truncated = False
        known: int | None = None
        if not (self.stands_at(unit, offset) and self._read_ahead()):
            # Maybe there is nothing, maybe it is on its way: only the broker knows, and an
            # assignment is the dear way to ask.
            end = self._end_of(unit)
            known = end or 0
            at_end = end is not None and end <= offset
            if end is not None and (end < offset or (at_end and wait_s <= 0)):
                return Chunk([], end, True)
            if end is None or not self.stands_at(unit, offset):
                self._take_place(unit, offset)  # which makes the client report the end anew, if it is there
        while True:
            event = self._next(began, wait_s, at_end)
            error = None if event is None else event.error()
            if event is None:
                if at_end and (self.stopping or time.monotonic() - began >= wait_s):
                    return Chunk([], self.position, True, truncated)
                if not at_end:
                    self._refresh_metadata(unit)
            elif error is None:
                self._held.appendleft(event)
                return self._gather(unit, max_records, max_bytes, truncated, known)
            elif error.code() == PARTITION_EOF:
                # One that is older than what the broker said since is no news: the records are on
                # their way.
                self.position = max(self.position, event.offset() or 0)
                at_end = at_end or self.position >= (known or 0)
            else:
                truncated = self._recover(unit, error) or truncated

    def _recover(self, unit: TopicPartition, error: KafkaError) -> bool:
        """Takes the nearest place that there is. Whether records are missing before it."""
        if error.code() in UNKNOWN:
            self._refresh_metadata(unit)
            self._take_place(unit, self.position)
        elif error.code() in _OUTSIDE:
            low, high = self._bounds(unit)
            truncated = self.position < low
            self._take_place(unit, min(max(low, self.position), high))
            return truncated
        else:
            note(error)  # heals by itself, or the fetch runs out of patience
        return False

    def _next(self, began: float, wait_s: float, at_end: bool) -> Message | None:
        """The next event, or None after a moment without any. Raises LogUnavailable when patience
        is at its end.
        """
        if self._held:
            return self._held.popleft()
        spent = time.monotonic() - began
        if not at_end and (self.stopping or spent > _PATIENCE_S):
            raise LogUnavailable("Kafka does not answer a fetch")
        moment = min(_LOOK_AGAIN_S, max(wait_s - spent, 0.0)) if at_end else _LOOK_AGAIN_S
        event = self._consumer.poll(moment)
        if event is not None:
            self.heard_at = time.monotonic()
        return event

    def _read_ahead(self) -> bool:
        """Whether something has been read ahead for this place; an end seen earlier is not: records
        may have come since.
        """
        while True:
            if not self._held:
                event = self._consumer.poll(0)
                if event is None:
                    return False
                self._held.append(event)
            first = self._held[0]
            error = first.error()
            if error is None or error.code() != PARTITION_EOF or (first.offset() or 0) > self.position:
                return True
            self._held.popleft()

    def _take_place(self, unit: TopicPartition, offset: int) -> None:
        """Assigns the place. A topic new to this client is asked for first: that takes ms, to wait
        until it asks itself 1 s.
        """
        self._held.clear()
        self.unit = None
        if unit not in self._known:
            self._refresh_metadata(unit)
        self._consumer.assign([ClientPartition(unit[0], unit[1], offset)])
        self.unit, self.position = unit, offset

    def _refresh_metadata(self, unit: TopicPartition) -> None:
        """Refreshes what the client knows of the topic. Raises LogUnavailable if there is no such
        partition.
        """
        found = self._consumer.list_topics(unit[0], _METADATA_S).topics.get(unit[0])
        if found is None or unit[1] not in found.partitions:
            raise LogUnavailable(f"Kafka has no partition {unit[1]} of topic {unit[0]}")
        self._known.add(unit)

    def _bounds(self, unit: TopicPartition) -> tuple[int, int]:
        """First and end offset, asked of the broker."""
        return self._watermarks(unit, cached=False) or (0, 0)

    def _watermarks(self, unit: TopicPartition, *, cached: bool) -> tuple[int, int] | None:
        return self._consumer.get_watermark_offsets(ClientPartition(*unit), timeout=_METADATA_S, cached=cached)

    def _gather(
        self, unit: TopicPartition, max_records: int, max_bytes: int, truncated: bool, known: int | None
    ) -> Chunk:
        """Records from what is held and read ahead, at least one. Their next_offset is the new
        place. `known`: the end as the broker has just said it, None = it was not asked.
        """
        topic, partition = unit
        held, records, size = self._held, list[Record](), 0
        while len(records) < max_records:
            if not held:
                held.extend(self._consumer.consume(min(_SLICE, max_records - len(records)), 0))
                if not held:
                    break
            message = held[0]
            error = message.error()
            if error is not None:
                if error.code() != PARTITION_EOF:
                    break  # the next fetch deals with it
                self.position = max(self.position, message.offset() or 0)
                held.popleft()
                continue
            key, value, headers = message.key(), message.value(), message.headers()
            size += len(value or b"") + len(key or b"")
            if records and size > max_bytes:
                break
            held.popleft()
            kind, at_ms = message.timestamp()
            offset = message.offset() or 0
            self.position = offset + 1
            records.append(
                Record(topic, partition, offset, at_ms if kind else 0, key, value, cast("Headers | None", headers))
            )
        # The end as of the last answer of the broker, which is newer than every record read ahead.
        high = (self._watermarks(unit, cached=True) or (0, -1))[1]
        at_end = not held and (known or 0) <= self.position and 0 <= high <= self.position
        if at_end and known is None:
            at_end = self._is_end(unit)
        return Chunk(records, self.position, at_end, truncated)

    def _is_end(self, unit: TopicPartition) -> bool:
        """Asks the broker whether the place is the end of the log. What the client has heard may be
        old: one that holds enough read ahead asks for no more.
        """
        try:
            end = self._end_of(unit)
        except KafkaException as fault:
            note(error_of(fault))
            return False  # the next fetch asks again
        return end is not None and end <= self.position
