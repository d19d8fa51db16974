"""What was decided is carried out: committed messages go to their queue, then the half is dropped.

Steps of a commit, each may be the last before a crash: decision (the point of no return) ->
messages appended to the queue -> in the window -> `done` with their places -> half dropped. Who
made the decision goes on at once; the keeper of the shard takes up what a dead worker left. A
message of a commit has an origin that names the transaction and its place in it, and so a move key
(engine/move): of two copies the first in the log counts, and the window drops the other. Three
things keep a copy from counting twice however late it comes: the window remembers its newest 20,000
move keys; who takes up a commit looks first what the queue's log has of it; and a copy that was
appended more than 30 s after its attempt began (its `moved_at_ms`, a time of the log) is skipped by
every reader.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, LogUnavailable
from engine.log import Appended, Log
from engine.rules.placement import moved_partition
from engine.rules.queue import Queue
from engine.transactions.book import Transaction
from engine.transactions.copies import Place, copies_in
from engine.transactions.half_log import HalfLog, key_of, own_name
from engine.window.entry import WriteThrough, load_entry
from runtime.background import Background
from runtime.clock import now_ms
from runtime.counters import Counters
from runtime.failpoints import reached
from schemas.records import BatchMark, Message, Origin, TransactionRecord
from schemas.vocabulary import (
    BATCH_CLOCK_MARGIN_MS,
    BATCH_SPAN_MS,
    COMMIT_SPAN_MS,
    DecisionReason,
    Reason,
    TransactionStatus,
    TransactionStep,
)
from schemas.wire import encode
from state.clock.boot import boot_s

logger = logging.getLogger(__name__)

# Who decided carries it out; so long after others have read the decision they go on. It looks at
# what they have written when it ends later than OTHERS_MS after it began to decide.
TAKE_UP_MS = 5_000
OTHERS_MS = 2_500
LOOK_AGAIN_S = 0.25
# By its place in the transaction, where a message was found in its queue's topic.
Places = dict[int, Place]


class Finisher:
    """Finishes transactions of this worker; callers who want the same one share the work."""

    def __init__(
        self, log: Log, catalog: Catalog, half_log: HalfLog, write_through: WriteThrough, counters: Counters
    ) -> None:
        self._log = log
        self._catalog = catalog
        self._half_log = half_log
        self._write_through = write_through
        self._counters = counters
        self._background = Background()
        self._running: dict[str, asyncio.Task[None]] = {}

    async def stop(self) -> None:
        """Returns when what is under way has ended."""
        await self._background.finished()

    async def finish(self, one: Transaction, *, began_at: float | None) -> None:
        """Returns when a decided transaction is done. `began_at`: this worker has decided it and
        nobody has tried before; it began then (loop time). None: who has decided goes first. Raises
        Unavailable: another try, or the keeper, goes on from there.
        """
        if began_at is None:
            await self._wait_for_decider(one)
        await asyncio.shield(self._begin(one, None if began_at is None else {}, began_at))

    async def _wait_for_decider(self, one: Transaction) -> None:
        """Returns when a commit is done, or its worker has given up or is taken for dead: it
        answers with the places of its own copies, so nobody's may be before them in the log.
        """
        loop = asyncio.get_running_loop()
        while _is_commit(one) and not (
            one.done or one.is_given_up or one.id in self._running or self.is_left(one, loop.time())
        ):
            await self._half_log.more(LOOK_AGAIN_S)

    @staticmethod
    def is_left(one: Transaction, now: float) -> bool:
        """Whether who decided it is taken for dead: so long ago (loop time) its decision was read
        here. It was made before, so clocks need not agree.
        """
        return now - one.decided_read_at > TAKE_UP_MS / 1000

    def _begin(self, one: Transaction, found: Places | None, began_at: float | None) -> asyncio.Task[None]:
        task = self._running.get(one.id)
        if task is None:
            task = self._running[one.id] = self._background.start(
                self._finish(one, found, began_at), "finish_transaction", awaited=True
            )
            task.add_done_callback(lambda ended: self._ended(one, ended))
        return task

    def _ended(self, one: Transaction, task: asyncio.Task[None]) -> None:
        del self._running[one.id]
        # Nobody was told its places; who decided it is here, or others have waited for it.
        if task.cancelled() or task.exception() is not None:
            one.give_up()

    async def take_up(self, left: Sequence[Transaction]) -> None:
        """Finishes what others began. The log of each partition is read once for all of them."""
        await self._catalog.sync()
        since: dict[tuple[str, int], int] = {}
        wanted: list[Transaction] = []
        for one in left:
            if one.id in self._running:
                continue
            wanted.append(one)
            for at in await self._targets(one):
                since[at] = min(one.decided_at_ms, since.get(at, one.decided_at_ms))
        ids = {one.id for one in wanted}
        found: dict[str, Places] = {}
        for (topic, partition), at_ms in since.items():
            copies = await copies_in(self._log, topic, partition, at_ms - BATCH_CLOCK_MARGIN_MS, ids)
            for name, places in copies.items():
                found.setdefault(name, {}).update(places)
        outcomes = await asyncio.gather(
            *[self._begin(one, found.get(one.id, {}), None) for one in wanted], return_exceptions=True
        )
        for one, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, EngineError):
                logger.warning("action=finish_transaction id=%s queue=%s error=%s", one.id, one.queue, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome

    async def _targets(self, one: Transaction) -> set[tuple[str, int]]:
        """Topic and partitions that the messages of a commit go to, if there is something to do."""
        queue = self._catalog.by_incarnation.get(one.incarnation)
        if queue is None or one.done or not _is_commit(one):
            return set()
        return {
            (queue.topic, partition) for partition in _partitions(queue, one, await self._half_log.messages_of(one))
        }

    async def _finish(self, one: Transaction, found: Places | None, began_at: float | None) -> None:
        shard = self._half_log.shard_of(one.id)
        if not one.done:
            record = await self._carry_out(one, found, began_at)
            if record is None:
                await self._half_log.sync(shard)
            else:
                reached("transaction.before_done")
                appended = await self._half_log.append(record, own_name("done"))
                await self._half_log.reach(shard, appended.offset + 1)
        if not one.done:
            raise LogUnavailable(f"the half of transaction {one.id} can't be read")
        reached("transaction.done")
        if not one.half_dropped:
            # What is about the half goes before it: once Kafka has dropped that, nobody knows whose
            # they are.
            own = [key_of(one.id, name) for name in ("check", "attempt")]
            await self._half_log.drop(one.id, [*(key for key in own if key in one.keys), key_of(one.id)])

    async def _carry_out(
        self, one: Transaction, found: Places | None, began_at: float | None
    ) -> TransactionRecord | None:
        """The step that says that it is done; None = somebody else has done it."""
        done = TransactionRecord(one.id, TransactionStep.DONE, now_ms())
        if not _is_commit(one):
            return done
        messages = await self._half_log.messages_of(one)
        if messages is None:
            return None
        queue = self._catalog.by_incarnation.get(one.incarnation)
        if queue is None:
            await self._catalog.sync()
            queue = self._catalog.by_incarnation.get(one.incarnation)
        if queue is None:
            return msgspec.structs.replace(done, reason=DecisionReason.QUEUE_GONE)
        if found is None:
            found = await self._look(queue, one, messages)
        places = await self._copy(queue, one, messages, found, began_at)
        if began_at is None or asyncio.get_running_loop().time() - began_at > OTHERS_MS / 1000:
            # Another may have written before us: its messages are the ones that count.
            places |= await self._look(queue, one, messages)
        self._counters.count("transactions_committed_total")
        return msgspec.structs.replace(
            done, partitions=[places[index].partition for index in range(len(messages))],
            offsets=[places[index].offset for index in range(len(messages))],
        )  # fmt: skip

    async def _look(self, queue: Queue, one: Transaction, messages: list[Message]) -> Places:
        found: Places = {}
        for partition in set(_partitions(queue, one, messages)):
            since_ms = one.decided_at_ms - BATCH_CLOCK_MARGIN_MS
            found.update((await copies_in(self._log, queue.topic, partition, since_ms, {one.id})).get(one.id, {}))
        return found

    async def _copy(
        self, queue: Queue, one: Transaction, messages: list[Message], found: Places, began_at: float | None
    ) -> Places:
        """Appends what the queue's topic lacks, the messages of a partition all or none; where each
        is.
        """
        of: dict[int, list[int]] = {}
        for index, partition in enumerate(_partitions(queue, one, messages)):
            of.setdefault(partition, []).append(index)
        places = dict(found)
        lacking = {
            partition: indexes for partition, indexes in of.items() if any(index not in places for index in indexes)
        }
        if not lacking:
            return places
        began_ms = one.decided_at_ms
        # How old our decision is by a steady clock: no two clocks are compared.
        if began_at is None or asyncio.get_running_loop().time() - began_at > COMMIT_SPAN_MS / 3000:
            began_ms = (
                await self._half_log.append(TransactionRecord(one.id, TransactionStep.ATTEMPT, now_ms()), "attempt")
            ).timestamp_ms
        for partition, indexes in lacking.items():
            copies = _copies(one, messages, indexes, began_ms)
            for index, appended in zip(indexes, await self._append(queue, partition, copies, began_ms), strict=True):
                places[index] = Place(appended.partition, appended.offset)
        return places

    async def _append(self, queue: Queue, partition: int, copies: list[Message], began_ms: int) -> list[Appended]:
        values = [encode(copy) for copy in copies]
        reached("transaction.before_copy")
        sent_s = boot_s()
        results = await self._log.append_many(queue.topic, partition, values)
        reached("transaction.copied")
        appended = [result for result in results if isinstance(result, Appended)]
        if len(appended) < len(results):
            raise next(result for result in results if isinstance(result, Exception))
        times = [result.timestamp_ms for result in appended]
        took_ms = max((boot_s() - sent_s) * 1000, max(times) - min(times))
        if took_ms > BATCH_SPAN_MS or max(times) - began_ms > COMMIT_SPAN_MS:
            raise LogUnavailable("the messages took longer than 30 s to be written; they will be written again")
        rows = zip(appended, copies, values, strict=True)
        entries = [load_entry(queue, at.offset, at.timestamp_ms, message, value) for at, message, value in rows]
        await self._write_through.write(queue, partition, entries)
        reached("transaction.loaded")
        return appended


def _is_commit(one: Transaction) -> bool:
    return one.status == TransactionStatus.COMMITTED


def _partitions(queue: Queue, one: Transaction, messages: Sequence[Message] | None) -> list[int]:
    """Where each message goes: the same for each attempt, so that copies meet in one window. Those
    of one priority go together.
    """
    return [moved_partition(queue.record, message, one.id, "") for message in messages or ()]


def _copies(one: Transaction, messages: Sequence[Message], indexes: Sequence[int], began_ms: int) -> list[Message]:
    """The messages of a partition as one attempt writes them: an atomic batch of its own."""
    size, batch_id = len(indexes), secrets.token_hex(8)
    copies = []
    for place, index in enumerate(indexes):
        origin = Origin(
            from_id=f"{one.id}/{index}",
            from_tag="",
            original_id=one.id,
            original_queue=one.queue,
            original_tag="",
            reason=Reason.COMMITTED,
            receive_count=0,
            first_received_at_ms=0,
            original_sent_at_ms=one.prepared_at_ms,
            moved_at_ms=began_ms,
        )
        mark = BatchMark(batch_id, place, size) if size > 1 else None
        copies.append(msgspec.structs.replace(messages[index], origin=origin, batch=mark))
    return copies
