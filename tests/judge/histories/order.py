"""Histories of FIFO queues, kept and broken."""

from __future__ import annotations

from tests.judge import check_order
from tests.judge.book import Book, Broken, Clean, fifo, in_turn, numbered

CLEAN: Clean = {
    check_order.fifo: {
        "as usual": in_turn(),
        "together": fifo().receive(200, *(numbered(n, 205, i) for i, n in enumerate("abc"))),
        "redelivery ahead of what is leased": fifo()
        .receive(200, numbered("a", 205, 0), numbered("b", 205, 1))
        .release(300, "a@205", 0)
        .receive(400, numbered("a", 405, 0, count=2)),
        "other groups are free": in_turn().send(50, "x", group="h").lease(206, "x", group="h", sequence=9),
        "a repeat under another name": Book()
        .queue(fifo=True)
        .send(1, "a", group="g", dedup="k")
        .send(50, "b", group="g", dedup="k", ids=["id-x"])
        .send(70, "c", group="g")
        .receive(100, numbered("a", 105, 0), numbered("c", 105, 1)),
    },
}

BROKEN: Broken = {
    (check_order.fifo, "out of order"): {
        "overtaken": fifo().receive(200, numbered("b", 205, 1)).receive(300, numbered("a", 305, 0)),
        "next while in flight": fifo().receive(200, numbered("a", 205, 0)).receive(300, numbered("b", 305, 1)),
        "next after a lapse": fifo().receive(200, numbered("a", 205, 0)).receive(9000, numbered("b", 9005, 1)),
        "answer in wrong order": fifo().receive(200, numbered("b", 205, 1), numbered("a", 205, 0)),
        "redelivered in wrong order": fifo()
        .receive(200, numbered("a", 205, 0), numbered("b", 205, 1))
        .receive(9000, numbered("b", 9005, 1, count=2)),
        "redelivery behind what is leased": fifo()
        .receive(200, numbered("a", 205, 0), numbered("b", 205, 1))
        .release(300, "b@205", 0)
        .receive(400, numbered("b", 405, 1, count=2)),
    },
    (check_order.fifo, "numbers not as sent"): {
        "not as sent": fifo().receive(200, numbered("b", 205, 0)).ack(220, "b@205").receive(300, numbered("a", 305, 1)),
        "later send first": fifo().send(150, "d", group="g").receive(200, numbered("d", 205, 0), numbered("a", 205, 1)),
    },
    (check_order.fifo, "number twice"): {
        "a number twice": fifo().receive(200, numbered("a", 205, 0), numbered("b", 205, 0)),
    },
    (check_order.fifo, "other number"): {
        "another number": fifo().receive(200, numbered("a", 205, 0)).receive(9000, numbered("a", 9005, 1)),
    },
    (check_order.fifo, "other group"): {
        "another group": fifo().lease(200, "a", group="h", sequence=0),
    },
    (check_order.fifo, "passed over"): {
        "one that nobody was given": fifo().send(150, "d", group="g").receive(200, numbered("d", 205, 3)),
    },
}
