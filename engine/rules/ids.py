"""Message ids of this service: made with its secret, so that nobody else can make one."""

from __future__ import annotations

from engine.rules.queue import Queue
from schemas.identity import ids_of


class Ids:
    """The secret that signs ids and receipt handles, and what is made with it."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode()

    def message_id(self, queue: Queue, partition: int, offset: int) -> str:
        return ids_of(self.secret, queue.incarnation, partition)(offset)
