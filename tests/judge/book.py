"""Small histories by hand, for the tests of the checkers: operations at stated times, ids and
handles made from names.

Time is in ms; the server's clock is the history's. A send, receive or verb takes 10 ms, and the
server acts in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.judge.history import SQS, Delivered, Line, Origin, Result, Sent, of
from tests.judge.story import Story
from tests.judge.verdict import Verdict

TOOK_MS = 10
MS = 1_000_000


def delivered(
    name: str, at: float, *, lease_ms: int = 5000, count: int = 1, told: bool = True, **more: Any
) -> Delivered:
    """A delivery of message `name` at server time `at`, which may not be told; its id and handle
    follow from name and time unless given.
    """
    uid = more.pop("uid", name)
    given = {
        "id": f"id-{name}",
        "handle": f"{name}@{at:.0f}",
        "body": f"body-{uid}",
        "attributes": "",
        **more,
    }
    return Delivered(uid=uid, count=count, visible_ms=int(at) + lease_ms if told else 0, **given)


def origin(from_id: str, reason: str = "exhausted", count: int = 3, queue: str = "q", first: str = "") -> Origin:
    return Origin(from_id, "default", first or from_id, queue, reason, count)


class Book:
    """Collects lines; `story` reads them back."""

    def __init__(self) -> None:
        self.lines: list[Line] = [Line("start", 0, args={"wall_ns": 0})]
        self._op = 0

    def queue(self, name: str = "q", **plan: Any) -> Book:
        """Makes a queue at time 0."""
        return self.op(0, "create", queue=name, args=plan)

    def op(
        self, at: float, verb: str, *, outcome: str = "ok", took: float = TOOK_MS, queue: str = "q", **fields: Any
    ) -> Book:
        """An operation; `outcome` '' leaves it without an answer."""
        answered = {name: fields.pop(name) for name in ("ids", "deliveries", "results", "answer") if name in fields}
        status = fields.pop("status", 200)
        self._op += 1
        self.lines.append(Line("invoke", int(at * MS), op=self._op, verb=verb, queue=queue, **fields))
        if outcome:
            self.lines.append(Line(outcome, int((at + took) * MS), op=self._op, args={"status": status}, **answered))
        return self

    def send(
        self, at: float, *names: str, outcome: str = "ok", queue: str = "q", ids: list[str] | None = None, **more: Any
    ) -> Book:
        sends = [Sent(name, f"body-{name}", "", **more) for name in names]
        return self.op(at, "send", outcome=outcome, queue=queue, sends=sends, ids=ids or [f"id-{n}" for n in names])

    def receive(self, at: float, *found: Delivered, lease_ms: int = 5000, **more: Any) -> Book:
        args = {"lease_ms": lease_ms, "max": 10}
        return self.op(at, "receive", args=args, deliveries=list(found), **more)

    def lease(self, at: float, name: str, **more: Any) -> Book:
        """A receive that brings one message, leased in its middle."""
        where = {key: more.pop(key) for key in ("queue", "tag", "by", "took") if key in more}
        lease_ms = more.get("lease_ms", 5000)
        return self.receive(at, delivered(name, at + TOOK_MS / 2, **more), lease_ms=lease_ms, **where)

    def some(self, *results: Result) -> Book:
        """The send before was answered message by message."""
        next(line for line in self.lines if line.type == "ok" and line.ids).results = list(results)
        return self

    def taken(self, at: float, name: str, **more: Any) -> Book:
        """The same by SQS, which does not tell the server's times."""
        return self.lease(at, name, by=SQS, told=False, **more)

    def unheard(self, at: float, took: float = 2000, *, most: int = 1, status: int = 0, **more: Any) -> Book:
        """A receive without an answer."""
        args = {"lease_ms": 1000, "max": most, **more.pop("args", {})}
        return self.op(at, "receive", outcome="info", took=took, args=args, status=status, **more)

    def life(self, at: float, verb: str, number: int = 1, **more: Any) -> Book:
        """A step in the history of a name that comes and goes."""
        return self.op(at, verb, queue="r", args={"life": number, **more.pop("args", {})}, **more)

    def settle(
        self,
        at: float,
        verb: str,
        handle: str,
        *,
        status: str = "ok",
        visible_ms: int = 0,
        queue: str = "q",
        **more: Any,
    ) -> Book:
        """A verb on one handle."""
        return self.op(at, verb, handles=[handle], results=[Result(status, visible_ms)], queue=queue, **more)

    def ack(self, at: float, handle: str, **more: Any) -> Book:
        return self.settle(at, "ack", handle, **more)

    def extend(self, at: float, handle: str, **more: Any) -> Book:
        return self.settle(at, "extend", handle, **more)

    def release(self, at: float, handle: str, delay_ms: int, **more: Any) -> Book:
        return self.settle(at, "release", handle, args={"delay_ms": delay_ms}, **more)

    def kill(self, at: float, handle: str) -> Book:
        return self.settle(at, "kill", handle)

    def wipe(self, at: float) -> Book:
        """Redis loses everything."""
        return self.fault(at, "wipe", at + 10, loses=True)

    def fault(self, at: float, name: str, healed: float, *, loses: bool = False, **more: Any) -> Book:
        """A fault; one that loses state loses it when it begins."""
        self._op += 1
        self.lines.append(Line("begin", int(at * MS), op=self._op, verb=name, **more))
        if loses:
            self.lines.append(Line("loss", int(at * MS), op=self._op, args={"began": int(at * MS)}))
        self.lines.append(Line("heal", int(healed * MS), op=self._op, verb=name))
        return self

    def note(self, verb: str, queue: str = "", **args: Any) -> Book:
        self.lines.append(Line("note", self.lines[-1].at, verb=verb, queue=queue, args=args))
        return self

    def log(self, *uids: str, queue: str = "q") -> Book:
        """What a Kafka-native reader saw."""
        return self.note("log", rows=[[queue, 0, offset, uid] for offset, uid in enumerate(uids)])

    def rest(
        self, at: float, ready: int = 0, delayed: int = 0, leased: int = 0, *, queue: str = "q", empty: bool = False
    ) -> Book:
        answer = {"default": {"ready": ready, "delayed": delayed, "leased": leased, "stored": 0}}
        return self.op(at, "info", queue=queue, args={"rest": True, "empty": empty}, answer=answer)

    @property
    def story(self) -> Story:
        return Story(of(self.lines))


# Checker -> name -> history that it finds nothing in; (checker, kind of breach) -> name -> history.
Clean = dict[Callable[[Story], Verdict], dict[str, Book]]
Broken = dict[tuple[Callable[[Story], Verdict], str], dict[str, Book]]
EMPTY = {"default": {"ready": 0, "delayed": 0, "leased": 0, "stored": 0}}
DLQ = {"dead_letters": "dlq", "max_count": 3}


def sent() -> Book:
    """One message sent."""
    return Book().queue().send(1, "a")


def keyed() -> Book:
    """One message sent under a deduplication id."""
    return Book().queue(fifo=True).send(1, "a", dedup="k")


def clean() -> Book:
    """One message sent, leased, acked."""
    return Book().queue().send(100, "a").lease(200, "a").ack(300, "a@205").rest(400)


def leased() -> Book:
    """One message sent and leased."""
    return Book().queue().send(100, "a").lease(200, "a")


def ahead() -> Book:
    """One message that was leased ahead of its receive, so that its lease is 40 ms longer than
    asked for, then given back, and leased again within these.
    """
    book = Book().queue().send(1, "a").receive(10, delivered("a", 55))
    return book.settle(25, "extend", "a@55", visible_ms=30).receive(40, delivered("a", 45, count=2)).ack(60, "a@45")


def two(**plan: Any) -> Book:
    """A queue with a dead-letter queue."""
    return Book().queue(**{**DLQ, **plan}).queue("dlq")


def fifo() -> Book:
    """Three messages of one group, numbered in the order sent."""
    return Book().queue(fifo=True).send(100, "a", "b", "c", group="g")


def numbered(name: str, at: float, number: int, **more: Any) -> Delivered:
    return delivered(name, at, group="g", sequence=number, **more)


def in_turn() -> Book:
    book = fifo()
    for number, name in enumerate("abc"):
        at = 200 + number * 100
        book.receive(at, numbered(name, at + 5, number)).ack(at + 20, f"{name}@{at + 5}")
    return book


def letter(at: float, name: str = "a", from_id: str = "id-a", id: str = "id-L", **more: Any) -> Book:
    """A history in which `name` died and its letter was received and acked."""
    it = delivered(name, at + 5, id=id, handle=f"{id}@{at}", origin=origin(from_id, **more))
    return two().send(100, name).receive(at, it, queue="dlq").ack(at + 20, f"{id}@{at}", queue="dlq")


def redriven() -> Book:
    """Died, its letter redriven, the copy acked; the letter was never seen in the DLQ."""
    book = two().send(100, "a").lease(200, "a", count=3)
    return book.lease(9000, "a", id="id-R", handle="r", origin=origin("id-L", reason="", count=0, first="id-a")).ack(
        9100, "r"
    )


def dying(most: int = 2) -> Book:
    """A message sent to a queue whose dead letters are read by SQS or the native API."""
    return Book().queue("q", dead_letters="dlq", max_count=most).queue("dlq").send(1, "a")


def reborn() -> Book:
    """A queue that was made, used, deleted, and made again."""
    book = Book().life(1, "create", status=201).life(20, "info", args={"born": True}, answer=EMPTY)
    book.send(40, "tk-1-0", queue="r").lease(60, "tk-1-0", queue="r").ack(80, "tk-1-0@65", queue="r")
    book.life(100, "look").life(120, "delete").life(140, "look", status=404).note("missing", "r", life=1, uids=[])
    return book.life(160, "create", 2, status=201)


def busy(*gap: int) -> Book:
    """A queue of which nobody but in a gap of seconds goes without a message for long."""
    book = Book().queue()
    for second in (s for s in range(1, 161) if s not in range(*gap)):
        book.send(second * 1000, f"m{second}").lease(second * 1000 + 50, f"m{second}")
    return book.queue("p").send(160_000, "end", queue="p")


def cut(cuts: bool) -> Book:
    """A message sent, a fault of Redis, and a receive at that time that was told nothing."""
    book = Book().queue().send(1, "a").fault(500, "slow redis", 600, args={"cuts": cuts})
    return book.receive(400, took=1000)


def killed() -> Book:
    """A worker that was alone, killed 2 s after a send of which nobody heard until 50 s."""
    return Book().note("run", workers=1).queue().send(1, "a").fault(2000, "kill worker", 4000)
