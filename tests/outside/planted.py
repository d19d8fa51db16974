"""Books written by hand: one where all is right, and for each check some where it is not. They
prove that a check can fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.outside.book import Entry
from tests.outside.stage import REST


class Plant:
    """A book under construction."""

    def __init__(self) -> None:
        self.rows: list[Entry] = []

    def add(self, op: str, t0: float, t1: float = 0, **more: Any) -> Plant:
        """An entry; it takes a tenth of a second unless told otherwise."""
        self.rows.append({"n": len(self.rows) + 1, "op": op, "t0": t0, "t1": t1 or t0 + 0.1, **more})
        return self

    def lane(self, name: str, **more: Any) -> Plant:
        """A queue."""
        return self.add("lane", 0, name=name, **more)

    def send(self, queue: str, token: str, t0: float, result: str = "done", by: str = "native", **more: Any) -> Plant:
        """One letter."""
        return self.add(
            "send",
            t0,
            place=queue,
            by=by,
            outcome=result,
            code=more.pop("code", ""),
            items=[{"token": token, "result": result, **more}],
        )

    def got(
        self,
        place: str,
        *tokens: str,
        t0: float,
        count: int = 1,
        lease: float = 5,
        id: str = "",
        by: str = "native",
        **more: Any,
    ) -> Plant:
        """A receive with these tokens; the handle is `token@t0`."""
        rows = [
            {"token": token, "id": id or f"id-{token}", "handle": f"{token}@{t0}", "count": count, **more}
            for token in tokens
        ]
        return self.add("receive", t0, place=place, by=by, outcome="done", max=10, wait=0, lease=lease, got=rows)

    def on(
        self,
        op: str,
        place: str,
        token: str,
        of: float,
        t0: float,
        result: str = "done",
        id: str = "",
        by: str = "native",
        **more: Any,
    ) -> Plant:
        """An act on the delivery that was received at `of`."""
        item = {"token": token, "id": id or f"id-{token}", "handle": f"{token}@{of}", "result": result}
        return self.add(op, t0, place=place, by=by, outcome="done", items=[item], **more)

    def all(self, queue: str, token: str, t0: float, **more: Any) -> Plant:
        """Sent, received a second later, acked another later."""
        return (
            self.send(queue, token, t0, **more).got(queue, token, t0=t0 + 1).on("settle", queue, token, t0 + 1, t0 + 2)
        )

    def fault(self, name: str, begin: float, end: float) -> Plant:
        """From begin to end."""
        return self.add("fault", begin, name=name, phase="strike").add("fault", end, name=name, phase="heal")

    def counts(self, place: str, t0: float, ready: int = 0, leased: int = 0, delayed: int = 0, **more: Any) -> Plant:
        """What the service says."""
        return self.add(
            "counts",
            t0,
            place=place,
            outcome="done",
            counts={"ready": ready, "leased": leased, "delayed": delayed},
            **more,
        )

    def log(self, *rows: tuple[str, str]) -> Plant:
        """What a Kafka-native reader saw."""
        return self.add("log", 90, rows=[[queue, 0, offset, token] for offset, (queue, token) in enumerate(rows)])

    def life(self, op: str, t0: float, outcome: str = "done", number: int = 1, **more: Any) -> Plant:
        """A step in the history of a name."""
        return self.add(op, t0, place="reborn-0", outcome=outcome, life=number, by="native", **more)


def clean() -> Plant:
    """A bit of everything, as it should be; no queue that a planted breach uses."""
    plant = Plant().add("run", 0, seed=1, load=0, load_average=1.0)
    for name in ("q", "p"):
        plant.lane(name)
    plant.lane("f", fifo=True).lane("firm", durable=True).lane("w", purged=True).lane("rest", still=True)
    plant.lane("d-dead", is_dead_of="d").lane("d", dead="d-dead", dies_after=2)
    plant.all("q", "a", 1).all("q", "b", 1.5, delay=1.0).send("q", "no", 1.6, "refused", code="RequestThrottled")
    plant.send("f", "f-g-1", 1, group="g", dedup="f-g-1").send("f", "f-g-2", 2, group="g", dedup="f-g-2")
    plant.send("f", "f-g-1~3", 3, group="g", dedup="f-g-1")
    plant.got("f", "f-g-1", "f-g-2", t0=4).on("settle", "f", "f-g-1", 4, 5).on("settle", "f", "f-g-2", 4, 5)
    plant.send("d", "x", 1).got("d", "x", t0=2, lease=1).got("d", "x", t0=4, lease=1, count=2)
    plant.got("d-dead", "x", t0=6, id="letter-x", died_after=2).on("settle", "d-dead", "x", 6, 7, id="letter-x")
    plant.send("w", "old", 1).add("purge", 2, place="w", outcome="done").all("w", "new", 3)
    plant.life("create", 1, made=201).life("counts", 2, counts={"ready": 0}, born=True).send(
        "reborn-0", "tk-reborn-0-1-0", 3
    )
    plant.life("look", 4, status=200).life(
        "receive", 5, got=[{"token": "tk-reborn-0-1-0", "id": "r", "handle": "h", "count": 1}], max=1, wait=0, lease=5
    )
    plant.life("missing", 6, tokens=[]).life("delete", 7).life("look", 8, status=404).life(
        "create", 9, made=201, number=2
    )
    plant.log(
        ("q", "a"),
        ("q", "b"),
        ("f", "f-g-1"),
        ("f", "f-g-2"),
        ("f", "f-g-1~3"),
        ("d", "x"),
        *(("p", f"p{n}") for n in range(60)),
    )
    plant.fault("kill kafka", 20, 25).add("probe", 21, 24, outcome="unknown").add("probe", 24, 25, outcome="done")
    plant.add("redrive", 30, place="d-dead", outcome="done", task="t").add(
        "task", 31, place="d-dead", task="t", status="completed", outcome="done"
    )
    for n in range(60):
        plant.all("p", f"p{n}", 10 + n / 2)
    plant.add("wrong", 9, place="q", status=400)
    for place in ("q", "p", "f", "firm", "w", "d", "d-dead"):
        plant.counts(place, 60, rest=True).counts(place, 80, drained=True)
    return plant.counts("rest", 61, **REST, rest=True)


def _late(name: str, times: range = range(120)) -> Plant:
    plant = clean().lane(name)
    for n in times:
        plant.all(name, f"{name}{n}", 10 + n / 2 if n < 20 else 50 + n / 2)
    return plant


# The check that must say it, and the book that it must say it of.
BROKEN: list[tuple[str, str, Callable[[], Plant]]] = [
    ("lost", "never received", lambda: clean().send("q", "z", 10)),
    (
        "lost",
        "received, and its ack was stale",
        lambda: clean().send("q", "z", 10).got("q", "z", t0=11).on("settle", "q", "z", 11, 12, "stale"),
    ),
    ("lost", "sent after the purge", lambda: clean().send("w", "z", 10)),
    (
        "lost",
        "one tag has it, the other has not",
        lambda: clean().lane("t", tags=("", "b")).all("t", "z", 10, kind="red"),
    ),
    ("phantoms", "nobody sent it", lambda: clean().got("q", "z", t0=10)),
    ("phantoms", "refused and delivered", lambda: clean().send("q", "z", 10, "refused").got("q", "z", t0=11)),
    ("phantoms", "torn body", lambda: clean().send("q", "z", 10).got("q", "z", t0=11, whole=False)),
    ("phantoms", "another queue's", lambda: clean().send("q", "z", 10).got("p", "z", t0=11)),
    (
        "phantoms",
        "not for the tag",
        lambda: clean().lane("t", tags=("", "b")).send("t", "z", 10).got("t@b", "z", t0=11),
    ),
    ("doubled", "one send, two messages", lambda: clean().all("q", "z", 10).got("q", "z", t0=15, id="other")),
    ("doubled", "a repeat came", lambda: clean().got("f", "f-g-1~3", t0=20)),
    ("doubled", "two letters", lambda: clean().got("d-dead", "x", t0=20, id="again", died_after=2)),
    ("log", "answered, and not in the topic", lambda: clean().all("q", "z", 10)),
    ("log", "stored twice", lambda: clean().log(("q", "none"), ("q", "none"), ("q", "a"))),
    ("purges", "what was purged came", lambda: clean().got("w", "old", t0=5)),
    ("delays", "half a second early", lambda: clean().send("q", "z", 10, delay=3.0).got("q", "z", t0=12.4)),
    ("leases", "two holders", lambda: clean().send("q", "z", 10).got("q", "z", t0=11).got("q", "z", t0=13, count=2)),
    (
        "leases",
        "extended, and leased meanwhile",
        lambda: (
            clean()
            .send("q", "z", 10)
            .got("q", "z", t0=11)
            .on("extend", "q", "z", 11, 14, lease=9)
            .got("q", "z", t0=18, count=2)
        ),
    ),
    ("settled", "came after its ack", lambda: clean().all("q", "z", 10).got("q", "z", t0=30, count=2)),
    (
        "settled",
        "an ack of 3 s before the loss",
        lambda: clean().all("q", "z", 10).add("loss", 15).got("q", "z", t0=30, count=2),
    ),
    (
        "settled",
        "a durable ack just before the loss",
        lambda: clean().all("firm", "z", 10).add("loss", 12.2).got("firm", "z", t0=30, count=2),
    ),
    (
        "settled",
        "an ack just before a kill of Redis, which forgets nothing, on a loaded machine",
        lambda: (
            clean().add("run", 0, load=15).all("q", "z", 10).fault("kill redis", 12.6, 20).got("q", "z", t0=30, count=2)
        ),
    ),
    (
        "settled",
        "a pause that was over nine seconds before",
        lambda: clean().fault("pause worker", 11, 30).all("q", "z", 12).add("loss", 39.5).got("q", "z", t0=45, count=2),
    ),
    (
        "settled",
        "an ack two seconds before a worker stood still",
        lambda: clean().all("q", "z", 10).fault("pause worker", 14.1, 30).add("loss", 20).got("q", "z", t0=45, count=2),
    ),
    (
        "receive counts",
        "the same count twice",
        lambda: clean().send("q", "z", 10).got("q", "z", t0=11).got("q", "z", t0=17),
    ),
    (
        "receive counts",
        "fewer than seen",
        lambda: (
            clean()
            .send("q", "z", 10)
            .got("q", "z", t0=11, count=1)
            .got("q", "z", t0=17, count=1)
            .got("q", "z", t0=27, count=2)
        ),
    ),
    (
        "uncarried",
        "a client that left the source's receive, long before its worker was killed",
        lambda: (
            clean()
            .lane("k-dead", is_dead_of="k")
            .lane("k", dead="k-dead", dies_after=1)
            .fault("kill worker", 13, 14)
            .send("k", "z", 10)
            .add("receive", 10.5, place="k", by="native", outcome="gone", max=1, wait=1, lease=2, got=[])
            .got("k-dead", "z", t0=15, count=2, by="sqs", id="letter-z", died_after=1)
        ),
    ),
    ("uncarried", "a count that nobody saw", lambda: clean().send("q", "z", 10).got("q", "z", t0=11, count=2)),
    (
        "uncarried",
        "two counts that nobody saw, and one kill of a worker that had leased ahead",
        lambda: clean().fault("kill worker", 12, 14).send("q", "z", 10).got("q", "z", t0=50, count=3),
    ),
    (
        "uncarried",
        "a count that nobody saw, and a kill of a worker that was not alone: it leases nothing ahead",
        lambda: (
            clean()
            .add("run", 0, workers=2)
            .fault("kill worker", 12, 14)
            .send("q", "z", 10)
            .got("q", "z", t0=50, count=2)
        ),
    ),
    (
        "order",
        "ahead of the one before",
        lambda: clean().send("f", "f-g-8", 8, group="g").send("f", "f-g-9", 9, group="g").got("f", "f-g-9", t0=10),
    ),
    (
        "order",
        "the one before is in flight elsewhere",
        lambda: (
            clean()
            .send("f", "f-g-8", 8, group="g")
            .send("f", "f-g-9", 9, group="g")
            .got("f", "f-g-8", t0=10)
            .got("f", "f-g-9", t0=11)
        ),
    ),
    ("undelivered", "never leased", lambda: clean().send("d", "z", 10).got("d-dead", "z", t0=12, died_after=2)),
    (
        "undelivered",
        "leased once of twice",
        lambda: clean().send("d", "z", 10).got("d", "z", t0=11, lease=1).got("d-dead", "z", t0=14),
    ),
    (
        "undelivered",
        "503 is no delivery",
        lambda: (
            clean()
            .send("d", "z", 10)
            .add("receive", 11, place="d", outcome="unknown", status=503, max=9, wait=0, lease=1, got=[])
            .got("d-dead", "z", t0=14)
        ),
    ),
    (
        "undelivered",
        "more than one poll of one can have carried",
        lambda: (
            clean()
            .add("receive", 11, 13, place="d", outcome="unknown", status=0, max=1, wait=0, lease=1, got=[])
            .send("d", "z", 10)
            .got("d", "z", t0=10.2, lease=0.3)
            .got("d-dead", "z", t0=14)
            .send("d", "y", 10)
            .got("d", "y", t0=10.2, lease=0.3)
            .got("d-dead", "y", t0=14)
        ),
    ),
    ("overdelivered", "three of two", lambda: clean().got("d", "x", t0=20, count=3)),
    ("once", "acked, and its letter too", lambda: clean().on("settle", "d", "x", 4, 5)),
    (
        "late letters",
        "a minute and a half",
        lambda: (
            Plant()
            .add("run", 0, load=0)
            .lane("e-dead", is_dead_of="e")
            .lane("e", dead="e-dead", dies_after=1)
            .send("e", "z", 10)
            .got("e", "z", t0=11, lease=1)
            .got("e-dead", "z", t0=110)
        ),
    ),
    ("lives", "a new queue that is not there", lambda: clean().life("look", 10, status=404, number=2)),
    (
        "lives",
        "a send that finds no queue",
        lambda: clean().life("send", 10, "refused", status=404, items=[], number=2),
    ),
    (
        "lives",
        "a deletion that happens twice",
        lambda: (
            clean().life("delete", 10, "unknown").life("create", 50, made=201, number=3).life("look", 60, status=404)
        ),
    ),
    ("lives", "deleted, and there", lambda: clean().life("delete", 10).life("look", 11, status=200)),
    (
        "lives",
        "born with more than sends without an answer can have left",
        lambda: (
            clean()
            .send("reborn-0", "tk-reborn-0-2-9", 9.5, "unknown")
            .life("counts", 50, counts={"ready": 2}, born=True)
        ),
    ),
    ("lives", "born with messages", lambda: clean().life("counts", 10, counts={"ready": 3}, born=True)),
    (
        "lives",
        "a message of the life before",
        lambda: clean().life(
            "receive",
            10,
            got=[{"token": "tk-reborn-0-1-5", "id": "r", "handle": "h", "count": 1}],
            max=1,
            wait=0,
            lease=5,
        ),
    ),
    ("lives", "answered, and not there", lambda: clean().life("missing", 10, tokens=["tk-reborn-0-2-1"])),
    ("counts", "one too many", lambda: clean().lane("c").all("c", "z", 10).counts("c", 60, ready=1, rest=True)),
    ("counts", "one too few", lambda: clean().lane("c").send("c", "z", 10).counts("c", 60, rest=True)),
    ("counts", "left after the drain", lambda: clean().counts("q", 85, leased=1, drained=True)),
    (
        "counts",
        "what nobody touched has changed",
        lambda: clean().counts("rest", 62, ready=30, leased=19, delayed=15, rest=True),
    ),
    ("answers", "500", lambda: clean().send("q", "z", 10, "broken", status=500)),
    ("answers", "a right send is refused", lambda: clean().send("q", "z", 10, "refused", status=400)),
    ("answers", "a wrong ack is done", lambda: clean().add("wrong", 10, place="q", status=200)),
    ("tasks", "never ended", lambda: clean().add("redrive", 40, place="d-dead", outcome="done", task="t2")),
    (
        "works",
        "a queue that stands still after a fault",
        lambda: _late("slow").fault("pause kafka", 20, 21).add("probe", 200, outcome="done"),
    ),
    ("recovery", "half a minute", lambda: clean().fault("kill kafka", 100, 105).add("probe", 128, 130, outcome="done")),
    (
        "recovery",
        "half a minute after the pause that lay over the kill",
        lambda: (
            clean().fault("pause worker", 100, 120).fault("kill kafka", 101, 150).add("probe", 148, 150, outcome="done")
        ),
    ),
    ("recovery", "never", lambda: clean().fault("flush redis", 100, 105)),
]

# What the documents let bend: no breach of that check, and counted as excused.
BENT: list[tuple[str, str, Callable[[], Plant]]] = [
    (
        "lives",
        "born with what a send without an answer left",
        lambda: (
            clean()
            .send("reborn-0", "tk-reborn-0-2-9", 9.5, "unknown")
            .life("counts", 50, counts={"ready": 1}, born=True)
        ),
    ),
    (
        "settled",
        "an ack of three seconds before the loss on a loaded machine",
        lambda: (
            clean()
            .add("probe", 9, 9.1, outcome="done", load_average=12.0)
            .all("q", "z", 10)
            .add("loss", 15)
            .got("q", "z", t0=30, count=2)
        ),
    ),
    (
        "settled",
        "an ack of half a second before the loss",
        lambda: clean().all("q", "z", 10).add("loss", 12.6).got("q", "z", t0=30, count=2),
    ),
    (
        "settled",
        "an ack while a worker stood still until just before the loss",
        lambda: clean().fault("pause worker", 11, 30).all("q", "z", 12).add("loss", 35).got("q", "z", t0=45, count=2),
    ),
    (
        "settled",
        "an ack half a second before a worker stood still, through the loss",
        lambda: clean().all("q", "z", 10).fault("pause worker", 12.6, 30).add("loss", 20).got("q", "z", t0=45, count=2),
    ),
    (
        "uncarried",
        "two counts that nobody saw: what the first receive without an answer explains too must be left to the second",
        lambda: (
            clean()
            .send("q", "y", 10)
            .send("q", "z", 10)
            .add("receive", 11, place="q", by="native", outcome="unknown", max=1, wait=0, lease=2, got=[], status=0)
            .add("receive", 14, place="q", by="native", outcome="unknown", max=1, wait=0, lease=2, got=[], status=0)
            .got("q", "y", t0=16, count=2)
            .got("q", "z", t0=13.5, count=2)
        ),
    ),
    (
        "uncarried",
        "a worker that was alone was killed, with what it had leased ahead",
        lambda: clean().fault("kill worker", 12, 14).send("q", "z", 10).got("q", "z", t0=50, count=2),
    ),
    (
        "uncarried",
        "a client that left the source's receive as its worker was killed, who could give nothing back",
        lambda: (
            clean()
            .lane("k-dead", is_dead_of="k")
            .lane("k", dead="k-dead", dies_after=1)
            .fault("kill worker", 10.6, 14)
            .send("k", "z", 10)
            .add("receive", 10.5, place="k", by="native", outcome="gone", max=1, wait=1, lease=2, got=[])
            .got("k-dead", "z", t0=15, count=2, by="sqs", id="letter-z", died_after=1)
        ),
    ),
    (
        "leases",
        "leased just before the loss",
        lambda: clean().send("q", "z", 10).got("q", "z", t0=11).add("loss", 11.5).got("q", "z", t0=13),
    ),
    (
        "receive counts",
        "counted just before the loss",
        lambda: clean().send("q", "z", 10).got("q", "z", t0=11).add("loss", 11.5).got("q", "z", t0=13),
    ),
    ("purges", "purged just before the loss", lambda: clean().add("loss", 2.5).got("w", "old", t0=5)),
    (
        "undelivered",
        "a poll that was cut may have carried it",
        lambda: (
            clean()
            .send("d", "z", 10)
            .add("receive", 11, 13, place="d", outcome="unknown", status=0, max=1, wait=0, lease=1, got=[])
            .got("d", "z", t0=10.2, lease=0.3)
            .got("d-dead", "z", t0=14)
        ),
    ),
]
