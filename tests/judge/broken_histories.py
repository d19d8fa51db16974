"""Histories with a planted breach: name -> (checker, history, kind of breach that it must find)."""

from __future__ import annotations

from collections.abc import Callable

from tests.judge import check_leases, check_letters, check_messages, check_order, check_rest
from tests.judge.book import Book, clean, delivered, fifo, leased, letter, numbered, origin, redriven, two
from tests.judge.history import UNTOLD, Sent
from tests.judge.story import Story
from tests.judge.verdict import Verdict

Checker = Callable[[Story], Verdict]

BROKEN: dict[str, tuple[Checker, Book, str]] = {
    "never delivered": (check_messages.lost, clean().send(500, "x"), "lost"),
    "delivered under one tag only": (
        check_messages.lost,
        Book().queue(tags={"default": "", "t": ""}).send(1, "a").lease(20, "a"),
        "lost",
    ),
    "sent after the purge": (check_messages.lost, Book().queue().op(1, "purge").send(100, "a"), "lost"),
    "settled by nobody": (check_messages.lost, Book().queue().send(1, "a").lease(20, "a"), "vanished"),
    "stale ack settled it": (
        check_messages.lost,
        Book().queue().send(1, "a").lease(20, "a").ack(40, "a@25", status="stale"),
        "vanished",
    ),
    "nobody sent it": (check_messages.phantoms, clean().lease(500, "ghost"), "phantom"),
    "of another queue": (check_messages.phantoms, clean().queue("p").lease(500, "a", queue="p"), "phantom"),
    "other body": (check_messages.phantoms, clean().lease(6000, "a", body="body-b"), "altered"),
    "other attributes": (check_messages.phantoms, clean().lease(6000, "a", attributes="x"), "altered"),
    "against the filter": (
        check_messages.phantoms,
        Book().queue(tags={"red": "red"}).send(1, "a", kind="blue").lease(20, "a", tag="red"),
        "not wanted",
    ),
    "a refused send shown": (
        check_messages.phantoms,
        clean().send(500, "x", outcome="fail").lease(600, "x"),
        "refused",
    ),
    "a retry inside made two": (check_messages.phantoms, clean().lease(600, "a", id="id-2", handle="h2"), "doubled"),
    "a letter without origin": (check_messages.phantoms, two().send(1, "a").lease(20, "a", queue="dlq"), "no origin"),
    "half of an unknown batch": (
        check_messages.batches,
        clean().send(300, "b", "c", outcome="info", ids=[]).lease(500, "b"),
        "torn",
    ),
    "half of an answered batch": (check_messages.batches, clean().send(300, "b", "c").lease(500, "c"), "torn"),
    "purged came back": (check_messages.purges, clean().op(500, "purge").lease(6000, "a", count=2), "came back"),
    "purged came back, loss long after": (
        check_messages.purges,
        clean().op(500, "purge").fault(9000, "wipe", 9001, loses=True).lease(9500, "a", count=2),
        "came back",
    ),
    "two ids for one": (
        check_messages.dedup,
        Book().queue(fifo=True).send(1, "a", dedup="k").send(50, "b", dedup="k"),
        "two ids",
    ),
    "two ids long after a fault": (
        check_messages.dedup,
        Book()
        .queue(fifo=True)
        .send(1, "a", dedup="k")
        .fault(40, "kill redis", 60)
        .lease(100, "a")
        .send(20_000, "b", dedup="k")
        .lease(21_000, "a"),
        "two ids",
    ),
    "two ids by content": (
        check_messages.dedup,
        Book()
        .queue(fifo=True, content_dedup=True)
        .op(1, "send", sends=[Sent("a", "same", "")], ids=["1"])
        .op(50, "send", sends=[Sent("b", "same", "")], ids=["2"]),
        "two ids",
    ),
    "repeat delivered too": (
        check_messages.dedup,
        Book()
        .queue(fifo=True)
        .send(1, "a", dedup="k")
        .send(50, "b", dedup="k", outcome="info")
        .lease(99, "a")
        .lease(99, "b"),
        "delivered twice",
    ),
    "two holders": (check_leases.exclusive, clean().lease(210, "a", handle="other", count=2), "overlap"),
    "leased again before its extension ends": (
        check_leases.exclusive,
        Book()
        .queue()
        .send(1, "a")
        .lease(10, "a")
        .settle(20, "extend", "a@15", visible_ms=9000)
        .lease(6000, "a", count=2),
        "overlap",
    ),
    "a long lease behind a short one": (
        check_leases.exclusive,
        Book().queue().lease(10, "a", lease_ms=9000).lease(20, "a", lease_ms=5).lease(40, "a", count=2),
        "overlap",
    ),
    "leased long before a loss": (
        check_leases.exclusive,
        leased().fault(2000, "wipe", 2010, loses=True).lease(2100, "a"),
        "overlap",
    ),
    "a loss after both": (
        check_leases.exclusive,
        clean().lease(250, "a", count=2).fault(900, "wipe", 910, loses=True),
        "overlap",
    ),
    "one delivery told twice": (
        check_leases.exclusive,
        clean().lease(6000, "a", handle="a@205", count=2),
        "told twice",
    ),
    "acked and again": (check_leases.acked_stays, clean().lease(6000, "a", count=2), "ack forgotten"),
    "acked blindly while its lease lasted, and again": (
        check_leases.acked_stays,
        leased().ack(300, "a@205", args={"blind": True}).lease(6000, "a", count=2),
        "ack forgotten",
    ),
    "acked blindly, and a count that is not told": (
        check_leases.acked_stays,
        leased().ack(300, "a@205", args={"blind": True}).lease(6000, "a", count=UNTOLD),
        "ack forgotten",
    ),
    "a count told after some that are not": (
        check_leases.counts,
        clean().lease(6000, "a", count=UNTOLD).lease(12_000, "a", count=1),
        "fell",
    ),
    "acked long before a loss": (
        check_leases.acked_stays,
        clean().fault(2000, "wipe", 2010, loses=True).lease(6000, "a", count=2),
        "ack forgotten",
    ),
    "acked after a loss": (
        check_leases.acked_stays,
        Book()
        .queue()
        .send(1, "a")
        .fault(90, "wipe", 91, loses=True)
        .lease(200, "a")
        .ack(300, "a@205")
        .lease(6000, "a", count=2),
        "ack forgotten",
    ),
    "acked durably just before a loss": (
        check_leases.acked_stays,
        Book()
        .queue(durable=True)
        .send(1, "a")
        .lease(200, "a")
        .ack(300, "a@205")
        .fault(400, "wipe", 401, loses=True)
        .lease(6000, "a", count=2),
        "ack forgotten",
    ),
    "held up, but healed long before": (
        check_leases.acked_stays,
        clean().fault(250, "stop kafka", 500).fault(19_000, "wipe", 19_010, loses=True).lease(22_000, "a", count=2),
        "ack forgotten",
    ),
    "a stale ack obeyed": (
        check_leases.stale,
        clean().lease(5300, "a", count=2).ack(5400, "a@205"),
        "stale handle obeyed",
    ),
    "a stale release obeyed": (
        check_leases.stale,
        clean().lease(5300, "a", count=2).settle(5400, "release", "a@205", args={"delay_ms": 0}),
        "stale handle obeyed",
    ),
    "acked twice by one handle": (check_leases.stale, clean().ack(350, "a@205"), "settled twice"),
    "killed after the ack": (check_leases.stale, clean().settle(350, "kill", "a@205"), "settled twice"),
    "count stays": (check_leases.counts, clean().lease(6000, "a", count=1), "fell"),
    "count falls": (check_leases.counts, clean().lease(6000, "a", count=4).lease(12_000, "a", count=3), "fell"),
    "count falls by more than what a loss explains": (
        check_leases.counts,
        clean().lease(6000, "a", count=2).fault(12_000, "wipe", 12_001, loses=True).lease(13_000, "a", count=1),
        "fell",
    ),
    "count zero": (check_leases.counts, clean().lease(6000, "a", count=0), "no count"),
    "before the delay": (
        check_leases.never_early,
        Book().queue().send(1, "a", delay_ms=500).lease(999, "a", sent_ms=505),
        "early",
    ),
    "before the release's delay": (
        check_leases.never_early,
        Book()
        .queue()
        .send(1, "a")
        .lease(10, "a")
        .settle(20, "release", "a@15", visible_ms=525, args={"delay_ms": 500})
        .lease(519, "a"),
        "early",
    ),
    "fifo: overtaken": (
        check_order.fifo,
        fifo().receive(200, numbered("b", 205, 1)).receive(300, numbered("a", 305, 0)),
        "out of order",
    ),
    "fifo: next while in flight": (
        check_order.fifo,
        fifo().receive(200, numbered("a", 205, 0)).receive(300, numbered("b", 305, 1)),
        "out of order",
    ),
    "fifo: next after a lapse": (
        check_order.fifo,
        fifo().receive(200, numbered("a", 205, 0)).receive(9000, numbered("b", 9005, 1)),
        "out of order",
    ),
    "fifo: answer in wrong order": (
        check_order.fifo,
        fifo().receive(200, numbered("b", 205, 1), numbered("a", 205, 0)),
        "out of order",
    ),
    "fifo: redelivered in wrong order": (
        check_order.fifo,
        fifo()
        .receive(200, numbered("a", 205, 0), numbered("b", 205, 1))
        .receive(9000, numbered("b", 9005, 1, count=2)),
        "out of order",
    ),
    "fifo: redelivery behind what is leased": (
        check_order.fifo,
        fifo()
        .receive(200, numbered("a", 205, 0), numbered("b", 205, 1))
        .settle(300, "release", "b@205", args={"delay_ms": 0})
        .receive(400, numbered("b", 405, 1, count=2)),
        "out of order",
    ),
    "fifo: numbers against the sends": (
        check_order.fifo,
        fifo().receive(200, numbered("b", 205, 0)).ack(220, "b@205").receive(300, numbered("a", 305, 1)),
        "numbers not as sent",
    ),
    "fifo: numbers against later sends": (
        check_order.fifo,
        fifo().send(150, "d", group="g").receive(200, numbered("d", 205, 0), numbered("a", 205, 1)),
        "numbers not as sent",
    ),
    "fifo: a number twice": (
        check_order.fifo,
        fifo().receive(200, numbered("a", 205, 0), numbered("b", 205, 0)),
        "number twice",
    ),
    "fifo: another number": (
        check_order.fifo,
        fifo().receive(200, numbered("a", 205, 0)).receive(9000, numbered("a", 9005, 1)),
        "other number",
    ),
    "fifo: another group": (check_order.fifo, fifo().lease(200, "a", group="h", sequence=0), "other group"),
    "two letters of one death": (check_letters.letters, _two_letters := letter(500), "two copies"),
    "acked and a letter": (check_letters.letters, letter(9000).lease(200, "a").ack(300, "a@205"), "ended twice"),
    "killed long before a loss, then acked": (
        check_letters.letters,
        letter(9000, reason="killed", count=1)
        .lease(200, "a")
        .settle(300, "kill", "a@205")
        .fault(3900, "wipe", 3910, loses=True)
        .lease(7000, "a", count=1)
        .ack(7100, "a@7005"),
        "ended twice",
    ),
    "no end at all": (check_letters.letters, two().send(1, "a").lease(20, "a"), "never ended"),
    "no letter seen": (check_letters.letters, two().send(1, "a"), "never ended"),
    "redriven twice": (
        check_letters.letters,
        redriven().lease(9500, "a", id="id-R2", handle="r2", origin=origin("id-L", reason="", count=0)),
        "two copies",
    ),
    "redriven and its letter acked": (
        check_letters.letters,
        redriven()
        .receive(8000, delivered("a", 8005, id="id-L", handle="l", origin=origin("id-a")), queue="dlq")
        .ack(8100, "l"),
        "ended twice",
    ),
    "more letters than copies": (
        check_letters.letters,
        letter(500).receive(900, delivered("a", 905, id="id-M", handle="m", origin=origin("id-other")), queue="dlq"),
        "too many letters",
    ),
    "another queue's": (check_letters.letters, letter(500, queue="p"), "wrong origin"),
    "another message's": (
        check_letters.letters,
        letter(500, from_id="id-b").send(50, "b").lease(70, "b"),
        "wrong origin",
    ),
    "killed by nobody": (check_letters.letters, letter(500, reason="killed", count=1), "wrong reason"),
    "killed but says exhausted": (
        check_letters.letters,
        letter(500).lease(200, "a", count=3).settle(300, "kill", "a@205"),
        "wrong reason",
    ),
    "no reason": (check_letters.letters, letter(500, reason=""), "wrong reason"),
    "exhausted too soon": (check_letters.letters, letter(500, count=2), "wrong count"),
    "killed with another count": (
        check_letters.letters,
        letter(500, reason="killed", count=2).lease(200, "a").settle(300, "kill", "a@205"),
        "wrong count",
    ),
    "a counter that stays": (check_rest.counters, clean().rest(500, leased=1), "untrue"),
    "a counter that is missing": (check_rest.counters, clean().send(450, "b").rest(500), "untrue"),
    "not empty": (check_rest.counters, clean().send(350, "b", outcome="info").rest(500, ready=1, empty=True), "untrue"),
    "never at rest": (check_rest.counters, clean().queue("p"), "no look"),
    "a task that never ends": (check_rest.redrives, clean().note("redrive", ended=3, stuck=["t1"]), "stuck"),
    "no task ends": (check_rest.redrives, clean().note("redrive", ended=0, stuck=["t1", "t2"]), "stuck"),
    "refused as wrong": (check_rest.answers, clean().op(500, "ack", outcome="fail", status=404), "refused"),
    "409 for another reason": (
        check_rest.answers,
        clean().op(500, "purge", outcome="fail", status=409, answer={"code": "queue_exists"}),
        "refused",
    ),
    "500": (check_rest.answers, clean().op(500, "ack", outcome="info", status=500), "refused"),
}
_two_letters.receive(900, delivered("a", 905, id="id-L2", handle="l2", origin=origin("id-a")), queue="dlq")
