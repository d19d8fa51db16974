"""Transactions: prepared, and decided once.

A decision is a record in the topic of half messages, and of several the first in the log counts: a
worker appends its own, reads up to it, and knows what was decided. That record is the commit: what
follows (`finisher.py`) is carried out by whoever lives.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence

from engine.catalog.catalog import Catalog
from engine.errors import (
    InvalidValue,
    NotAllowedOnQueue,
    TooManyTransactions,
    TransactionDecided,
    TransactionGone,
    TransactionNotFound,
)
from engine.rules.fifo import check_entries
from engine.rules.limits import check_asked, check_name, check_send
from engine.rules.queue import Queue
from engine.send.sender import messages_of
from engine.settings import EngineSettings
from engine.shapes import Check, SendEntry, TransactionInfo
from engine.transactions.book import Book, Transaction
from engine.transactions.checks import TakenCheck
from engine.transactions.finisher import Finisher
from engine.transactions.half_log import HalfLog, key_of, own_name
from runtime.clock import now_ms
from runtime.counters import Counters
from runtime.failpoints import reached
from schemas.identity import ids_of
from schemas.records import TransactionRecord
from schemas.vocabulary import DecisionReason, TransactionStatus, TransactionStep
from schemas.wire import encode

_ID = re.compile(r"[0-9a-f]{32}\Z")
_STEPS = {TransactionStatus.COMMITTED: TransactionStep.COMMIT, TransactionStatus.ROLLED_BACK: TransactionStep.ROLLBACK}


class Transactions:
    """Transactions as this worker knows them. Any number of tasks, and workers, may ask at once."""

    def __init__(
        self,
        settings: EngineSettings,
        secret: bytes,
        catalog: Catalog,
        book: Book,
        half_log: HalfLog,
        finisher: Finisher,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._catalog = catalog
        self._book = book
        self._half_log = half_log
        self._finisher = finisher
        self._counters = counters
        self._preparing = 0

    async def prepare(
        self, queue: Queue, by: str, producer_group: str, entries: Sequence[SendEntry], immunity_ms: int | None
    ) -> TransactionInfo:
        """Stores 1-100 messages that nobody sees until they are committed. Raises InvalidValue,
        MessageTooLarge, NotAllowedOnQueue, TooManyTransactions (nothing was stored), LogUnavailable
        (the outcome is unknown: if it was stored, its producers will be asked).
        """
        check_name("producer_group", producer_group)
        check_asked("check_immunity_ms", immunity_ms)
        _check_kind(queue, entries)
        check_send(entries, queue.record)
        entries = check_entries(queue.record, entries)
        self._check_room(queue)
        record = TransactionRecord(
            id=secrets.token_hex(16),
            step=TransactionStep.HALF,
            at_ms=now_ms(),
            queue=queue.name,
            incarnation=queue.incarnation,
            producer_group=producer_group,
            principal=by,
            immunity_ms=self._settings.transaction_immunity_ms if immunity_ms is None else immunity_ms,
            messages=[encode(message) for message in messages_of(entries, by, queue.record.delay_ms, now_ms())],
            count=len(entries),
        )
        self._preparing += 1
        try:
            reached("transaction.before_prepare")
            appended = await self._half_log.append(record)
        finally:
            self._preparing -= 1
        reached("transaction.prepared")
        self._counters.count("transactions_prepared_total")
        return self.info(Transaction(record, appended.partition, appended.offset, appended.timestamp_ms))

    def _check_room(self, queue: Queue) -> None:
        """Raises TooManyTransactions. Workers count for themselves, a second behind each other."""
        settings, book = self._settings, self._book
        of_queue, of_all = book.open_of[queue.incarnation] + self._preparing, book.open_count + self._preparing
        for count, limit, where in (
            (of_queue, settings.transactions_per_queue, f"queue {queue.name!r}"),
            (of_all, settings.transactions_open, "the service"),
        ):
            if count >= limit:
                raise TooManyTransactions(
                    f"{where} may have {limit} open transactions and has {count}: commit or roll back some of them",
                    field="queue", limit=limit, given=count,
                )  # fmt: skip

    async def find(self, id: str, *, newest: bool = False) -> Transaction:
        """A transaction, looked up once more in Kafka when it is unknown here; `newest`: also when
        another worker may have decided it. Raises TransactionNotFound.
        """
        one = self._book.of.get(id)
        if _ID.match(id) and (one is None or (newest and one.is_open)):
            await self._half_log.sync(self._half_log.shard_of(id))
            one = self._book.of.get(id)
        if one is None:
            raise no_transaction(id)
        return one

    async def decide(
        self, id: str, status: TransactionStatus, by: str = "", reason: DecisionReason = DecisionReason.ANSWERED
    ) -> TransactionInfo:
        """Commits or rolls back, and returns when that is carried out; repeated, it is answered as
        before.

        Raises TransactionDecided (it was decided otherwise), TransactionGone (a commit whose queue
        was deleted), Unavailable (repeat it: if the decision was stored, it is carried out anyway).
        """
        one = await self.find(id)
        began_at = None
        if one.is_open:
            if status == TransactionStatus.COMMITTED:
                await self._check_queue(one)
            one, began_at = await self._append(one, status, by, reason)
        if status == TransactionStatus.COMMITTED and one.reason == DecisionReason.QUEUE_GONE:
            raise _gone(one)
        if one.status != status:
            raise TransactionDecided(
                f"transaction {id} was {one.status.replace('_', ' ')} before ({one.reason})",
                field="transaction",
                limit=str(one.status),
                given=id,
            )
        # What others have decided before the service itself does is left to them.
        if not one.is_finished and (began_at is not None or reason == DecisionReason.ANSWERED):
            await self._finisher.finish(one, began_at=began_at)
        if status == TransactionStatus.COMMITTED and one.reason == DecisionReason.QUEUE_GONE:
            raise _gone(one)
        return self.info(one)

    async def _check_queue(self, one: Transaction) -> None:
        if one.incarnation not in self._catalog.by_incarnation:
            await self._catalog.sync()
            if one.incarnation not in self._catalog.by_incarnation:
                raise _gone(one)

    async def _append(
        self, one: Transaction, status: TransactionStatus, by: str, reason: DecisionReason
    ) -> tuple[Transaction, float | None]:
        """Appends a decision and reads up to it: what is known then is what counts, and when this
        one began (loop time), None = another one counts.
        """
        began_at = asyncio.get_running_loop().time()
        record = TransactionRecord(
            id=one.id,
            step=_STEPS[status],
            at_ms=now_ms(),
            queue=one.queue,
            incarnation=one.incarnation,
            producer_group=one.producer_group,
            principal=one.principal,
            count=one.count,
            prepared_at_ms=one.prepared_at_ms,
            decided_by=by,
            reason=reason,
        )
        reached("transaction.before_decide")
        name = own_name(record.step)
        appended = await self._half_log.append(record, name)
        reached("transaction.decided")
        await self._half_log.reach(self._half_log.shard_of(one.id), appended.offset + 1)
        known = self._book.of.get(one.id)
        if known is None:  # it was finished and forgotten while we slept
            raise TransactionNotFound(f"transaction {one.id!r} ended long ago", field="transaction", given=one.id)
        return known, began_at if known.keys[-1] == key_of(one.id, name) else None

    async def shown(self, taken: Sequence[TakenCheck]) -> list[Check]:
        """Checks with what they are about; one that was decided meanwhile is left out. Raises
        LogUnavailable.
        """
        shown = []
        for check in taken:
            one = check.transaction
            messages = await self._half_log.messages_of(one) if one.is_open else None
            if messages is not None:
                shown.append(Check(check.id, check.number, self.info(one), messages))
        return shown

    def of_queue(self, queue: Queue, status: str | None, limit: int) -> list[TransactionInfo]:
        """The transactions of a queue that are known, those prepared last first."""
        check_asked("limit", limit)
        if status is not None and status not in set(TransactionStatus):
            words = ", ".join(TransactionStatus)
            raise InvalidValue(
                f"status must be one of {words}, given {status[:50]!r}", field="status", limit=words, given=status[:50]
            )
        found = [
            one
            for one in self._book.of.values()
            if one.incarnation == queue.incarnation and (status is None or one.status == status)
        ]
        found.sort(key=lambda one: one.prepared_at_ms, reverse=True)
        return [self.info(one) for one in found[:limit]]

    def info(self, one: Transaction) -> TransactionInfo:
        """What is known of a transaction."""
        checks_left = max(0, self._settings.transaction_checks - one.checks)
        next_check_ms = (
            one.next_check_ms(self._settings.transaction_interval_ms) if one.is_open and checks_left else None
        )
        return TransactionInfo(
            id=one.id,
            status=str(one.status),
            queue=one.queue,
            producer_group=one.producer_group,
            principal=one.principal,
            messages=one.count,
            prepared_at_ms=one.prepared_at_ms,
            checks=one.checks,
            checks_left=checks_left if one.is_open else 0,
            next_check_at_ms=next_check_ms,
            decided_at_ms=one.decided_at_ms or None,
            decided_by=one.decided_by,
            reason=str(one.reason),
            message_ids=[ids_of(self._secret, one.incarnation, partition)(offset) for partition, offset in one.places],
        )


def _check_kind(queue: Queue, entries: Sequence[SendEntry]) -> None:
    """Raises what a transaction may not have: an order, or a delay of its own."""
    if queue.record.fifo:
        raise NotAllowedOnQueue(
            f"queue {queue.name!r} is FIFO: its order is that of sending, and a transaction is sent when it is "
            "committed",
            field="queue", limit="a standard queue", given=queue.name,
        )  # fmt: skip
    for entry in entries:
        for field, given in (("delay_ms", entry.delay_ms or None), ("deliver_at_ms", entry.deliver_at_ms)):
            if given is not None:
                raise InvalidValue(
                    "a message of a transaction has no delay of its own: its queue may have one",
                    field=field,
                    given=given,
                )


def _gone(one: Transaction) -> TransactionGone:
    return TransactionGone(
        f"queue {one.queue!r} was deleted after transaction {one.id} was prepared; "
        "a queue of that name now is another one",
        field="transaction", given=one.id,
    )  # fmt: skip


def no_transaction(id: str) -> TransactionNotFound:
    """The same for one that does not exist and for one of a queue that who asks is not told of."""
    return TransactionNotFound(
        f"there is no transaction {id[:100]!r}, or it ended long ago", field="transaction", given=id[:100]
    )
