"""Leases that clients want renewed: those of push consumers, until they settle the message.

A lease of 60 s is renewed while its client is heard of on this worker, for three hours at most. All
is in memory: when this worker ends, the leases run out and others receive the messages. A client
that has gone to another worker acks there, which this one hears when it renews in vain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import EngineError
from engine.shapes import ExtendEntry, Late, Principal
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from schemas.vocabulary import EntryStatus

if TYPE_CHECKING:
    from engine.engine import Engine

RENEWED_MS: Final = 60_000
LOOK_S: Final = 5.0
LEFT_S: Final = 20.0  # a lease is renewed when so much of it is left
SILENT_S: Final = 30.0  # a client says every 10 s that it lives
RENEWED_FOR_S: Final = 3 * 3600.0
MOST: Final = 200_000
_BATCH: Final = 100

log = logging.getLogger("leaseway.rocketmq")


class Held(Struct):
    """A lease: its queue, when it ends, and until when it is renewed, in seconds of the loop."""

    queue: str
    ends_at: float
    until: float


class Client(Struct):
    """When a client was heard of last, and the leases to renew for it, by their handles."""

    by: Principal
    heard_at: float
    held: dict[str, Held]


class Renewals:
    """The leases that one worker renews. Belongs to one event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clients: dict[tuple[str, str], Client] = {}
        self._number = 0
        self._renewing = asyncio.Lock()

    def check_room(self) -> None:
        """Raises RocketError when as many leases are renewed as may be."""
        if self._number >= MOST:
            raise RocketError(Code.TOO_MANY_REQUESTS, f"a worker renews {MOST} leases at most: ack some messages first")

    def keep(self, by: Principal, client_id: str, queue: str, handles: Sequence[str]) -> None:
        """Renews these leases, which have begun just now."""
        if not handles:
            return
        now = _now()
        client = self._clients.setdefault((by.id, client_id), Client(by, now, {}))
        client.heard_at = now
        before = len(client.held)
        for handle in handles:
            client.held[handle] = Held(queue, now + RENEWED_MS / 1000, now + RENEWED_FOR_S)
        self._number += len(client.held) - before

    def forget(self, by: Principal, client_id: str, handles: Sequence[str]) -> None:
        """These leases are the client's again."""
        client = self._clients.get((by.id, client_id))
        if client is not None:
            for handle in handles:
                self._number -= client.held.pop(handle, None) is not None

    async def take(self, by: Principal, client_id: str, handle: str) -> None:
        """As `forget`, and no renewal of it is under way when this returns: the next change of the
        lease is the last.
        """
        self.forget(by, client_id, [handle])
        async with self._renewing:
            pass

    def heard(self, by: Principal, client_id: str) -> None:
        """The client lives."""
        client = self._clients.get((by.id, client_id))
        if client is not None:
            client.heard_at = _now()

    def leave(self, by: Principal, client_id: str) -> dict[str, list[str]]:
        """The client goes: the handles that it holds still, by queue, are renewed no more."""
        client = self._clients.pop((by.id, client_id), None)
        handles: dict[str, list[str]] = {}
        if client is not None:
            self._number -= len(client.held)
            for handle, held in client.held.items():
                handles.setdefault(held.queue, []).append(handle)
            client.held.clear()
        return handles

    async def run(self) -> None:
        """Renews until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.renew()

    async def renew(self) -> None:
        """One look at all leases. What can't be renewed now is tried at the next look."""
        for key, client in list(self._clients.items()):
            now = _now()
            if self._clients.get(key) is not client:
                continue
            if now - client.heard_at > SILENT_S or not client.held:
                self._number -= len(client.held)
                del self._clients[key]
                continue
            due: dict[str, list[str]] = {}
            for handle, held in list(client.held.items()):
                if now >= held.until:
                    del client.held[handle]
                    self._number -= 1
                elif held.ends_at - now < LEFT_S:
                    due.setdefault(held.queue, []).append(handle)
            for queue, handles in due.items():
                for first in range(0, len(handles), _BATCH):
                    async with self._renewing:
                        some = [handle for handle in handles[first : first + _BATCH] if handle in client.held]
                        if some:
                            await self._extend(client, queue, some)

    async def _extend(self, client: Client, queue: str, handles: Sequence[str]) -> None:
        now = _now()
        try:
            results = await self._engine.messages.extend(
                client.by, queue, [ExtendEntry(one, RENEWED_MS) for one in handles], late=Late.NEVER
            )
        except EngineError as error:
            log.warning("action=renew queue=%s leases=%d error=%s", queue, len(handles), error)
            return
        for result in results:
            held = client.held.get(result.handle)
            if held is None:
                continue  # settled or given back meanwhile
            if result.status == EntryStatus.OK:
                held.ends_at = now + RENEWED_MS / 1000
            else:
                del client.held[result.handle]
                self._number -= 1


def _now() -> float:
    return asyncio.get_running_loop().time()
