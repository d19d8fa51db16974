"""Message ids and receipt handles of this service: made with its secret, so that nobody else can
make one.
"""

from __future__ import annotations

from engine.rules.queue import Queue
from schemas.identity import BadIdentity, Handle, MessageId, ids_of


class Ids:
    """The secret that signs ids and receipt handles, and what is made and read with it. What was
    made with `old` is read, too; "" = there is none.
    """

    def __init__(self, secret: str, old: str = "") -> None:
        self.secret = secret.encode()
        self._old = old.encode()

    def message_id(self, queue: Queue, partition: int, offset: int) -> str:
        return ids_of(self.secret, queue.incarnation, partition)(offset)

    def id_of(self, address: MessageId) -> str:
        """The id of the message at an address, be its queue there or not."""
        return address.text(self.secret)

    def read_id(self, text: str) -> MessageId:
        """Raises BadIdentity."""
        try:
            return MessageId.parse(text, self.secret)
        except BadIdentity:
            if not self._old:
                raise
            return MessageId.parse(text, self._old)

    def read_handle(self, text: str) -> Handle:
        """Raises BadIdentity."""
        try:
            return Handle.parse(text, self.secret)
        except BadIdentity:
            if not self._old:
                raise
            return Handle.parse(text, self._old)
