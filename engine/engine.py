"""The verbs of a queue over a log, one method each: all that a dialect may call.

`by` is who asks; each method passes the authoriser before anything else. All raise EngineError. Any
number of tasks may call at once; several workers may serve the same Kafka and Redis. Longer than
250 lines: a method per verb, no logic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from time import monotonic_ns

from engine.errors import LogUnavailable, NotStored
from engine.move.redriving import Redriving
from engine.plane import whys
from engine.plane.library import WAITED_S
from engine.queues.bounded import bounded
from engine.queues.callers.quotas import FREE
from engine.queues.managing import Managing
from engine.rules.queue import Queue
from engine.rules.rights import NOBODY, Asker, WaitBound
from engine.runtime.deadline import MESSAGES_S, state_until
from engine.runtime.meters import NO_TAG
from engine.settings import EngineSettings
from engine.shapes import (
    Delivery,
    EntryResult,
    ExtendEntry,
    Late,
    Page,
    Peeked,
    Principal,
    SendEntry,
    Sent,
)
from engine.transactions.transacting import Transacting
from engine.watching import Watching
from engine.wiring import wire
from schemas.accounts import full
from schemas.filters import Filter
from schemas.vocabulary import Operation, Verb
from state.cancel import before


class Engine(Managing, Watching, Transacting, Redriving):
    """One per worker process."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self._send_s = settings.send_timeout_ms / 1000
        self.parts = parts = wire(settings)
        asked, transacted = parts.administration, parts.transactions
        callers = parts.base.access, asked.keys, asked.grants, asked.quotas, asked.users
        super().__init__(parts.base.catalog, *callers, transacted.transactions, transacted.checks, transacted.webhooks)
        self._watch(parts.watching.watches, parts.watching.statistics, parts.watching.metrics, parts.base.alarms)
        self.log = parts.base.log
        self.store = parts.base.store
        self._info = parts.administration.info
        self._queues = parts.administration.queues
        self._tags = parts.administration.tags
        self._sender = parts.messages.sender
        self._receiver = parts.messages.receiver
        self._wait_lists = parts.units.wait_lists
        self._leases = parts.messages.leases
        self._attempts = parts.messages.attempts
        self._browse = parts.messages.browse
        self._schedule = parts.messages.schedule
        self._tasks = parts.administration.tasks
        self._parking = parts.messages.parking
        self._meters = parts.base.meters
        self.audit = asked.audit
        self.plane_news = parts.units.plane_news
        self.plane = self.plane_news.plane
        self._wake = parts.messages.wake

    async def start(self) -> None:
        """Connects, reads the control topic, starts services in order. What a repeat may heal is
        repeated within the setting `start_wait_s`. Raises LogUnavailable when Kafka does not answer
        or does not let the service in; the text says why.
        """
        parts, base = self.parts, self.parts.base
        patience = base.log.patience(self.settings.start_wait_s)
        await base.log.start()
        await patience.repeat(base.log.reach)
        await base.connection.start()
        await base.clock.start()
        await parts.administration.clock_watch.start()
        await patience.repeat(base.catalog.start)
        await base.lives.start()
        await parts.messages.receiver.start()
        await parts.units.owner.start()
        await parts.administration.tasks.start()
        await base.snapshots.start()
        await patience.repeat(parts.transactions.half_log.start)
        await parts.transactions.keeper.start()
        await parts.administration.alarm_monitor.start()
        await parts.watching.start()
        await patience.repeat(self.audit.start)

    async def stop(self) -> None:
        """Ends waits, finishes sends, drains outboxes, closes: backwards."""
        parts, base = self.parts, self.parts.base
        await self.plane.stop()
        await self.audit.stop()
        await parts.watching.stop()
        await parts.administration.alarm_monitor.stop()
        await parts.administration.topic_guard.stop()
        await parts.transactions.keeper.stop()
        await parts.transactions.webhooks.stop()
        await parts.transactions.half_log.stop()
        await base.snapshots.stop()
        await parts.administration.tasks.stop()
        await parts.messages.receiver.stop()
        await parts.messages.mover.stop()
        await parts.messages.sender.stop()
        await parts.units.topic_retention.stop()
        await parts.transactions.finisher.stop()
        await parts.units.owner.stop()
        await base.rebuilder.stop()
        await parts.watching.reporter.stop()
        await base.lives.stop()
        await base.catalog.stop()
        await parts.administration.clock_watch.stop()
        await base.clock.stop()
        await base.connection.stop()
        await base.log.stop()

    # Messages

    async def send(self, by: Principal, queue: str, entries: list[SendEntry]) -> list[Sent]:
        """Sends 1-100 messages, all or none; Kafka has them when this returns. Raises
        MessageTooLarge, NotStored (repeat it), LogUnavailable (the outcome is unknown).
        """
        until = self._send_until()
        found = self._known(by, Verb.SEND, queue)
        if found is None:
            found = await before(until, self._queue(by, Verb.SEND, queue), lambda: NotStored.of(queue))
        is_bound = self._quotas.bound(found)
        charge = await before(until, self._quotas.take_send(found, entries), lambda: NotStored.of(queue)) if is_bound else FREE
        began_ns = monotonic_ns()
        with charge:
            sent = await self._sender.send(found, by.id, entries, until)
        operation = Operation.SINGLE_SEND if len(entries) == 1 else Operation.BATCH_SEND
        self._meters.note(found.incarnation, NO_TAG, operation, len(entries), began_ns)
        return sent

    def _send_until(self) -> float:
        """When a send that comes now is answered at the latest (loop time)."""
        return asyncio.get_running_loop().time() + self._send_s - WAITED_S.get()

    async def receive(
        self,
        by: Principal,
        queue: str,
        tag: str | None,
        max: int | None,
        wait_ms: int | None,
        lease_ms: int | None,
        attempt: str | None = None,
        filter: Filter | None = None,
    ) -> list[Delivery]:
        """Leases up to `max` messages; waits up to `wait_ms` for the first. None = the queue's
        settings. Raises Overloaded, TooManyInFlight, NotAllowedOnQueue.

        `filter`: only messages that fit; the others stay for other receives of the tag. Not on a
        FIFO queue.

        `attempt` names a receive of a FIFO queue: repeated, it is answered as before
        (engine/receive/handles/attempts.py); others ignore it.
        """
        found = self._known(by, Verb.RECEIVE, queue, tag)
        if found is None or (tag and tag not in found.by_name):
            found = await self._queue(by, Verb.RECEIVE, queue, tag)
        at = found.tag(tag)
        if self._quotas.bound(found):
            await self._quotas.take(found, "read", at)
        began_ns = monotonic_ns()
        waits = found.record.receive_wait_ms if wait_ms is None else wait_ms
        if waits and (waited_s := WAITED_S.get()):
            left_ms = waits - round(waited_s * 1000)
            wait_ms = waits = left_ms if left_ms > 0 else 1
        operation = Operation.LONG_RECEIVE if waits else Operation.SHORT_RECEIVE
        if attempt is not None and found.record.fifo:
            late = partial(LogUnavailable, "Kafka does not give what the attempt was answered")
            again = await before(self._send_until(), self._attempts.again(found, at, by.id, attempt, lease_ms), late)
            if again:
                self._meters.note(found.incarnation, at.id, operation, len(again), began_ns)
                return again
        asker = self._asker(by, found, at.name) if waits else NOBODY
        deliveries = await self._receiver.receive(found, at, max, wait_ms, lease_ms, filter, asker)
        if attempt is not None and deliveries and found.record.fifo:
            self._attempts.keep(found, at, by.id, attempt, deliveries)
        self._meters.note(found.incarnation, at.id, operation, len(deliveries), began_ns)
        return deliveries

    def _asker(self, by: Principal, queue: Queue, tag: str) -> Asker:
        bounds: list[WaitBound] = [WaitBound(f"principal {by.id!r}", self.settings.max_waits)] if by.key_id else []
        if self._quotas.bound(queue):
            bounds += self._quotas.waits(queue)
        return Asker(tuple(bounds), partial(self._access.check_still, by, Verb.RECEIVE, queue.incarnation, tag))

    def undelivered(self, deliveries: Sequence[Delivery]) -> None:
        """No answer carried what one receive has leased: it is given back as if it never was.
        Returns at once.
        """
        if deliveries[0].message.group is not None and not deliveries[0].repeated:
            self._attempts.forget(deliveries)
        self._receiver.undelivered(deliveries)

    def one_use(self, delivery: Delivery) -> str:
        """A handle for one use: stale once anything has changed the lease, as an extend does."""
        return self._leases.one_use(delivery)

    def route(self, by: Principal, queue: str, tag: str | None, lane: int, *, most_bytes: int, some: int | None = None) -> dict[Verb, str]:
        """Has the plane serve what it can of what `by` asks of a queue. Returns which verbs it does
        not serve, and why.
        """
        if not self.plane.is_on:
            return whys.of_all(whys.OFF)
        refused = {verb: whys.REFUSED for verb in whys.VERBS.values() if self._plain(by, verb, queue, tag) is None}
        found = self.catalog.queues.get(full(by.account, queue))
        if len(refused) == len(whys.VERBS) or found is None or (tag and tag not in found.by_name):
            return whys.of_all(whys.REFUSED)
        self._wake.want(found.incarnation)
        if self._quotas.counts(found, "read_qps"):
            refused.setdefault(Verb.RECEIVE, whys.QUOTA)
        if self._quotas.counts(found, "write_qps"):
            refused.setdefault(Verb.SEND, whys.QUOTA)
        at = found.tag(tag)
        bounds = self._asker(by, found, at.name).bounds
        counts_bytes = self._quotas.counts(found, "daily_bytes")
        return self.plane.route(by, found, at, lane, refused, some=some, most_bytes=most_bytes, bounds=bounds, counts_bytes=counts_bytes)

    # Verbs on handles answer each by itself. `all_or_none`: instead they raise what is wrong with
    # the first handle that is INVALID, and change nothing.

    async def ack(
        self, by: Principal, queue: str, handles: list[str], *, late: Late = Late.ALWAYS, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Settles messages."""
        until = state_until()
        found = self._known(by, Verb.ACK, queue) or await self._queue(by, Verb.ACK, queue, until=until)
        return await self._leases.ack(found, handles, until, late=late, all_or_none=all_or_none)

    async def extend(
        self, by: Principal, queue: str, entries: list[ExtendEntry], *, late: Late = Late.ALWAYS, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Gives leases a new length from now."""
        until = state_until()
        found = await self._queue(by, Verb.EXTEND, queue, until=until)
        return await self._leases.extend(found, entries, until, late=late, all_or_none=all_or_none)

    async def release(
        self, by: Principal, queue: str, handles: list[str], delay_ms: int = 0, *, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Gives messages back, receivable after `delay_ms`."""
        until = state_until()
        found = await self._queue(by, Verb.RELEASE, queue, until=until)
        return await self._leases.release(found, handles, delay_ms, until, all_or_none=all_or_none)

    @bounded(MESSAGES_S)
    async def kill(self, by: Principal, queue: str, handles: list[str], *, all_or_none: bool = False) -> list[EntryResult]:
        """Sends messages to the dead-letter queue now; ok = it has them. Raises NotAllowedOnQueue
        without a policy.
        """
        return await self._leases.kill(await self._queue(by, Verb.KILL, queue), handles, all_or_none=all_or_none)

    @bounded(MESSAGES_S)
    async def peek(self, by: Principal, queue: str, id_or_handle: str, tag: str | None, *, held: bool = False) -> Peeked:
        """A message by its id; `held`: unless it is settled under every tag."""
        found = await self._queue(by, Verb.PEEK, queue, tag)
        # Who may see messages of this tag alone is shown no other by its id.
        of_tag = not self._access.may(by, Verb.PEEK, found)
        return await self._browse.peek(found, id_or_handle, found.tag(tag), of_tag=of_tag, held=held)

    @bounded(MESSAGES_S)
    async def peek_next(self, by: Principal, queue: str, tag: str | None, max: int) -> list[Peeked]:
        """The messages that a receive would lease now, up to `max`, in its order; none is."""
        found = await self._queue(by, Verb.PEEK, queue, tag)
        return await self._browse.peek_next(found, found.tag(tag), max)

    @bounded(MESSAGES_S)
    async def query(
        self,
        by: Principal,
        queue: str,
        tag: str | None,
        from_ms: int | None,
        to_ms: int | None,
        state: str | None,
        filter: Filter | None,
        limit: int,
        next: str | None,
        partition: int | None = None,
        *,
        held: bool = False,
    ) -> Page:
        """A page of messages sent in [from_ms, to_ms) with this state and these attributes; of all
        partitions, or of one. `held`: without what is settled under every tag.
        """
        found = await self._queue(by, Verb.QUERY, queue, tag)
        return await self._browse.query(found, found.tag(tag), from_ms, to_ms, state, filter, limit, next, partition, held=held)

    @bounded(MESSAGES_S)
    async def delete_message(self, by: Principal, queue: str, id: str, *, unreceived: bool = False) -> None:
        """`unreceived`: only what was received under no tag; else what nobody has leased now."""
        await self._browse.delete(await self._queue(by, Verb.DELETE_MESSAGE, queue), id, unreceived=unreceived)

    @bounded(MESSAGES_S)
    async def cancel(self, by: Principal, queue: str, id: str) -> None:
        """Settles a message that is not due yet, under all tags: nobody is given it. Raises
        MessageNotFound, MessageDue.
        """
        await self._schedule.cancel(await self._queue(by, Verb.CANCEL, queue), id)

    @bounded(MESSAGES_S)
    async def reschedule(self, by: Principal, queue: str, id: str, deliver_at_ms: int) -> None:
        """Gives a message that is not due yet another due time; a past one is now. Raises
        MessageNotFound, MessageDue, InvalidValue, TooManyDelayed.
        """
        await self._schedule.reschedule(await self._queue(by, Verb.RESCHEDULE, queue), id, deliver_at_ms)

    # Service

    async def ready(self) -> dict[str, str]:
        """Part -> "ok", or what is wrong."""
        alive = await self.log.alive()
        redis = (self.parts.base.lives.trouble or "ok") if self.parts.base.connection.connected else "no connection"
        return {"kafka": "ok" if alive else "does not answer", "redis": redis}

    def counts(self) -> dict[str, float]:
        """Counters of this process."""
        return self.parts.counts()
