"""The verbs of messages: send, receive, what the holder of a handle may do, and looks.

Each method passes the gate before anything else. Longer than 250 lines: a method per verb.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from msgspec import structs

from engine.errors import EngineError, LogUnavailable, NotAllowedOnQueue, NotStored, Unavailable
from engine.gate import Gate, bounded
from engine.handles.parts import HandleParts
from engine.meters.meters import NO_TAG
from engine.move.shapes import Copied
from engine.queues.callers.quotas import FREE
from engine.receive.browse import Wanted
from engine.receive.parts import ReceiveParts
from engine.rules.masks.mask import Mask
from engine.rules.masks.sight import masked
from engine.rules.queue import Queue
from engine.rules.rights import NOBODY
from engine.send.parts import SendParts
from engine.shapes import Delivery, EntryResult, ExtendEntry, Late, Life, Page, Peeked, Principal, SendEntry, Sent
from runtime.cancel import before
from runtime.deadline import MESSAGES_S, WAITED_S, began_ns, state_until
from schemas.accounts import short
from schemas.filters import Filter, Text
from schemas.identity import incarnation_in
from schemas.records import Message
from schemas.vocabulary import Operation, Reason, Verb
from state.errors import StateError

# So long before its bound a verb has its answer, whatever it still waits for.
ANSWER_S = 0.5


class MessageService:
    """Sends messages, leases them, and settles them."""

    def __init__(self, gate: Gate, sends: SendParts, receives: ReceiveParts, handles: HandleParts) -> None:
        self._gate = gate
        self._sender = sends.sender
        self._receiver = receives.receiver
        self._handles = handles.handles
        self._settlements = handles.settlements
        self._leases = handles.leases
        self._kills = handles.kills
        self._attempts = handles.attempts
        self._browse = receives.browse
        self._events = receives.events
        self._schedule = sends.schedule

    async def send(self, by: Principal, queue: str, entries: list[SendEntry]) -> list[Sent]:
        """Sends 1-100 messages, all or none; Kafka has them when this returns. Raises
        MessageTooLarge, NotStored (repeat it), LogUnavailable (the outcome is unknown).
        """
        until = self._gate.send_until()
        found = self._gate.known(by, Verb.SEND, queue)
        if found is None:
            found = await before(until, self._gate.queue(by, Verb.SEND, queue), lambda: NotStored.of(queue))
        charge: AbstractContextManager[None] = FREE
        if self._gate.is_bound(found):
            charge = await before(until, self._gate.charge_send(found, entries), lambda: NotStored.of(queue))
        began = began_ns()
        with charge:
            sent = await self._sender.send(found, by.id, entries, until)
        operation = Operation.SINGLE_SEND if len(entries) == 1 else Operation.BATCH_SEND
        self._gate.note(found.incarnation, NO_TAG, operation, len(entries), began)
        return sent

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

        `filter`: only messages that fit; others stay for other receives. Not on a FIFO queue.

        `attempt` names a receive of a FIFO queue: repeated, it is answered as before
        (engine/handles/attempts.py); others ignore it.
        """
        found = self._gate.known(by, Verb.RECEIVE, queue, tag)
        if found is None or (tag and tag not in found.by_name):
            found = await self._gate.queue(by, Verb.RECEIVE, queue, tag)
        at = found.tag(tag)
        if self._gate.is_bound(found):
            await self._gate.charge_receive(found, at)
        began = began_ns()
        waits = found.record.receive_wait_ms if wait_ms is None else wait_ms
        if waits and (waited_s := WAITED_S.get()):
            left_ms = waits - round(waited_s * 1000)
            wait_ms = waits = left_ms if left_ms > 0 else 1
        operation = Operation.LONG_RECEIVE if waits else Operation.SHORT_RECEIVE
        if attempt is not None and found.record.fifo and at.id not in found.paused:
            late = partial(LogUnavailable, "Kafka does not give what the attempt was answered")
            answered = self._attempts.again(found, at, by.id, attempt, lease_ms)
            again = await before(self._gate.send_until(), answered, late)
            if again:
                self._gate.note(found.incarnation, at.id, operation, len(again), began)
                return again
        asker = self._gate.asker(by, found, at.name) if waits else NOBODY
        deliveries = await self._receiver.receive(found, at, max, wait_ms, lease_ms, filter, asker)
        if attempt is not None and deliveries and found.record.fifo:
            self._attempts.keep(found, at, by.id, attempt, deliveries)
        self._note_received(found, at.id, operation, deliveries, began)
        return deliveries

    def _note_received(
        self, queue: Queue, tag: int, operation: Operation, deliveries: list[Delivery], began: int
    ) -> None:
        in_queue_ms = []
        for one in deliveries:  # no comprehension: a call for each receive counts here
            if one.receive_count == 1 and one.received_at_ms:
                in_queue_ms.append(one.received_at_ms - one.sent_at_ms)  # noqa: PERF401
        self._gate.note(queue.incarnation, tag, operation, len(deliveries), began, in_queue_ms)

    def undelivered(self, deliveries: Sequence[Delivery]) -> None:
        """No answer carried what one receive has leased: it is given back as if it never was.
        Returns at once.
        """
        if deliveries[0].message.group is not None and not deliveries[0].repeated:
            self._attempts.forget(deliveries)
        self._receiver.undelivered(deliveries)

    def one_use(self, delivery: Delivery) -> str:
        """A handle for one use: stale once anything has changed the lease, as an extend does."""
        return self._handles.one_use(delivery)

    # Verbs on handles answer each by itself. `all_or_none`: instead they raise what is wrong with
    # the first handle that is INVALID, and change nothing.

    async def ack(
        self, by: Principal, queue: str, handles: list[str], *, late: Late = Late.ALWAYS, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Settles messages."""
        until = state_until()
        found = self._gate.known(by, Verb.ACK, queue) or await self._gate.queue(by, Verb.ACK, queue, until=until)
        return await self._settlements.ack(found, handles, until, late=late, all_or_none=all_or_none)

    async def extend(
        self,
        by: Principal,
        queue: str,
        entries: list[ExtendEntry],
        *,
        late: Late = Late.ALWAYS,
        all_or_none: bool = False,
    ) -> list[EntryResult]:
        """Gives leases a new length from now."""
        until = state_until()
        found = await self._gate.queue(by, Verb.EXTEND, queue, until=until)
        return await self._leases.extend(found, entries, until, late=late, all_or_none=all_or_none)

    async def release(
        self, by: Principal, queue: str, handles: list[str], delay_ms: int = 0, *, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Gives messages back, receivable after `delay_ms`."""
        until = state_until()
        found = await self._gate.queue(by, Verb.RELEASE, queue, until=until)
        return await self._leases.release(found, handles, delay_ms, until, all_or_none=all_or_none)

    @bounded(MESSAGES_S)
    async def kill(
        self, by: Principal, queue: str, handles: list[str], reasons: Sequence[str] = (), *, all_or_none: bool = False
    ) -> list[EntryResult]:
        """Sends messages to the dead-letter queue now; ok = it has them. Raises NotAllowedOnQueue
        without a policy. `reasons`: for each handle one that its dead letter tells, or none.
        """
        found = await self._gate.queue(by, Verb.KILL, queue)
        return await self._kills.kill(found, handles, reasons, all_or_none=all_or_none)

    @bounded(MESSAGES_S)
    async def peek(
        self, by: Principal, queue: str, id_or_handle: str, tag: str | None, *, held: bool = False
    ) -> Peeked:
        """A message by its id; `held`: unless it is settled under every tag."""
        found = await self._gate.queue(by, Verb.PEEK, queue, tag)
        # Who may see messages of this tag alone is shown no other by its id.
        of_tag, at = not self._gate.may(by, Verb.PEEK, found), found.tag(tag)
        return await self._browse.peek(
            found, id_or_handle, at, self._gate.sight(by, found, at), of_tag=of_tag, held=held
        )

    @bounded(MESSAGES_S)
    async def message_events(self, by: Principal, queue: str, id: str, tag: str | None, next: str | None) -> Life:
        """What happened to a message, as its record and the journal have it: under a tag, None =
        under all that `by` may look at. Raises MessageNotFound, InvalidValue.
        """
        found = await self._gate.queue(by, Verb.PEEK, queue, tag)
        of_tag = not self._gate.may(by, Verb.PEEK, found)
        # Whole: a tag may want it by an attribute that is hidden, of which nothing is shown here.
        peeked = await self._browse.peek(found, id, found.tag(tag), None, of_tag=of_tag)
        tags = found.tags if tag is None and not of_tag else [found.tag(tag)]
        life = await self._events.of(found, peeked, tags, next)
        if not by.account:
            return life
        events = [
            structs.replace(one, queue=None if one.queue is None else short(by.account, one.queue))
            for one in life.events
        ]
        return structs.replace(life, events=events)

    @bounded(MESSAGES_S)
    async def peek_next(self, by: Principal, queue: str, tag: str | None, max: int) -> list[Peeked]:
        """The messages that a receive would lease now, up to `max`, in its order; none is."""
        found = await self._gate.queue(by, Verb.PEEK, queue, tag)
        at = found.tag(tag)
        return await self._browse.peek_next(found, at, self._gate.sight(by, found, at), max)

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
        text: Text | None = None,
    ) -> Page:
        """A page of messages sent in [from_ms, to_ms) with this state and these attributes; of all
        partitions, or of one. `held`: without what is settled under every tag.
        `text`: only bodies with that in them.
        """
        found = await self._gate.queue(by, Verb.QUERY, queue, tag)
        at = found.tag(tag)
        wanted = Wanted(self._gate.sight(by, found, at), state, filter, held, text)
        return await self._browse.query(found, at, wanted, from_ms, to_ms, limit, next, partition)

    @bounded(MESSAGES_S)
    async def delete_message(self, by: Principal, queue: str, id: str, *, unreceived: bool = False) -> None:
        """`unreceived`: only what was received under no tag; else what nobody has leased now."""
        await self._browse.delete(await self._gate.queue(by, Verb.DELETE_MESSAGE, queue), id, unreceived=unreceived)

    @bounded(MESSAGES_S)
    async def copy_message(
        self,
        by: Principal,
        queue: str,
        id: str,
        destination: str | None,
        edit: Callable[[Message], SendEntry],
        *,
        edited: bool = True,
        remove: bool = False,
    ) -> Copied:
        """Sends what `edit` makes of a message to `destination`, None = to where it came from, a
        message that came from nowhere to its own queue. `remove`: deletes the message when the copy
        is stored, unless it is leased. Raises MessageNotFound, NotAllowedOnQueue, and as `send`:
        nothing once the copy is stored. `edited`: whether body or attributes are others in the
        copy; who may not unmask the message, and not receive it, copies it as it is, and to where
        all that hides it from them hides the copy. They are told no digest of it.
        """
        until = asyncio.get_running_loop().time() + MESSAGES_S - ANSWER_S
        found = await self._gate.queue(by, Verb.PEEK, queue)
        if remove:
            await self._gate.queue(by, Verb.DELETE_MESSAGE, queue)
        peeked = await self._browse.peek(found, id, found.tag(None), None)
        message = peeked.message
        masks = self._masks(by, found, message)
        if masks and edited:
            raise masked(by, found, "edit a copy of it")
        origin = message.origin if message.origin is not None and message.origin.reason != Reason.COMMITTED else None
        name = destination or short(by.account, found.name if origin is None else origin.original_queue)
        target = await self._gate.queue(by, Verb.SEND, name)
        if destination is None and origin is not None and incarnation_in(origin.original_id) not in target.lives:
            raise NotAllowedOnQueue(
                f"the queue {name!r} that the message came from is gone: name a destination", field="destination"
            )
        if masks and not (self._hides(by, target, masks) or self._gate.may(by, Verb.RECEIVE, found)):
            raise masked(by, found, f"copy it to queue {name!r}")
        entry = edit(message)
        if target.record.fifo and entry.dedup_id is None:
            # By the id of the original, or its body, the copy would be a repeat of it, and dropped.
            entry = structs.replace(entry, dedup_id=peeked.id)
        (sent,) = await self.send(by, name, [entry])
        sent = structs.replace(sent, body_md5="") if masks else sent
        return Copied(sent, name, await self._removed(found, id, until) if remove else False)

    def _hides(self, by: Principal, queue: Queue, masks: Sequence[Mask]) -> bool:
        """Whether a queue hides from `by` all that the masks hide."""
        return not self._gate.may(by, Verb.UNMASK, queue) and all(mask.is_part_of(queue.hides) for mask in masks)

    def _masks(self, by: Principal, queue: Queue, message: Message) -> list[Mask]:
        """What hides something of a message from `by`."""
        sight = self._gate.sight(by, queue, queue.tag(None))
        return [] if sight is None else sight.masks(message)

    async def _removed(self, queue: Queue, id: str, until: float) -> bool | None:
        """Deletes a message unless it is leased; whether it did, None = not known by `until`."""
        left_s = until - asyncio.get_running_loop().time()
        try:
            await bounded(max(left_s, 0.0))(self._browse.delete)(queue, id, unreceived=False)
        except (Unavailable, StateError):
            return None
        except EngineError:
            return False
        return True

    @bounded(MESSAGES_S)
    async def cancel(self, by: Principal, queue: str, id: str) -> None:
        """Settles a message that is not due yet, under all tags: nobody is given it. Raises
        MessageNotFound, MessageDue.
        """
        await self._schedule.cancel(await self._gate.queue(by, Verb.CANCEL, queue), id)

    @bounded(MESSAGES_S)
    async def reschedule(self, by: Principal, queue: str, id: str, deliver_at_ms: int) -> None:
        """Gives a message that is not due yet another due time; a past one is now. Raises
        MessageNotFound, MessageDue, InvalidValue, TooManyDelayed.
        """
        await self._schedule.reschedule(await self._gate.queue(by, Verb.RESCHEDULE, queue), id, deliver_at_ms)
