"""The verbs of messages while requests are traced: the messages of each are told to `Traces`.

A service of its own, so that nobody who has no traces pays for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engine.move.shapes import Move
from engine.services.messages import MessageService
from engine.shapes import Delivery, EntryResult, ExtendEntry, Principal, SendEntry, Sent


class Traces(Protocol):
    """What hears of the messages of the request that this task serves, and of moves. Each call
    returns at once and raises nothing.
    """

    def sending(self, entries: Sequence[SendEntry]) -> None:
        """Messages are about to be sent."""

    def sent(self, sent: Sequence[Sent]) -> None:
        """Kafka has them."""

    def received(self, tag: str, deliveries: Sequence[Delivery]) -> None:
        """Messages are leased to who asks, under a tag; "" = it named none."""

    def settling(self, handles: Sequence[str], id_of: Callable[[str], str]) -> None:
        """Something is about to be done with messages; `id_of` gives the message id of a handle, ""
        of a text that is none.
        """

    def moved(self, move: Move) -> None:
        """A message was moved, or could not be."""


class TracedMessages(MessageService):
    """As MessageService, for `traces`."""

    def __init__(self, traces: Traces, *parts: Any) -> None:
        super().__init__(*parts)
        self._traces = traces

    async def send(self, by: Principal, queue: str, entries: list[SendEntry]) -> list[Sent]:
        """See MessageService."""
        self._traces.sending(entries)
        sent = await super().send(by, queue, entries)
        self._traces.sent(sent)
        return sent

    async def receive(self, by: Principal, queue: str, tag: str | None, *given: Any, **more: Any) -> list[Delivery]:
        """See MessageService."""
        deliveries = await super().receive(by, queue, tag, *given, **more)
        self._traces.received(tag or "", deliveries)
        return deliveries

    async def ack(self, by: Principal, queue: str, handles: list[str], **how: Any) -> list[EntryResult]:
        """See MessageService."""
        self._traces.settling(handles, self._handles.message_id)
        return await super().ack(by, queue, handles, **how)

    async def extend(self, by: Principal, queue: str, entries: list[ExtendEntry], **how: Any) -> list[EntryResult]:
        """See MessageService."""
        self._traces.settling([entry.handle for entry in entries], self._handles.message_id)
        return await super().extend(by, queue, entries, **how)

    async def release(
        self, by: Principal, queue: str, handles: list[str], *delay: Any, **how: Any
    ) -> list[EntryResult]:
        """See MessageService."""
        self._traces.settling(handles, self._handles.message_id)
        return await super().release(by, queue, handles, *delay, **how)

    async def kill(self, by: Principal, queue: str, handles: list[str], *reasons: Any, **how: Any) -> list[EntryResult]:
        """See MessageService."""
        self._traces.settling(handles, self._handles.message_id)
        return await super().kill(by, queue, handles, *reasons, **how)
