"""Plain acks: those that need no task of their own, for only Redis is waited for.

Many are begun by one call, and go with all others of their unit. A part that can't be made as it
is, for the state was lost or Redis is away, goes on as any other call of the window; the other
parts are made already, and are not made again: their handles would be stale. Neighbours: `acks`
asks together. Must not know who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic_ns

from engine.catalog.catalog import Catalog
from engine.receive.handles.leases import Leases
from engine.rules.ids import Ids
from engine.rules.queue import Queue
from engine.runtime.deadline import state_until
from engine.runtime.meters import Meters
from engine.shapes import TellAcked
from engine.window.body_cache import BodyCache
from schemas.identity import BadIdentity, Handle
from schemas.vocabulary import EntryStatus, Operation
from state.background import Background
from state.keys import Unit
from state.replies import Acked

_Rows = list[tuple[int, ...]]


class PlainAck:
    """The handles of one ack."""

    __slots__ = ("began_ns", "handles", "left", "queue", "tag", "tell", "token", "until", "words")

    def __init__(self, queue: Queue, token: int, handles: Sequence[str], tag: int, began_ns: int, until: float, tell: TellAcked) -> None:
        self.queue = queue
        self.token = token
        self.handles = handles
        self.tag = tag
        self.began_ns = began_ns
        self.until = until
        self.tell = tell
        self.left = 0  # parts that have not ended
        self.words: list[str] = [EntryStatus.STALE.value] * len(handles)


class Part:
    """What is of one unit and tag, as the future of an ordinary ack. `places`: of its handles among
    those of the ack.
    """

    __slots__ = ("_acks", "ack", "places", "rows", "tag", "unit")

    def __init__(self, acks: PlainAcks, ack: PlainAck, unit: Unit, tag: int, rows: _Rows, places: Sequence[int]) -> None:
        self._acks = acks
        self.ack = ack
        self.unit = unit
        self.tag = tag
        self.rows = rows
        self.places = places

    def done(self) -> bool:
        return self.ack.left < 0

    def set_result(self, acked: Acked) -> None:
        self._acks.settled(self, acked)

    def set_exception(self, error: Exception) -> None:
        self._acks.go_on_soon(self, error)


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
        began_ns, until = monotonic_ns(), state_until()
        for token, texts in acks:
            places = self._places(queue, texts)
            if places is None:
                left.append(token)
                continue
            ack = PlainAck(queue, token, texts, next(iter(places))[1], began_ns, until, tell)
            ack.left = len(places)
            for (partition, tag), (rows, order) in places.items():
                unit = queue.units[partition]
                self._leases.begin(queue, unit, self._catalog.generation, tag, rows, Part(self, ack, unit, tag, rows, order))
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

    def settled(self, part: Part, acked: Acked) -> None:
        """A part of an ack is done; after the last one it is told."""
        ack = part.ack
        for place, word in zip(part.places, acked.words, strict=True):
            ack.words[place] = word
        if acked.seq:
            self._bodies.settle(part.unit, part.rows)
        ack.left -= 1
        if ack.left == 0:
            ack.left = -1
            self._meters.note(ack.queue.incarnation, ack.tag, Operation.DELETE, ack.words.count(EntryStatus.OK), ack.began_ns)
            ack.tell(ack.token, ack.words)

    def go_on_soon(self, part: Part, met: Exception) -> None:
        """A part of an ack could not be made as it is."""
        self._background.start(self._go_on(part, met), "ack")

    async def _go_on(self, part: Part, met: Exception) -> None:
        try:
            acked = await self._leases.go_on(part.ack.queue, part.unit, part.tag, part.rows, met, part.ack.until)
        except Exception as error:  # whoever asked must hear of it, whatever it is
            if not part.done():
                part.ack.left = -1  # the other parts are not waited for
                part.ack.tell(part.ack.token, error)
        else:
            if not part.done():
                self.settled(part, acked)
