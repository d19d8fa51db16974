"""A history in the order that the checkers ask for: queues, messages, deliveries, and what became
of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.judge.history import NEVER, SQS, Delivered, History, Line, Op, Result, Sent
from tests.judge.losses import SECOND, Losses

# A client's clock and the server's milliseconds are two views of one time.
MARGIN_MS = 50
# How long a purge without an answer may go on in a process that stood still, after that was healed.
PURGES_NS = 5 * SECOND


@dataclasses.dataclass(slots=True)
class Plan:
    """How a queue was made, and what the driver does with it. A tag takes all (''), a kind, or any
    kind (`*`).
    """

    name: str
    durable: bool = False
    dead_letters: str = ""
    max_count: int = 0
    fifo: bool = False
    dedup_scope: str = "queue"
    content_dedup: bool = False
    steady: bool = False
    kept: bool = False  # what it holds stays there at the end
    remade: bool = False  # deleted and made again, under the same name
    tags: dict[str, str] = dataclasses.field(default_factory=lambda: {"default": ""})

    def wants(self, tag: str, sent: Sent) -> bool:
        """Whether the tag's filter takes the message."""
        wanted = self.tags[tag]
        return bool(sent.kind) if wanted == "*" else wanted in ("", sent.kind)

    def dedup_key(self, sent: Sent) -> tuple[str, str] | None:
        """Messages of one key within five minutes are one."""
        key = sent.dedup or (sent.body if self.content_dedup else "")
        return (sent.group if self.dedup_scope == "group" else "", key) if self.fifo and key else None


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
        if self.result is None:
            return self.op.outcome == "info"
        return self.blind or self.result.status in ("info", "broken")


@dataclasses.dataclass(slots=True)
class Delivery:
    """A delivery with the receive that brought it. It was leased between `early_ms` and
    `received_ms`, the same where the answer told the server's time, until `until_ms` at least.
    """

    queue: str
    tag: str
    it: Delivered
    op: Op
    early_ms: float
    received_ms: float
    until_ms: float
    settles: list[Settle] = dataclasses.field(default_factory=list)

    @property
    def told(self) -> bool:
        """Whether its times are the server's own."""
        return self.it.visible_ms > 0

    def where(self) -> str:
        it = self.it
        return f"{it.uid} (id {it.id}) of {self.queue}/{self.tag}, delivery {it.count}, line {self.op.lines[1]}"

    def by(self, *verbs: str) -> Iterator[Settle]:
        """What was done, or may have been done, with this delivery."""
        return (s for s in self.settles if s.verb in verbs and (s.done or s.unknown))

    def before(self, other: Delivery) -> bool:
        """Whether it was surely leased before another."""
        if self.told and other.told:
            return self.received_ms < other.received_ms
        return self.op.ended < other.op.began


@dataclasses.dataclass(slots=True)
class Try:
    """A send of a message; `id` is the server's, empty when it was not told."""

    op: Op
    outcome: str
    id: str


@dataclasses.dataclass(slots=True)
class Message:
    """A message with all its sends: a client may repeat what was not answered."""

    sent: Sent
    tries: list[Try]

    @property
    def _best(self) -> Try:
        return next((one for one in self.tries if one.outcome == "ok"), self.tries[0])

    @property
    def op(self) -> Op:
        """The first send that was answered by ok, or the first."""
        return self._best.op

    @property
    def id(self) -> str:
        return self._best.id

    @property
    def ok(self) -> bool:
        return self._best.outcome == "ok"

    @property
    def possible(self) -> int:
        """How many sends may have been done."""
        return sum(one.outcome != "fail" for one in self.tries)

    @property
    def began(self) -> int:
        """When it was first asked for."""
        return min(one.op.began for one in self.tries)


Key = tuple[str, str, str]  # queue, tag, id


class Story:
    """The history in order. `deliveries` of one message under one tag are in the order of the
    server's times.

    `children` are the deliveries of copies by the id that they were moved from.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.losses = Losses(history)
        self.excused = self.losses.excused
        self.plans: dict[str, Plan] = {}
        self.messages: dict[str, dict[str, Message]] = defaultdict(dict)
        self.deliveries: dict[Key, list[Delivery]] = defaultdict(list)
        self.by_handle: dict[str, list[Delivery]] = defaultdict(list)
        self.by_uid: dict[tuple[str, str], list[Delivery]] = defaultdict(list)
        self.children: dict[str, list[Delivery]] = defaultdict(list)
        self._ops: dict[str, list[Op]] = defaultdict(list)
        for op in history.ops:
            self._ops[op.line.verb].append(op)
            self._add(op)
        for found in self.deliveries.values():
            # A lease that was taken ahead of its receive is some ms longer than asked for, so the
            # time of its end alone says too late a time.
            found.sort(key=lambda d: (min(d.received_ms, history.ms(d.op.ended)), d.it.count))
        for op in history.ops:
            self._settle(op)
        for d in self.all_deliveries():
            for s in d.settles:
                s.blind = s.verb == "ack" and s.op.line.by == SQS and s.op.ok and not self._surely_leased(d, s)

    def _add(self, op: Op) -> None:
        line = op.line
        if line.verb == "create":
            # A queue that comes and goes has no plan; the status of an answer is no part of one.
            given: dict[str, Any] = {"remade": True} if "life" in line.args else line.args
            self.plans[line.queue] = Plan(line.queue, **{name: given[name] for name in given if name != "status"})
        elif line.verb == "send":
            self._sent(op)
        elif line.verb == "receive" and op.ok and op.end is not None:
            for it in op.end.deliveries:
                found = self._delivery(op, it)
                self.deliveries[line.queue, line.tag, it.id].append(found)
                self.by_handle[it.handle].append(found)
                self.by_uid[line.queue, it.uid].append(found)
                if it.origin is not None:
                    self.children[it.origin.from_id].append(found)

    def _sent(self, op: Op) -> None:
        ids, results = (op.end.ids, op.end.results) if op.end is not None else ([], [])
        for sent, given, result in itertools.zip_longest(op.line.sends, ids[: len(op.line.sends)], results):
            outcome = result.status if isinstance(result, Result) else op.outcome
            one = Try(op, outcome, str(given or "") if outcome == "ok" else "")
            self.messages[op.line.queue].setdefault(sent.uid, Message(sent, [])).tries.append(one)

    def _delivery(self, op: Op, it: Delivered) -> Delivery:
        line, lease_ms = op.line, max(1, op.line.args["lease_ms"])
        if it.visible_ms:
            early, late, until = it.visible_ms - lease_ms, it.visible_ms - lease_ms, it.visible_ms
            return Delivery(line.queue, line.tag, it, op, early, late, until)
        began = self.history.ms(op.began)
        return Delivery(line.queue, line.tag, it, op, began, self.history.ms(op.ended), began + lease_ms - MARGIN_MS)

    def _settle(self, op: Op) -> None:
        results = op.end.results if op.end is not None else []
        for handle, result in itertools.zip_longest(op.line.handles, results):
            for found in self.by_handle.get(str(handle), []):
                found.settles.append(Settle(op, result if isinstance(result, Result) else None))

    def _surely_leased(self, d: Delivery, s: Settle) -> bool:
        """Whether the lease surely lasted until a verb had ended, so that its handle was not
        stale.
        """
        others = not d.told and any(
            other is not d and other.op.ended > d.op.began and other.op.began < s.op.ended
            for other in self.deliveries[d.queue, d.tag, d.it.id]
        )
        forgotten = self.excused(d.op.began, d.op.ended, s.op.ended)
        return not others and not forgotten and self.history.ms(s.op.ended) < self.held_until(d, s.op)

    def held_until(self, d: Delivery, other: Op) -> float:
        """Server ms until which the lease surely lasts, after all that was or may have been done
        with its handle before another operation ended.

        What was asked later does not count: a handle that was stale may be good again, when a loss
        has forgotten the delivery after it.
        """
        until = d.until_ms
        for s in sorted(d.settles, key=lambda s: s.op.began):
            if s.op is other or s.op.began >= other.ended:
                break
            asked = self.history.ms(s.op.began)
            told = s.result.visible_ms if s.done and s.result is not None else 0
            if s.verb == "extend" and told:
                until = told
            elif s.verb == "extend" and (s.done or s.unknown):
                new = asked + s.op.line.args.get("lease_ms", 0) - MARGIN_MS
                until = new if s.done and s.op.ended <= other.began else min(until, new)
            elif s.verb == "release" and told:
                until = min(until, told - s.op.line.args["delay_ms"])
            elif s.done or s.unknown:
                until = min(until, asked)
        return until

    def ops(self, verb: str, queue: str | None = None) -> list[Op]:
        """The operations of a verb, on one queue or on all."""
        return [op for op in self._ops[verb] if queue in (None, op.line.queue)]

    def notes(self, verb: str) -> list[Line]:
        """The notes of a kind."""
        return [line for line in self.history.notes if line.verb == verb]

    def all_deliveries(self) -> Iterator[Delivery]:
        return itertools.chain.from_iterable(self.deliveries.values())

    def sources(self) -> dict[str, Plan]:
        """The queues that have dead letters, by where these go."""
        return {plan.dead_letters: plan for plan in self.plans.values() if plan.dead_letters}

    def found(self, plan: Plan, tag: str, message: Message) -> list[Delivery]:
        """The deliveries of a message under a tag: by its name, by the ids that its sends were
        answered with (a repeat has that of the first), and as a letter.
        """
        ids = {one.id for one in message.tries if one.id}
        here = [d for d in self.by_uid.get((plan.name, message.sent.uid), []) if d.tag == tag]
        repeated = (d for given in ids for d in self.deliveries.get((plan.name, tag, given), []))
        letters = (
            d
            for d in self.by_uid.get((plan.dead_letters, message.sent.uid), [])
            if d.it.origin is None or d.it.origin.from_tag == tag
        )
        return [*here, *(d for d in repeated if d.it.uid != message.sent.uid), *letters]

    def ends(self, plan: Plan, found: list[Delivery]) -> list[Settle]:
        """What has, or may have, ended a message: where it dies, its letter has to be acked."""
        verbs = ("ack",) if plan.dead_letters else ("ack", "kill")
        return [s for d in found for s in d.by(*verbs)]

    def purged_until(self, queue: str) -> int:
        """When the last purge that may have been done was over at the latest: one without an answer
        may lie in a process that stands still. 0 when there was none.
        """
        ends = [0]
        for op in self.ops("purge", queue):
            heals = [fault.over for fault in self.history.faults if fault.began <= op.left]
            if op.outcome != "fail":
                ends.append(op.left if op.ok else min(NEVER, max([op.left, *heals]) + PURGES_NS))
        return max(ends)
