"""Plain acks: those that need no task of their own, for only Redis is waited for.

Many are begun by one call, and go with all others of their unit. One that can't be made as it is,
for the state was lost or Redis is away, is made anew by `leases`, which knows what to do: to settle
a message twice changes nothing. Neighbours: `acks` asks together. Must not know who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic_ns

from engine.catalog.catalog import Catalog
from engine.receive.handles.leases import Leases
from engine.rules.ids import Ids
from engine.rules.queue import Queue
from engine.runtime.meters import Meters
from engine.shapes import Late, TellAcked
from engine.window.body_cache import BodyCache
from schemas.identity import BadIdentity, Handle
from schemas.vocabulary import EntryStatus, Operation
from state.background import Background
from state.keys import Unit
from state.replies import Acked

_Rows = list[tuple[int, ...]]


class PlainAck:
    """The handles of one ack."""

    __slots__ = ("began_ns", "handles", "left", "queue", "tag", "tell", "token", "words")

    def __init__(self, queue: Queue, token: int, handles: Sequence[str], tag: int, began_ns: int, tell: TellAcked) -> None:
        self.queue = queue
        self.token = token
        self.handles = handles
        self.tag = tag
        self.began_ns = began_ns
        self.tell = tell
        self.left = 0  # parts that have not ended
        self.words: list[str] = [EntryStatus.STALE.value] * len(handles)


class Part:
    """What is of one unit and tag, as the future of an ordinary ack."""

    __slots__ = ("_ack", "_acks", "_places", "_rows", "_unit")

    def __init__(self, acks: PlainAcks, ack: PlainAck, unit: Unit, rows: _Rows, places: Sequence[int]) -> None:
        self._acks = acks
        self._ack = ack
        self._unit = unit
        self._rows = rows
        self._places = places  # of its handles among those of the ack

    def done(self) -> bool:
        return self._ack.left < 0

    def set_result(self, acked: Acked) -> None:
        for place, word in zip(self._places, acked.words, strict=True):
            self._ack.words[place] = word
        self._acks.settled(self._ack, self._unit, self._rows, acked)

    def set_exception(self, error: Exception) -> None:
        self._acks.failed(self._ack)


class PlainAcks:
    """For the tasks of one loop."""

    def __init__(self, leases: Leases, catalog: Catalog, ids: Ids, bodies: BodyCache, meters: Meters) -> None:
        self._leases = leases
        self._catalog = catalog
        self._ids = ids
        self._bodies = bodies
        self._meters = meters
        self._background = Background()

    def begin(self, queue: Queue | None, acks: Sequence[tuple[int, Sequence[str]]], tell: TellAcked) -> list[int]:
        """Begins acks of (token, distinct handles), and returns the tokens of those that are not
        plain, of which nothing was done: the queue is None, a FIFO queue or has durable acks, or a
        handle is not of its present life or for one use. `tell` is called once for each of the
        others.
        """
        if queue is None or queue.record.fifo or queue.record.durable_acks:
            return [token for token, _ in acks]
        left: list[int] = []
        began_ns = monotonic_ns()
        for token, texts in acks:
            places = self._places(queue, texts)
            if places is None:
                left.append(token)
                continue
            ack = PlainAck(queue, token, texts, next(iter(places))[1], began_ns, tell)
            ack.left = len(places)
            for (partition, tag), (rows, order) in places.items():
                unit = queue.units[partition]
                self._leases.begin(queue, unit, self._catalog.generation, tag, rows, Part(self, ack, unit, rows, order))
        return left

    def _places(self, queue: Queue, texts: Sequence[str]) -> dict[tuple[int, int], tuple[_Rows, list[int]]] | None:
        """By partition and tag (offset, nonce) of handles, and their places; None = one is not
        plain.
        """
        parse, secret, incarnation = Handle.parse, self._ids.secret, queue.incarnation
        places: dict[tuple[int, int], tuple[_Rows, list[int]]] = {}
        try:
            for index, text in enumerate(texts):
                handle = parse(text, secret)
                if handle.incarnation != incarnation or handle.until_ms:
                    return None
                at = (handle.partition, handle.tag)
                if at not in places:
                    if handle.tag not in queue.tag_ids or handle.partition >= len(queue.units):
                        return None
                    places[at] = [], []
                rows, order = places[at]
                rows.append((handle.offset, handle.nonce))
                order.append(index)
        except BadIdentity:
            return None
        return places

    def settled(self, ack: PlainAck, unit: Unit, rows: _Rows, acked: Acked) -> None:
        """A part of an ack is done; after the last one it is told."""
        if acked.seq:
            self._bodies.settle(unit, rows)
        ack.left -= 1
        if ack.left == 0:
            ack.left = -1
            self._meters.note(ack.queue.incarnation, ack.tag, Operation.DELETE, ack.words.count(EntryStatus.OK), ack.began_ns)
            ack.tell(ack.token, ack.words)

    def failed(self, ack: PlainAck) -> None:
        """A part of an ack could not be made."""
        ack.left = -1  # the others are not waited for
        self._background.start(self._again(ack), "ack")

    async def _again(self, ack: PlainAck) -> None:
        try:
            results = await self._leases.ack(ack.queue, ack.handles, late=Late.BY_QUEUE)
        except Exception as error:  # whoever asked must hear of it, whatever it is
            ack.tell(ack.token, error)
        else:
            ack.tell(ack.token, [str(result.status) for result in results])
