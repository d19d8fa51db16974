"""Histories of counters, answers and recovery, kept and broken."""

from __future__ import annotations

from tests.judge import check_rest
from tests.judge.book import Book, Broken, Clean, busy, clean, dying, keyed
from tests.judge.history import SQS, Result
from tests.judge.story import Story
from tests.judge.verdict import Verdict

WRONG = {"wrong": True}


def works(story: Story) -> Verdict:
    """Where service has to be back within 20 s."""
    return check_rest.works(story, 20)


def live(story: Story) -> Verdict:
    """Where service has to be back within 20 s."""
    return check_rest.live(story, 20)


def probed() -> Book:
    """A fault that the service heals itself, and a probe that began too soon."""
    return Book().queue().fault(100_000, "kill kafka", 105_000, args={"held": False}).op(99_000, "probe", took=2000)


def redriving() -> Book:
    """A task that was begun."""
    return clean().op(500, "redrive", queue="dlq", answer={"id": "t"})


CLEAN: Clean = {
    check_rest.counters: {
        "as usual": clean(),
        "held, delayed, waiting": Book()
        .queue(kept=True)
        .send(1, "a", "b")
        .send(20, "c", delay_ms=90000)
        .lease(40, "a")
        .rest(100, ready=1, delayed=1, leased=1),
        "unknown outcomes widen": clean().send(350, "x", outcome="info").rest(400, ready=1),
        "with its dead letters": dying().rest(9000, queue="dlq", ready=1).rest(9000),
        "repeats are none": keyed().send(20, "b", dedup="k", ids=["id-a"]).rest(90, ready=1),
    },
    check_rest.answers: {
        "purged by another too": clean().op(500, "purge", outcome="fail", status=409, answer={"code": "queue_in_use"}),
        "as usual": clean().op(500, "ack", outcome="info", status=503),
        "what is wrong": clean().op(500, "ack", outcome="fail", status=404, args=WRONG),
        "stale": clean().op(500, "extend", by=SQS, outcome="fail", status=400, answer={"code": "MessageNotInflight"}),
    },
    check_rest.redrives: {
        "as usual": redriving().op(700, "task", args={"task": "t"}, answer={"status": "completed"}),
    },
    works: {
        "as usual": busy(500, 500).fault(20000, "pause kafka", 21000),
    },
    live: {
        "hit again before it had to be back": probed()
        .fault(115000, "kill redis", 116000, args={"held": False})
        .op(128000, "probe"),
        "as usual": probed().op(108000, "probe", took=2000),
    },
}

BROKEN: Broken = {
    (check_rest.counters, "untrue"): {
        "a counter that stays": clean().rest(500, leased=1),
        "a counter that is missing": clean().send(450, "b").rest(500),
        "not empty": clean().send(350, "b", outcome="info").rest(500, ready=1, empty=True),
        "one too many with its dead letters": dying().rest(9000, queue="dlq", ready=1).rest(9000, ready=1),
        "what is kept": Book().queue(kept=True).send(1, "a", "b").lease(20, "a", lease_ms=90000).rest(9000, ready=2),
    },
    (check_rest.counters, "no look"): {
        "never at rest": clean().queue("p"),
    },
    (check_rest.redrives, "stuck"): {
        "a task that never ends": redriving().op(700, "task", args={"task": "t"}, answer={"status": "running"}),
        "a task of which nothing is known": redriving(),
        "a task that failed": redriving().op(700, "task", args={"task": "t"}, answer={"status": "failed"}),
    },
    (check_rest.answers, "refused"): {
        "refused as wrong": clean().op(500, "ack", outcome="fail", status=404),
        "409 for another reason": clean().op(500, "purge", outcome="fail", status=409, answer={"code": "queue_exists"}),
        "a message of a send is refused": Book().queue().send(1, "a", "b").some(Result("ok"), Result("fail")),
    },
    (check_rest.answers, "broken"): {
        "500": clean().op(500, "ack", outcome="info", status=500),
        "a message of a send is broken": Book().queue().send(1, "a", "b").some(Result("ok"), Result("broken")),
        "504": clean().op(500, "ack", outcome="info", status=504),
    },
    (check_rest.answers, "not refused"): {
        "a wrong ack is done": clean().op(500, "ack", args=WRONG),
    },
    (works, "stands still"): {
        "a queue that stands still after a fault": busy(20, 80).fault(20000, "pause kafka", 21000),
    },
    (live, "not back"): {
        "more than twenty seconds": probed().op(118000, "probe", took=4000),
        "half a minute after the pause that lay over the kill": Book()
        .queue()
        .fault(100000, "pause worker", 120000)
        .fault(101000, "kill kafka", 150000, args={"held": False})
        .op(148000, "probe", took=2000),
        "hit again when it had to be back": probed()
        .fault(125000, "kill redis", 126000, args={"held": False})
        .op(128000, "probe"),
        "never": probed().op(128000, "probe", outcome="info"),
    },
}
