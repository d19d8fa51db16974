"""Histories of dead letters, kept and broken."""

from __future__ import annotations

from tests.judge import check_letters
from tests.judge.book import Book, Broken, Clean, delivered, dying, letter, origin, redriven, two
from tests.judge.history import SQS
from tests.judge.story import Story
from tests.judge.verdict import Verdict


def late(story: Story) -> Verdict:
    """Where service has to be back within 20 s."""
    return check_letters.late(story, 20)


def dead_in_time() -> Book:
    """A message that was leased twice, of twice, and its letter, read by SQS."""
    return dying().lease(200, "a").lease(6000, "a", count=2).taken(12_000, "a", queue="dlq", count=3)


CLEAN: Clean = {
    check_letters.letters: {
        "as usual": letter(500),
        "acked as itself": two().send(1, "a").lease(20, "a").ack(40, "a@25"),
        "redriven": redriven(),
        "killed": letter(500, reason="killed", count=1).lease(200, "a").kill(300, "a@205"),
        "ack forgotten by a loss": letter(9000).lease(200, "a").ack(300, "a@205").wipe(900),
        "kill forgotten by a loss": letter(9000, reason="killed", count=1)
        .lease(200, "a")
        .kill(300, "a@205")
        .wipe(900)
        .lease(7000, "a", count=1)
        .ack(7100, "a@7005"),
        "by SQS, died twice for a loss had forgotten it": dying(1)
        .taken(20, "a")
        .wipe(5500)
        .taken(6000, "a")
        .ack(6100, "a@6005", by=SQS)
        .taken(7000, "a", queue="dlq", handle="l")
        .ack(7100, "l", queue="dlq", by=SQS),
    },
    check_letters.undelivered: {
        "as usual": dead_in_time(),
        "an unheard receive had it": dying().lease(200, "a", lease_ms=300).unheard(1000).taken(4000, "a", queue="dlq"),
        "killed": letter(500, reason="killed", count=1).lease(200, "a").kill(300, "a@205"),
    },
    check_letters.overdelivered: {
        "as usual": dead_in_time(),
        "one was forgotten by a loss": dead_in_time().wipe(7000).lease(9000, "a", count=2),
    },
    late: {
        "as usual": dead_in_time(),
        "fault noted late": dying(1).lease(20, "a").fault(20000, "kill kafka", 112000).taken(110000, "a", queue="dlq"),
    },
}

BROKEN: Broken = {
    (check_letters.letters, "two copies"): {
        "two letters of one death": letter(500).receive(
            900, delivered("a", 905, id="id-L2", handle="l2", origin=origin("id-a")), queue="dlq"
        ),
        "two redrives": redriven().lease(9500, "a", id="id-R2", handle="r2", origin=origin("id-L", reason="", count=0)),
    },
    (check_letters.letters, "ended twice"): {
        "acked and a letter": letter(9000).lease(200, "a").ack(300, "a@205"),
        "killed long before a loss, then acked": letter(9000, reason="killed", count=1)
        .lease(200, "a")
        .kill(300, "a@205")
        .wipe(3900)
        .lease(7000, "a", count=1)
        .ack(7100, "a@7005"),
        "redriven and its letter acked": redriven()
        .receive(8000, delivered("a", 8005, id="id-L", handle="l", origin=origin("id-a")), queue="dlq")
        .ack(8100, "l"),
        "acked, and its letter too, by SQS": dying(1)
        .taken(20, "a")
        .ack(40, "a@25", by=SQS)
        .taken(7000, "a", queue="dlq", handle="l")
        .ack(7100, "l", queue="dlq", by=SQS),
    },
    (check_letters.letters, "never ended"): {
        "no end at all": two().send(1, "a").lease(20, "a"),
        "no letter seen": two().send(1, "a"),
    },
    (check_letters.letters, "too many letters"): {
        "more letters than copies": letter(500).receive(
            900, delivered("a", 905, id="id-M", handle="m", origin=origin("id-other")), queue="dlq"
        ),
        "two letters, by SQS": dying(1)
        .taken(7000, "a", queue="dlq", handle="l")
        .ack(7100, "l", queue="dlq", by=SQS)
        .taken(8000, "a", queue="dlq", id="id-2"),
    },
    (check_letters.letters, "wrong origin"): {
        "another queue's": letter(500, queue="p"),
        "another message's": letter(500, from_id="id-b").send(50, "b").lease(70, "b"),
    },
    (check_letters.letters, "wrong reason"): {
        "killed by nobody": letter(500, reason="killed", count=1),
        "killed but says exhausted": letter(500).lease(200, "a", count=3).kill(300, "a@205"),
        "no reason": letter(500, reason=""),
    },
    (check_letters.letters, "wrong count"): {
        "exhausted too soon": letter(500, count=2),
        "killed with another count": letter(500, reason="killed", count=2).lease(200, "a").kill(300, "a@205"),
    },
    (check_letters.undelivered, "too few"): {
        "never leased": dying().taken(4000, "a", queue="dlq"),
        "leased once of twice": dying().lease(200, "a").taken(6000, "a", queue="dlq"),
        "503 is no delivery": dying().lease(200, "a").unheard(1000, most=9, status=503).taken(6000, "a", queue="dlq"),
        "more than one poll of one can have carried": dying()
        .send(20, "b")
        .lease(200, "a")
        .lease(200, "b")
        .unheard(1000)
        .taken(6000, "a", queue="dlq")
        .taken(6000, "b", queue="dlq"),
    },
    (check_letters.overdelivered, "too many"): {
        "three deliveries of two": dead_in_time().lease(20000, "a", count=3),
    },
    (late, "late"): {
        "a minute and a half": dying(1).lease(20, "a").taken(95000, "a", queue="dlq"),
        "sent back, and told late": dying(1)
        .op(5000, "redrive", queue="dlq", answer={"id": "t"})
        .lease(20, "a")
        .lease(95000, "a", queue="dlq", id="id-L", sent_ms=94000, origin=origin("id-a")),
    },
}
