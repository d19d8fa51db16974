"""A history in the order that the checkers ask for: queues, messages, deliveries, what became of
them, and what a loss excuses.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterator

from tests.judge.history import NEVER, Delivered, Fault, History, Loss, Op, Result, Sent

SECOND = 1_000_000_000
# A change that was answered so long before a loss of Redis is in the journal (promised: 200 ms).
DRAINED_NS = 1 * SECOND
# So long after another fault the journal may still be behind (a lease of the owner, a broker that
# is back).
HELD_UP_NS = 8 * SECOND


@dataclasses.dataclass(slots=True)
class Plan:
    """How a queue was made, and what the harness does with it."""

    name: str
    durable: bool = False
    dead_letters: str = ""
    max_count: int = 0
    fifo: bool = False
    dedup_scope: str = "queue"
    content_dedup: bool = False
    steady: bool = False
    kept: bool = False  # what it holds stays there at the end
    tags: dict[str, str] = dataclasses.field(default_factory=lambda: {"default": ""})

    def wants(self, tag: str, sent: Sent) -> bool:
        """Whether the tag's filter (kind = value) takes the message."""
        return self.tags[tag] in ("", sent.kind)


@dataclasses.dataclass(slots=True)
class Settle:
    """One handle of an ack, extend, release or kill; `result` is None when there was no answer.
    `blind`: the answer says the same of a handle that was stale, and this one may have been.
    """

    op: Op
    result: Result | None
    blind: bool = False

    @property
    def verb(self) -> str:
        return self.op.line.verb

    @property
    def done(self) -> bool:
        return self.result is not None and self.result.status == "ok" and not self.blind

    @property
    def unknown(self) -> bool:
        """It may have been done."""
        return self.blind or (self.result is None and self.op.outcome == "info")


@dataclasses.dataclass(slots=True)
class Delivery:
    """A delivery with the receive that brought it. `received_ms` is the server's time, at the
    latest.
    """

    queue: str
    tag: str
    it: Delivered
    op: Op
    received_ms: int
    settles: list[Settle] = dataclasses.field(default_factory=list)

    def where(self) -> str:
        it = self.it
        return f"{it.uid} (id {it.id}) of {self.queue}/{self.tag}, delivery {it.count}, line {self.op.lines[1]}"

    def by(self, *verbs: str) -> Iterator[Settle]:
        """What was done, or may have been done, with this delivery."""
        return (s for s in self.settles if s.verb in verbs and (s.done or s.unknown))

    def acked(self) -> Settle | None:
        return next((s for s in self.settles if s.verb == "ack" and s.done), None)


@dataclasses.dataclass(slots=True)
class Message:
    """A message of a send: `id` is the server's, empty when the send was not answered by ok."""

    sent: Sent
    op: Op
    id: str


Key = tuple[str, str, str]  # queue, tag, id


class Story:
    """The history in order. `deliveries` of one message under one tag are in the order of the
    server's times.

    `children` are the deliveries of copies by the id that they were moved from; `moved` the ids
    that copies tell of.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.plans: dict[str, Plan] = {}
        self.messages: dict[str, dict[str, Message]] = defaultdict(dict)
        self.deliveries: dict[Key, list[Delivery]] = defaultdict(list)
        self.by_handle: dict[str, list[Delivery]] = defaultdict(list)
        self.by_uid: dict[tuple[str, str], list[Delivery]] = defaultdict(list)
        self.children: dict[str, list[Delivery]] = defaultdict(list)
        self.moved: set[str] = set()
        self._ops: dict[str, list[Op]] = defaultdict(list)
        for op in history.ops:
            self._ops[op.line.verb].append(op)
            self._add(op)
        for op in history.ops:
            self._settle(op)
        self._leased: dict[str, list[int]] = defaultdict(list)
        for (queue, _, _), some in self.deliveries.items():
            self._leased[queue] += [d.op.ended for d in some]
        for times in self._leased.values():
            times.sort()
        for found in self.deliveries.values():
            found.sort(key=lambda d: (self._leased_ms(d), d.it.count))

    def _leased_ms(self, d: Delivery) -> float:
        """When a message was leased, at the latest: a lease that was taken ahead of its receive is
        some ms longer than asked for, so the time of its end alone says too late a time.
        """
        return min(d.received_ms, self.history.ms(d.op.ended))

    def _add(self, op: Op) -> None:
        line = op.line
        if line.verb == "create":
            self.plans[line.queue] = Plan(line.queue, **line.args)
        elif line.verb == "send":
            ids = op.end.ids if op.ok and op.end is not None else []
            for index, sent in enumerate(line.sends):
                self.messages[line.queue][sent.uid] = Message(sent, op, ids[index] if index < len(ids) else "")
        elif line.verb == "receive" and op.ok and op.end is not None:
            for it in op.end.deliveries:
                found = Delivery(line.queue, line.tag, it, op, it.visible_ms - max(1, line.args["lease_ms"]))
                self.deliveries[line.queue, line.tag, it.id].append(found)
                self.by_handle[it.handle].append(found)
                self.by_uid[line.queue, it.uid].append(found)
                if it.origin is not None:
                    self.children[it.origin.from_id].append(found)
                    self.moved |= {it.origin.from_id, it.origin.original_id}

    def _settle(self, op: Op) -> None:
        results = op.end.results if op.ok and op.end is not None else []
        for handle, result in itertools.zip_longest(op.line.handles, results):
            for found in self.by_handle.get(str(handle), []):
                blind = bool(op.line.args.get("blind")) and op.ok and not self._surely_leased(found, op)
                found.settles.append(Settle(op, result if isinstance(result, Result) else None, blind))

    def _surely_leased(self, d: Delivery, op: Op) -> bool:
        """Whether the lease surely lasted until an operation had ended, so that its handle was not
        stale.
        """
        began = min(d.op.began, int(d.received_ms * 1e6) - self.history.wall_ns)
        return self.history.ms(op.ended) < d.it.visible_ms and not self.lost_between(began, op.ended)

    def ops(self, verb: str, queue: str | None = None) -> list[Op]:
        """The operations of a verb, on one queue or on all."""
        return [op for op in self._ops[verb] if queue in (None, op.line.queue)]

    def all_deliveries(self) -> Iterator[Delivery]:
        return itertools.chain.from_iterable(self.deliveries.values())

    def excused(self, began: int, ended: int, again: int) -> bool:
        """Whether a loss of Redis explains that what was done from `began` to `ended` was forgotten
        when `again` came (monotonic ns).

        It does when it was done within the second before the loss; or while the journal was held up
        by another fault.
        """
        return any(
            ended >= self._reach(loss) and began <= loss.ended and again >= loss.began for loss in self.history.losses
        )

    def hurt(self, queue: str, began: int, ended: int) -> bool:
        """Whether a fault was there while something was asked of a queue and answered (monotonic
        ns), or the queue had not been back for 8 s: since the heal, or since it leased a message
        again, for a slow machine rebuilds slowly.
        """
        return any(
            fault.began <= ended and self._back(queue, _end(fault)) + HELD_UP_NS >= began
            for fault in self.history.faults
        )

    def _back(self, queue: str, healed: int) -> int:
        """When a queue first leased a message after a time; that time when it never did."""
        leased = self._leased[queue]
        at = bisect.bisect_left(leased, healed)
        return leased[at] if at < len(leased) else healed

    def lost_between(self, early: int, late: int) -> bool:
        """Whether Redis lost state between two times."""
        return any(loss.ended >= early and loss.began <= late for loss in self.history.losses)

    def _reach(self, loss: Loss) -> int:
        """From when on what was done may be forgotten."""
        start = loss.began - DRAINED_NS
        for fault in self.history.faults:
            if (
                fault.op != loss.op
                and fault.holds_up
                and fault.began < loss.ended
                and _end(fault) + HELD_UP_NS > loss.began
            ):
                start = min(start, fault.began - DRAINED_NS)
        return start


def _end(fault: Fault) -> int:
    return fault.healed if fault.healed < NEVER else NEVER // 2
