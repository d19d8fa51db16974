"""Histories of messages and sends, kept and broken."""

from __future__ import annotations

from tests.judge import check_messages
from tests.judge.book import Book, Broken, Clean, clean, keyed, letter, redriven, sent, two
from tests.judge.history import SQS, Result, Sent

CLEAN: Clean = {
    check_messages.lost: {
        "as usual": clean(),
        "an unknown send may be missing": clean().send(500, "x", outcome="info"),
        "an unknown ack may have settled": sent().lease(20, "a").ack(40, "a@25", outcome="info"),
        "a blind ack after the lease may have settled": sent().lease(20, "a").ack(6000, "a@25", by=SQS),
        "a letter is there": letter(500),
        "purged": sent().op(100, "purge"),
        "a tag that does not want it": Book().queue(tags={"red": "red"}).send(1, "a", kind="blue"),
        "redriven, its letter never seen": redriven(),
        "a queue that keeps": Book()
        .queue(kept=True)
        .queue("p")
        .send(1, "a")
        .send(5, "b", queue="p")
        .lease(10, "b", queue="p")
        .ack(30, "b@15", queue="p"),
        "a repeat, hurt": keyed().fault(40, "kill redis", 60).send(50, "b", dedup="k").lease(99, "a").ack(120, "a@104"),
        "sent again": Book().queue(fifo=True).send(1, "a", outcome="info").send(20, "a").lease(50, "a").ack(70, "a@55"),
        "in part": Book().queue().send(1, "x", "a").lease(50, "a").ack(70, "a@55").some(Result("fail"), Result("ok")),
    },
    check_messages.phantoms: {
        "as usual": letter(500),
        "a refused send is not shown": clean().send(500, "x", outcome="fail"),
        "redriven": redriven(),
        "any kind": Book().queue(tags={"any": "*"}).send(1, "a", kind="blue").lease(20, "a", tag="any"),
        "two sends": Book().queue().send(1, "a", outcome="info").send(20, "a").lease(50, "a").lease(90, "a", id="id-2"),
    },
    check_messages.batches: {
        "as usual": clean().send(300, "b", "c").lease(500, "b").lease(600, "c"),
        "unknown and not shown": clean().send(300, "b", "c", outcome="info"),
        "unknown and shown": clean().send(300, "b", "c", outcome="info", ids=[]).lease(500, "b").lease(600, "c"),
    },
    check_messages.purges: {
        "as usual": clean().op(500, "purge").send(600, "z").lease(700, "z"),
        "sent meanwhile": clean().send(495, "z").op(500, "purge").lease(700, "z"),
        "forgotten by a loss": clean().op(500, "purge").wipe(900).lease(6000, "a", count=2),
    },
    check_messages.dedup: {
        "as usual": keyed().send(50, "b", dedup="k", ids=["id-a"]).lease(99, "a"),
        "answered anew while hurt": keyed().fault(40, "kill redis", 60).send(50, "b", dedup="k").lease(99, "a"),
        "answered anew, not back": keyed().fault(40, "kill redis", 60).send(20000, "b", dedup="k").lease(21000, "a"),
        "after five minutes": keyed().send(300001, "b", dedup="k").lease(99, "a").lease(300100, "b"),
        "in each group": Book()
        .queue(fifo=True, dedup_scope="group")
        .send(1, "a", dedup="k", group="g")
        .send(9, "b", dedup="k", group="h")
        .lease(99, "a")
        .lease(99, "b"),
    },
    check_messages.log: {
        "as usual": clean().log("a"),
    },
}

BROKEN: Broken = {
    (check_messages.lost, "lost"): {
        "never delivered": clean().send(500, "x"),
        "delivered under one tag only": Book().queue(tags={"default": "", "t": ""}).send(1, "a").lease(20, "a"),
        "sent after the purge": Book().queue().op(1, "purge").send(100, "a"),
        "sent after a purge that nobody heard of": Book().queue().op(1, "purge", outcome="info").send(6000, "a"),
    },
    (check_messages.lost, "vanished"): {
        "settled by nobody": sent().lease(20, "a"),
        "stale ack settled it": sent().lease(20, "a").ack(40, "a@25", status="stale"),
    },
    (check_messages.phantoms, "phantom"): {
        "nobody sent it": clean().lease(500, "ghost"),
        "of another queue": clean().queue("p").lease(500, "a", queue="p"),
    },
    (check_messages.phantoms, "altered"): {
        "other body": clean().lease(6000, "a", body="body-b"),
        "other attributes": clean().lease(6000, "a", attributes="x"),
    },
    (check_messages.phantoms, "not wanted"): {
        "against the filter": Book().queue(tags={"red": "red"}).send(1, "a", kind="blue").lease(20, "a", tag="red"),
        "of no kind": Book().queue(tags={"any": "*"}).send(1, "a").lease(20, "a", tag="any"),
    },
    (check_messages.phantoms, "refused"): {
        "a refused send shown": clean().send(500, "x", outcome="fail").lease(600, "x"),
        "refused, of a batch": Book().queue().send(1, "x", "a").lease(50, "x").some(Result("fail"), Result("ok")),
    },
    (check_messages.phantoms, "doubled"): {
        "a retry inside made two": clean().lease(600, "a", id="id-2", handle="h2"),
    },
    (check_messages.phantoms, "no origin"): {
        "a letter without origin": two().send(1, "a").lease(20, "a", queue="dlq"),
    },
    (check_messages.batches, "torn"): {
        "half of an unknown batch": clean().send(300, "b", "c", outcome="info", ids=[]).lease(500, "b"),
        "half of an answered batch": clean().send(300, "b", "c").lease(500, "c"),
    },
    (check_messages.purges, "came back"): {
        "purged came back": clean().op(500, "purge").lease(6000, "a", count=2),
        "purged came back, loss long after": clean().op(500, "purge").wipe(9000).lease(9500, "a", count=2),
    },
    (check_messages.dedup, "two ids"): {
        "two ids for one": keyed().send(50, "b", dedup="k"),
        "much later": keyed().fault(40, "kill redis", 60).lease(100, "a").send(20000, "b", dedup="k").lease(21000, "a"),
        "two ids by content": Book()
        .queue(fifo=True, content_dedup=True)
        .op(1, "send", sends=[Sent("a", "same", "")], ids=["1"])
        .op(50, "send", sends=[Sent("b", "same", "")], ids=["2"]),
    },
    (check_messages.dedup, "delivered twice"): {
        "repeat delivered too": keyed().send(50, "b", dedup="k", outcome="info").lease(99, "a").lease(99, "b"),
    },
    (check_messages.dedup, "a repeat came"): {
        "a repeat came": keyed().send(50, "b", dedup="k", ids=["id-a"]).lease(99, "b", id="id-a"),
    },
    (check_messages.log, "not stored"): {
        "answered, and not in the topic": clean().send(500, "b").log("a"),
    },
    (check_messages.log, "stored twice"): {
        "stored twice": clean().log("a", "a"),
    },
}
