"""Histories of leases and counts, kept and broken."""

from __future__ import annotations

from tests.judge import check_leases
from tests.judge.book import Book, Broken, Clean, ahead, clean, cut, dying, killed, leased, sent
from tests.judge.history import SQS, UNTOLD

CLEAN: Clean = {
    check_leases.exclusive: {
        "a handle good after loss": clean().lease(5200, "a", count=2).wipe(5300).extend(5400, "a@15", visible_ms=9900),
        "after the lease": clean().lease(5200, "a", count=2),
        "after a release": sent().lease(10, "a").release(20, "a@15", 0, visible_ms=25).lease(30, "a"),
        "after an extension to now": sent().lease(10, "a").extend(20, "a@15", visible_ms=25).lease(30, "a"),
        "leased ahead, and given back at once": ahead(),
        "two tags": clean().lease(210, "a", tag="other"),
        "leased just before a loss": leased().wipe(900).lease(1000, "a"),
        "either of two may be first": sent().taken(10, "a", took=9000, lease_ms=100).taken(2000, "a", lease_ms=20000),
        "by SQS, just before a loss": sent().taken(10, "a").wipe(500).taken(2000, "a"),
    },
    check_leases.stale: {
        "leased ahead, and given back at once": ahead(),
        "as usual": clean().lease(5300, "a", count=2).ack(5400, "a@205", status="stale").ack(5500, "a@5305"),
        "a blind ack": clean().lease(5300, "a", count=2).ack(5400, "a@205", by=SQS),
        "newer one forgotten": sent().lease(10, "a", lease_ms=50).lease(100, "a", count=2).wipe(200).ack(900, "a@15"),
    },
    check_leases.counts: {
        "leased ahead, and given back at once": ahead(),
        "as usual": clean().lease(5300, "a", count=2).lease(11000, "a", count=5),
        "not told": clean().lease(6000, "a", count=UNTOLD).lease(12000, "a", count=3),
        "undrained": clean().wipe(900).lease(6000, "a", count=1),
    },
    check_leases.acked_stays: {
        "as usual": clean(),
        "just before a loss": clean().wipe(900).lease(9000, "a", count=2),
        "journal held up before a loss": clean().fault(250, "stop kafka", 2000).wipe(9000).lease(12000, "a", count=2),
        "blindly, after its lease": leased().ack(5300, "a@205", by=SQS).lease(5400, "a", count=2).ack(5500, "a@5405"),
        "blindly, at a loss": leased().wipe(250).ack(300, "a@205", by=SQS).lease(400, "a", count=1).ack(500, "a@405"),
        "just before a worker paused": clean().fault(800, "pause worker", 30000).wipe(9000).lease(40000, "a", count=2),
        "3 s before a loss, loaded": clean().op(400, "probe", args={"load_average": 12.0}).wipe(3310).lease(6000, "a"),
        "by SQS, and leased by another meanwhile": Book()
        .queue()
        .taken(1, "a")
        .taken(20, "a", handle="h")
        .ack(40, "a@6", by=SQS)
        .taken(6000, "a", count=3)
        .ack(6100, "a@6005", by=SQS),
    },
    check_leases.never_early: {
        "as usual": Book().queue().send(1, "a", delay_ms=500).lease(1000, "a", sent_ms=505),
        "released": sent().lease(10, "a").release(20, "a@15", 500, visible_ms=525).lease(520, "a"),
        "by SQS": Book().queue().send(1, "a", delay_ms=500).taken(500, "a"),
    },
    check_leases.uncarried: {
        "as usual": clean(),
        "two receives without an answer": Book()
        .queue()
        .send(1, "a", "b")
        .unheard(1000)
        .unheard(4000)
        .lease(6500, "a", count=2)
        .lease(3500, "b", count=2),
        "a worker that was alone was killed": killed().lease(50000, "a", count=2),
        "Redis lost between a lease and its answer": cut(True).lease(7000, "a", count=2),
        "a client left as its worker was killed": dying(1)
        .fault(600, "kill worker", 4000)
        .unheard(500, args={"gone": True})
        .taken(5000, "a", queue="dlq", count=2),
        "the answer came after that of a later receive": sent().lease(10, "a", took=9000).lease(8000, "a", count=2),
    },
}

BROKEN: Broken = {
    (check_leases.exclusive, "overlap"): {
        "two holders": clean().lease(210, "a", handle="other", count=2),
        "leased while extended": sent().lease(10, "a").extend(20, "a@15", visible_ms=9000).lease(6000, "a", count=2),
        "a long one": Book().queue().lease(10, "a", lease_ms=9000).lease(20, "a", lease_ms=5).lease(40, "a", count=2),
        "leased long before a loss": leased().wipe(2000).lease(2100, "a"),
        "a loss after both": clean().lease(250, "a", count=2).wipe(900),
        "two holders, by the client's clock": sent().taken(10, "a").taken(2000, "a", count=2),
        "extended by SQS, and leased meanwhile": sent()
        .taken(10, "a")
        .settle(3000, "extend", "a@15", by=SQS, args={"lease_ms": 9000})
        .taken(7000, "a", count=2),
    },
    (check_leases.exclusive, "told twice"): {
        "one delivery told twice": clean().lease(6000, "a", handle="a@205", count=2),
    },
    (check_leases.acked_stays, "ack forgotten"): {
        "acked and again": clean().lease(6000, "a", count=2),
        "acked blindly in time, and again": leased().ack(300, "a@205", by=SQS).lease(6000, "a", count=2),
        "acked blindly, its count not told": leased().ack(300, "a@205", by=SQS).lease(6000, "a", count=UNTOLD),
        "acked long before a loss": clean().wipe(2000).lease(6000, "a", count=2),
        "acked after a loss": sent().wipe(90).lease(200, "a").ack(300, "a@205").lease(6000, "a", count=2),
        "acked durably just before a loss": Book()
        .queue(durable=True)
        .send(1, "a")
        .lease(200, "a")
        .ack(300, "a@205")
        .wipe(400)
        .lease(6000, "a", count=2),
        "held up, but healed long before": clean().fault(250, "stop kafka", 500).wipe(19000).lease(22000, "a", count=2),
        "acked in time by SQS, again": Book().queue().taken(10, "a").ack(300, "a@15", by=SQS).taken(6000, "a", count=2),
        "acked before a kill": clean().note("run", load=15).fault(320, "kill redis", 900).lease(6000, "a", count=2),
        "acked long before a pause": clean().fault(2400, "pause worker", 30000).wipe(9000).lease(40000, "a", count=2),
    },
    (check_leases.counts, "fell"): {
        "a count told after some that are not": clean().lease(6000, "a", count=UNTOLD).lease(12000, "a", count=1),
        "count stays": clean().lease(6000, "a", count=1),
        "count falls": clean().lease(6000, "a", count=4).lease(12000, "a", count=3),
        "count falls by two, at a loss": clean().lease(6000, "a", count=2).wipe(12000).lease(13000, "a", count=1),
    },
    (check_leases.stale, "stale handle obeyed"): {
        "a stale ack obeyed": clean().lease(5300, "a", count=2).ack(5400, "a@205"),
        "a stale release obeyed": clean().lease(5300, "a", count=2).release(5400, "a@205", 0),
    },
    (check_leases.stale, "settled twice"): {
        "acked twice by one handle": clean().ack(350, "a@205"),
        "killed after the ack": clean().kill(350, "a@205"),
    },
    (check_leases.counts, "no count"): {
        "count zero": clean().lease(6000, "a", count=0),
    },
    (check_leases.never_early, "early"): {
        "before the delay": Book().queue().send(1, "a", delay_ms=500).lease(999, "a", sent_ms=505),
        "before the release's delay": sent().lease(10, "a").release(20, "a@15", 500, visible_ms=525).lease(519, "a"),
        "before the delay, by the client's clock": Book().queue().send(1, "a", delay_ms=3000).taken(2400, "a"),
    },
    (check_leases.counts, "too few"): {
        "fewer than were seen": clean().lease(6000, "a", count=UNTOLD).lease(12000, "a", count=2),
    },
    (check_leases.uncarried, "counted and not carried"): {
        "Redis slow, and not lost": cut(False).lease(7000, "a", count=2),
        "a count that nobody saw": sent().lease(10, "a", count=2),
        "503 carried nothing": sent().unheard(10, status=503).lease(3000, "a", count=2),
        "two counts, and one kill of a worker": killed().lease(50000, "a", count=3),
        "a worker that is not alone leases nothing ahead": killed().note("run", workers=2).lease(50000, "a", count=2),
        "a client left long before its worker was killed": dying(1)
        .fault(4000, "kill worker", 5000)
        .unheard(500, args={"gone": True})
        .taken(6000, "a", queue="dlq", count=2),
    },
}
