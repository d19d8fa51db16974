"""Histories that keep the promises: name -> (checker, history)."""

from __future__ import annotations

from collections.abc import Callable

from tests.judge import check_leases, check_letters, check_messages, check_order, check_rest
from tests.judge.book import Book, ahead, clean, fifo, in_turn, leased, letter, numbered, redriven, two
from tests.judge.history import UNTOLD
from tests.judge.story import Story
from tests.judge.verdict import Verdict

Checker = Callable[[Story], Verdict]

CLEAN: dict[str, tuple[Checker, Book]] = {
    "lost": (check_messages.lost, clean()),
    "lost: an unknown send may be missing": (check_messages.lost, clean().send(500, "x", outcome="info")),
    "lost: an unknown ack may have settled": (
        check_messages.lost,
        Book().queue().send(1, "a").lease(20, "a").ack(40, "a@25", outcome="info"),
    ),
    "lost: a blind ack after the lease may have settled": (
        check_messages.lost,
        Book().queue().send(1, "a").lease(20, "a").ack(6000, "a@25", args={"blind": True}),
    ),
    "lost: a letter is there": (check_messages.lost, letter(500)),
    "lost: purged": (check_messages.lost, Book().queue().send(1, "a").op(100, "purge")),
    "lost: a tag that does not want it": (
        check_messages.lost,
        Book().queue(tags={"red": "red"}).send(1, "a", kind="blue"),
    ),
    "lost: redriven, its letter never seen": (check_messages.lost, redriven()),
    "lost: a queue that keeps": (
        check_messages.lost,
        Book()
        .queue(kept=True)
        .queue("p")
        .send(1, "a")
        .send(5, "b", queue="p")
        .lease(10, "b", queue="p")
        .ack(30, "b@15", queue="p"),
    ),
    "phantoms": (check_messages.phantoms, letter(500)),
    "phantoms: a refused send is not shown": (check_messages.phantoms, clean().send(500, "x", outcome="fail")),
    "phantoms: redriven": (check_messages.phantoms, redriven()),
    "batches": (check_messages.batches, clean().send(300, "b", "c").lease(500, "b").lease(600, "c")),
    "batches: unknown and not shown": (check_messages.batches, clean().send(300, "b", "c", outcome="info")),
    "batches: unknown and shown": (
        check_messages.batches,
        clean().send(300, "b", "c", outcome="info", ids=[]).lease(500, "b").lease(600, "c"),
    ),
    "purges": (check_messages.purges, clean().op(500, "purge").send(600, "z").lease(700, "z")),
    "purges: sent meanwhile": (check_messages.purges, clean().send(495, "z").op(500, "purge").lease(700, "z")),
    "dedup": (
        check_messages.dedup,
        Book().queue(fifo=True).send(1, "a", dedup="k").send(50, "b", dedup="k", ids=["id-a"]).lease(99, "a"),
    ),
    "dedup: answered anew while hurt": (
        check_messages.dedup,
        Book()
        .queue(fifo=True)
        .send(1, "a", dedup="k")
        .fault(40, "kill redis", 60)
        .send(50, "b", dedup="k")
        .lease(99, "a"),
    ),
    "dedup: answered anew before the queue was back": (
        check_messages.dedup,
        Book()
        .queue(fifo=True)
        .send(1, "a", dedup="k")
        .fault(40, "kill redis", 60)
        .send(20_000, "b", dedup="k")
        .lease(21_000, "a"),
    ),
    "lost: a repeat answered anew while hurt": (
        check_messages.lost,
        Book()
        .queue(fifo=True)
        .send(1, "a", dedup="k")
        .fault(40, "kill redis", 60)
        .send(50, "b", dedup="k")
        .lease(99, "a")
        .ack(120, "a@104"),
    ),
    "exclusive: a stale handle is good again after a loss": (
        check_leases.exclusive,
        clean()
        .lease(5200, "a", count=2)
        .fault(5300, "wipe", 5301, loses=True)
        .settle(5400, "extend", "a@15", visible_ms=9900),
    ),
    "dedup: after five minutes": (
        check_messages.dedup,
        Book()
        .queue(fifo=True)
        .send(1, "a", dedup="k")
        .send(300_001, "b", dedup="k")
        .lease(99, "a")
        .lease(300_100, "b"),
    ),
    "dedup: in each group": (
        check_messages.dedup,
        Book()
        .queue(fifo=True, dedup_scope="group")
        .send(1, "a", dedup="k", group="g")
        .send(9, "b", dedup="k", group="h")
        .lease(99, "a")
        .lease(99, "b"),
    ),
    "exclusive: after the lease": (check_leases.exclusive, clean().lease(5200, "a", count=2)),
    "exclusive: after a release": (
        check_leases.exclusive,
        Book()
        .queue()
        .send(1, "a")
        .lease(10, "a")
        .settle(20, "release", "a@15", visible_ms=25, args={"delay_ms": 0})
        .lease(30, "a"),
    ),
    "exclusive: after an extension to now": (
        check_leases.exclusive,
        Book().queue().send(1, "a").lease(10, "a").settle(20, "extend", "a@15", visible_ms=25).lease(30, "a"),
    ),
    "exclusive: leased ahead, and given back at once": (check_leases.exclusive, ahead()),
    "stale: leased ahead, and given back at once": (check_leases.stale, ahead()),
    "counts: leased ahead, and given back at once": (check_leases.counts, ahead()),
    "exclusive: two tags": (check_leases.exclusive, clean().lease(210, "a", tag="other")),
    "exclusive: leased just before a loss": (
        check_leases.exclusive,
        leased().fault(900, "wipe", 910, loses=True).lease(1000, "a"),
    ),
    "acked": (check_leases.acked_stays, clean()),
    "acked: just before a loss": (
        check_leases.acked_stays,
        clean().fault(900, "wipe", 910, loses=True).lease(9000, "a", count=2),
    ),
    "acked: journal held up before a loss": (
        check_leases.acked_stays,
        clean().fault(250, "stop kafka", 2000).fault(9000, "wipe", 9010, loses=True).lease(12_000, "a", count=2),
    ),
    "stale": (
        check_leases.stale,
        clean().lease(5300, "a", count=2).ack(5400, "a@205", status="stale").ack(5500, "a@5305"),
    ),
    "acked: blindly, after its lease": (
        check_leases.acked_stays,
        leased().ack(5300, "a@205", args={"blind": True}).lease(5400, "a", count=2).ack(5500, "a@5405"),
    ),
    "acked: blindly, around a loss": (
        check_leases.acked_stays,
        leased()
        .fault(250, "wipe", 260, loses=True)
        .ack(300, "a@205", args={"blind": True})
        .lease(400, "a", count=1)
        .ack(500, "a@405"),
    ),
    "stale: a blind ack": (
        check_leases.stale,
        clean().lease(5300, "a", count=2).ack(5400, "a@205", args={"blind": True}),
    ),
    "stale: redis forgot the newer one": (
        check_leases.stale,
        Book()
        .queue()
        .send(1, "a")
        .lease(10, "a", lease_ms=50)
        .lease(100, "a", count=2)
        .fault(200, "wipe", 201, loses=True)
        .ack(900, "a@15"),
    ),
    "counts": (check_leases.counts, clean().lease(5300, "a", count=2).lease(11_000, "a", count=5)),
    "counts: not told": (check_leases.counts, clean().lease(6000, "a", count=UNTOLD).lease(12_000, "a", count=3)),
    "counts: undrained": (check_leases.counts, clean().fault(900, "wipe", 910, loses=True).lease(6000, "a", count=1)),
    "early": (check_leases.never_early, Book().queue().send(1, "a", delay_ms=500).lease(1000, "a", sent_ms=505)),
    "early: released": (
        check_leases.never_early,
        Book()
        .queue()
        .send(1, "a")
        .lease(10, "a")
        .settle(20, "release", "a@15", visible_ms=525, args={"delay_ms": 500})
        .lease(520, "a"),
    ),
    "fifo": (check_order.fifo, in_turn()),
    "fifo: together": (check_order.fifo, fifo().receive(200, *(numbered(n, 205, i) for i, n in enumerate("abc")))),
    "fifo: redelivery ahead of what is leased": (
        check_order.fifo,
        fifo()
        .receive(200, numbered("a", 205, 0), numbered("b", 205, 1))
        .settle(300, "release", "a@205", args={"delay_ms": 0})
        .receive(400, numbered("a", 405, 0, count=2)),
    ),
    "fifo: other groups are free": (
        check_order.fifo,
        in_turn().send(50, "x", group="h").lease(206, "x", group="h", sequence=9),
    ),
    "letters": (check_letters.letters, letter(500)),
    "letters: acked as itself": (check_letters.letters, two().send(1, "a").lease(20, "a").ack(40, "a@25")),
    "letters: redriven": (check_letters.letters, redriven()),
    "letters: killed": (
        check_letters.letters,
        letter(500, reason="killed", count=1).lease(200, "a").settle(300, "kill", "a@205"),
    ),
    "letters: ack forgotten by a loss": (
        check_letters.letters,
        letter(9000).lease(200, "a").ack(300, "a@205").fault(900, "wipe", 910, loses=True),
    ),
    "letters: kill forgotten by a loss": (
        check_letters.letters,
        letter(9000, reason="killed", count=1)
        .lease(200, "a")
        .settle(300, "kill", "a@205")
        .fault(900, "wipe", 910, loses=True)
        .lease(7000, "a", count=1)
        .ack(7100, "a@7005"),
    ),
    "counters": (check_rest.counters, clean()),
    "counters: held, delayed, waiting": (
        check_rest.counters,
        Book()
        .queue()
        .send(1, "a", "b")
        .send(20, "c", delay_ms=90_000)
        .lease(40, "a")
        .rest(100, ready=1, delayed=1, leased=1),
    ),
    "counters: unknown outcomes widen": (
        check_rest.counters,
        clean().send(350, "x", outcome="info").rest(400, ready=1),
    ),
    "answers: purged by another too": (
        check_rest.answers,
        clean().op(500, "purge", outcome="fail", status=409, answer={"code": "queue_in_use"}),
    ),
    "redrives": (check_rest.redrives, clean().note("redrive", ended=3, stuck=[])),
    "answers": (check_rest.answers, clean().op(500, "ack", outcome="info", status=503)),
}
