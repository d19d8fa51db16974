"""send: Kafka has the messages before the answer, and the window has them too when Redis is up.

Concurrent sends to a queue are committed in batches: one produce to one partition, one load of the
window. A batch starts at once when fewer than two are under way, so an idle queue waits for
nothing. A busy one has one under way, which lingers for those who were answered just now, and
longer while its messages are received (`linger.py`). While other queues are in use, one that has
more to send than a batch has one small batch under way, and rests for twice as long as that took: a
flood takes a third of this worker's time.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from typing import cast

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable, NotStored, Overloaded
from engine.log import Appended, Log
from engine.rules.fifo import check_entries, sequence_number
from engine.rules.limits import check_deliver_at, check_send, delay_until, message_bytes
from engine.rules.linger import LINGER_S, Activity, is_busy, send_linger_s, should_linger
from engine.rules.placement import fixed_partition
from engine.rules.queue import Ids, Queue
from engine.send.batch import PendingSend, SendBatch
from engine.shapes import SendEntry, Sent
from engine.window.body_source import BodyCache
from engine.window.delays import Delays
from engine.window.entry import Row, WriteThrough, entries_of
from runtime.background import Background
from runtime.cancel import before
from runtime.failpoints import reached
from runtime.signals import Signal
from schemas.identity import ids_of
from schemas.records import BatchMark, Message
from schemas.vocabulary import BATCH_SPAN_MS, DEFAULT_PRIORITY
from schemas.wire import encode
from state.clock.boot import boot_s

BATCHES_UNDER_WAY = 2
BATCH_RECORDS = 500
# The same while other queues are in use: a batch holds them up for as long as it is encoded, loaded
# and answered.
SHARED_RECORDS = 50
REST = 2.0
# The rest is for what a batch takes of this worker's time, which is some ms. When Kafka was away,
# it has waited and taken nothing.
LONGEST_REST_S = 0.2
# What may wait for its turn in one queue here; a send beyond that is refused, nothing of it is
# stored.
WAITING_SENDS = 2_000
WAITING_BYTES = 32_000_000
_APPENDED = {Appended}


class Sender:
    """Sends of this worker. Any number of tasks may send at once."""

    def __init__(
        self,
        log: Log,
        catalog: Catalog,
        ids: Ids,
        bodies: BodyCache,
        write_through: WriteThrough,
        delays: Delays,
        activity: Activity,
    ) -> None:
        self._log = log
        self._catalog = catalog
        self._ids = ids
        self._bodies = bodies
        self._write_through = write_through
        self._delays = delays
        self._activity = activity
        # Kafka has messages of so many bytes of the queue of this incarnation.
        self.stored: Signal[[str, int]] = Signal()
        self._batches: dict[tuple[str, int | None], SendBatch] = {}
        self._background = Background()

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        for partition in (None, *range(len(queue.units))):
            self._batches.pop((queue.incarnation, partition), None)

    async def stop(self) -> None:
        """Returns when the commits under way have ended."""
        await self._background.finished()

    async def send(self, queue: Queue, sender: str, entries: Sequence[SendEntry], until: float) -> list[Sent]:
        """Sends 1-100 messages, all or none. Returns when Kafka has them (acks=all), and fails at
        `until` (loop time) at the latest.

        FIFO: they come after all that were answered before in their groups; one that repeats an
        earlier one is answered as that. Raises InvalidValue, MessageTooLarge, TooManyDelayed,
        Overloaded and NotStored (nothing was stored), LogUnavailable (the outcome is unknown).
        """
        record = queue.record
        size = check_send(entries, record)
        entries = check_entries(record, entries)
        if record.priority and len({entry.priority or DEFAULT_PRIORITY for entry in entries}) > 1:
            return await self._send_by_priority(queue, sender, entries, until)
        clock = self._log.clock
        for entry in entries:
            if entry.deliver_at_ms is not None:
                check_deliver_at(record, entry.deliver_at_ms, clock.latest_ms())
        messages = messages_of(entries, sender, record.delay_ms, clock.earliest_ms())
        digests = [hashlib.md5(entry.body, usedforsecurity=False).hexdigest() for entry in entries]
        if longest := max([message.delay_ms for message in messages]):
            await before(until, self._delays.make_room(queue, messages, longest), lambda: NotStored.of(queue.name))
        done: asyncio.Future[list[Appended]] = asyncio.get_running_loop().create_future()
        self._wait(queue, PendingSend(messages, digests, size, done, until))
        appended = await done
        id_of = ids_of(self._ids.secret, queue.incarnation, appended[0].partition)  # a send is in one partition
        fifo = record.fifo
        return [
            Sent(id_of(a.offset), digest, a.timestamp_ms, sequence_number(a.offset) if fifo else "")
            for a, digest in zip(appended, digests, strict=True)
        ]

    async def _send_by_priority(
        self, queue: Queue, sender: str, entries: Sequence[SendEntry], until: float
    ) -> list[Sent]:
        """A send of several priorities: those of one are stored all or none, in the partition of
        that priority.

        Raises as `send` does; LogUnavailable also when some were stored and others refused.
        """
        places: dict[int, list[int]] = {}
        for place, entry in enumerate(entries):
            places.setdefault(entry.priority or DEFAULT_PRIORITY, []).append(place)
        parts = [self.send(queue, sender, [entries[place] for place in some], until) for some in places.values()]
        outcomes = await asyncio.gather(*parts, return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if len(failed) == len(outcomes):
            raise next((one for one in failed if isinstance(one, LogUnavailable)), failed[0])
        if failed:
            raise LogUnavailable("some of the batch were stored, for its messages have several priorities") from failed[
                0
            ]
        sent: dict[int, Sent] = {}
        for some, outcome in zip(places.values(), outcomes, strict=True):
            sent.update(zip(some, cast("list[Sent]", outcome), strict=True))
        return [sent[place] for place in range(len(entries))]

    def _wait(self, queue: Queue, send: PendingSend) -> None:
        """Commits one send in the queue's next batch. Raises Overloaded (nothing was stored);
        NotStored and LogUnavailable are told later.
        """
        record, first = queue.record, send.messages[0]
        partition = fixed_partition(record, first.group, first.priority) if record.fifo or record.priority else None
        batch = self._batches.get((queue.incarnation, partition))
        if batch is None:
            batch = self._batches[queue.incarnation, partition] = SendBatch(queue, partition)
        batch.queue = queue
        if len(batch.waiting) >= WAITING_SENDS or batch.size >= WAITING_BYTES:
            raise Overloaded(f"too many sends to queue {queue.name!r} are waiting for Kafka")
        batch.add(send)
        self._begin(batch)

    def _is_contended(self, batch: SendBatch) -> bool:
        return self._activity.is_contended(batch.queue.incarnation, asyncio.get_running_loop().time())

    def _begin(self, batch: SendBatch) -> None:
        """Starts the next batch's task if somebody waits and one more may be under way."""
        if not batch.waiting or batch.starting or len(batch.under_way) >= BATCHES_UNDER_WAY:
            return
        if batch.under_way and (is_busy(batch.last, batch.records) or self._is_contended(batch)):
            return
        items: list[PendingSend] = []
        batch.under_way = [*batch.under_way, items]
        batch.starting = True
        self._background.start(self._commit(batch, items), "send")

    def _linger_s(self, batch: SendBatch, now: float) -> float:
        received = self._activity.is_received(batch.queue.incarnation, now)
        return send_linger_s(batch.took_s) if received else LINGER_S

    async def _commit(self, batch: SendBatch, items: list[PendingSend]) -> None:
        """Takes, stores and answers a batch; then the next one's turn comes, at once or after a
        rest.
        """
        loop = asyncio.get_running_loop()
        # At least one turn of the loop: what was read from the sockets together goes together.
        await asyncio.sleep(self._linger_s(batch, loop.time()) if should_linger(batch.last, batch.records) else 0)
        began = loop.time()
        batch.take(SHARED_RECORDS if self._is_contended(batch) else BATCH_RECORDS, items, began)
        batch.starting = False
        self._begin(batch)
        try:
            if not items:
                return
            await self._store(batch.queue, batch.next_partition(), items)
            batch.took_s = loop.time() - began
            if batch.waiting and self._is_contended(batch):
                await asyncio.sleep(min(REST * batch.took_s, LONGEST_REST_S))
        except Exception as error:  # the waiters must hear of it, whatever it is
            for item in items:
                item.fail(error)
        finally:
            batch.under_way = [other for other in batch.under_way if other is not items]
            self._begin(batch)

    async def _store(self, queue: Queue, partition: int, items: list[PendingSend]) -> None:
        # Encoded with their batch: what waits costs the event loop little.
        values: list[bytes] = []
        for item in items:
            values.extend(map(encode, item.messages))
        began_s = boot_s()
        results = await self._log.append_many(queue.topic, partition, values)
        took_ms = (boot_s() - began_s) * 1000
        reached("send.appended")
        rows: list[Row] = []
        settled: list[tuple[PendingSend, list[Appended] | Exception]] = []
        at = size = 0
        for item in items:
            end = at + len(item.messages)
            outcome = _outcome(results[at:end], took_ms)
            settled.append((item, outcome))
            if not isinstance(outcome, Exception):
                rows += zip(outcome, item.messages, values[at:end], item.digests, strict=True)
                size += item.size
            at = end
        entries = entries_of(self._bodies, queue, partition, rows, sum(map(len, values))) if rows else []
        reached("send.before_load")
        repeats = await self._write_through.write(queue, partition, entries) if entries else {}
        if repeats:
            size -= sum(message_bytes(message) for appended, message, _, _ in rows if appended.offset in repeats)
        self.stored(queue.incarnation, size)
        reached("send.before_answer")
        for item, outcome in settled:
            if isinstance(outcome, Exception):
                self._refuse(queue, item, outcome)
                continue
            if item.done.done():
                continue
            if repeats:
                outcome = [msgspec.structs.replace(a, offset=repeats.get(a.offset, a.offset)) for a in outcome]
            item.done.set_result(outcome)

    def _refuse(self, queue: Queue, item: PendingSend, outcome: Exception) -> None:
        """Whoever sent is told why. A renewed queue may have the topic of before, so a send that
        met that has an unknown outcome, as any other.
        """
        if queue.incarnation not in self._catalog.by_incarnation and queue.name not in self._catalog.queues:
            item.fail(self._catalog.ended(queue))
            return
        if isinstance(outcome, LogUnavailable):
            self._write_through.suspect(queue)
        item.fail(outcome)


def messages_of(entries: Sequence[SendEntry], sender: str, delay_ms: int, at_ms: int) -> list[Message]:
    """The entries of one send as they are kept; `delay_ms` is that of the queue, and they are
    appended at `at_ms` or later.
    """
    size = len(entries)
    batch_id = secrets.token_hex(8) if size > 1 else ""
    return [
        Message(
            entry.body,
            entry.attributes,
            _delay_ms(entry, delay_ms, at_ms),
            entry.lease_ms,
            sender,
            None,
            BatchMark(batch_id, index, size) if batch_id else None,
            entry.group,
            entry.dedup_id,
            entry.priority or DEFAULT_PRIORITY,
            body_is_text=entry.body_is_text,
        )
        for index, entry in enumerate(entries)
    ]


def _outcome(results: list[Appended | Exception], took_ms: float) -> list[Appended] | Exception:
    """All or none: the first failure is the failure of the batch; so is a batch that took too long
    to be shown, by the log's times or by this worker's steady clock (`batches/message_log.py`).
    """
    if set(map(type, results)) != _APPENDED:
        return next(result for result in results if isinstance(result, Exception))
    appended = cast("list[Appended]", results)
    if len(appended) > 1:
        times = [one.timestamp_ms for one in appended]
        if max(took_ms, max(times) - min(times)) > BATCH_SPAN_MS:
            return LogUnavailable("the batch took longer than 30 s to be written; it may never be shown")
    return appended


def _delay_ms(entry: SendEntry, delay_ms: int, at_ms: int) -> int:
    if entry.deliver_at_ms is not None:
        return delay_until(entry.deliver_at_ms, at_ms)
    return delay_ms if entry.delay_ms is None else entry.delay_ms
