"""Plain sends: those that need no task of their own, for nothing but Kafka is waited for.

Many are begun by one call; each is told when its batch is stored. Neighbours: `sender` commits
them with all others, by the same rules. Must not know who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic_ns

from engine.errors import Overloaded
from engine.log import Appended
from engine.rules.ids import Ids
from engine.rules.limits import MAX_BATCH_BYTES
from engine.rules.queue import Queue
from engine.runtime.meters import NO_TAG, Meters
from engine.send.sender import Sender, messages_of
from engine.shapes import SendEntry, TellSent
from schemas.identity import ids_of
from schemas.vocabulary import Operation


class PlainSend:
    """One send, as the future of an ordinary one."""

    __slots__ = ("_began_ns", "_ids", "_is_over", "_meters", "_queue", "_tell", "_token")

    def __init__(self, ids: Ids, meters: Meters, queue: Queue, token: int, began_ns: int, tell: TellSent) -> None:
        self._ids = ids
        self._meters = meters
        self._queue = queue
        self._token = token
        self._began_ns = began_ns
        self._tell = tell
        self._is_over = False

    def done(self) -> bool:
        return self._is_over

    def set_result(self, appended: list[Appended]) -> None:
        self._is_over = True
        id_of = ids_of(self._ids.secret, self._queue.incarnation, appended[0].partition)  # a send is in one partition
        operation = Operation.SINGLE_SEND if len(appended) == 1 else Operation.BATCH_SEND
        self._meters.note(self._queue.incarnation, NO_TAG, operation, len(appended), self._began_ns)
        self._tell(self._token, [id_of(one.offset) for one in appended], [one.timestamp_ms for one in appended])

    def set_exception(self, error: Exception) -> None:
        self._is_over = True
        self._tell(self._token, error, [])


class PlainSends:
    """For the tasks of one loop."""

    def __init__(self, sender: Sender, ids: Ids, meters: Meters) -> None:
        self._sender = sender
        self._ids = ids
        self._meters = meters

    def begin(
        self, queue: Queue | None, sender: str, sends: Sequence[tuple[int, Sequence[bytes], list[str]]], tell: TellSent, until: float
    ) -> list[int]:
        """Begins sends of (token, bodies, hex MD5 of each), and returns the tokens of those that
        are not plain, of which nothing was done: the queue is None or none of the plain kind, a
        body is too large, or too much waits. `tell` is called once for each of the others, at
        `until` (loop time) at the latest.
        """
        if queue is None or queue.record.fifo or queue.record.priority or queue.record.delay_ms:
            return [token for token, _, _ in sends]
        left: list[int] = []
        began_ns, most = monotonic_ns(), queue.record.max_message_bytes
        for token, bodies, digests in sends:
            sizes = [len(body) for body in bodies]
            size = sum(sizes)
            if max(sizes) > most or size > MAX_BATCH_BYTES:
                left.append(token)
                continue
            messages = messages_of([SendEntry(body) for body in bodies], sender, 0, 0)
            done = PlainSend(self._ids, self._meters, queue, token, began_ns, tell)
            try:
                self._sender.begin(queue, messages, digests, size, done, until)
            except Overloaded:
                left.append(token)
        return left
