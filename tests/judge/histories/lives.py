"""Histories of queues that are made anew, kept and broken."""

from __future__ import annotations

from tests.judge import check_lives
from tests.judge.book import Broken, Clean, reborn

CLEAN: Clean = {
    check_lives.lives: {
        "as usual": reborn(),
        "born with what a send without an answer left": reborn()
        .send(150, "tk-1-9", queue="r", outcome="info")
        .life(180, "info", 2, args={"born": True}, answer={"default": {"ready": 1}}),
        "of an unheard send": reborn().send(150, "tk-1-9", queue="r", outcome="info").lease(180, "tk-1-9", queue="r"),
        "200 beside an open deletion": reborn()
        .life(200, "delete", 2, outcome="info")
        .life(300, "create", 3)
        .life(400, "look", 3, status=404),
        "a deletion that nobody heard of, and made anew": reborn()
        .life(200, "delete", 2, outcome="info")
        .life(300, "look", status=404)
        .life(400, "create", 3, status=201),
    },
}

BROKEN: Broken = {
    (check_lives.lives, "vanished"): {
        "a new queue that is not there": reborn().life(180, "look", 2, status=404),
        "a send that finds no queue": reborn().op(180, "send", queue="r", outcome="fail", status=404),
        "a deletion that happens twice": reborn()
        .life(200, "delete", 2, outcome="info")
        .life(300, "create", 3, status=201)
        .life(400, "look", 3, status=404),
    },
    (check_lives.lives, "not deleted"): {
        "deleted, and there": reborn().life(200, "delete", 2).life(220, "look", 2),
    },
    (check_lives.lives, "born"): {
        "born with more than sends without an answer left": reborn()
        .send(150, "tk-1-9", queue="r", outcome="info")
        .life(180, "info", 2, args={"born": True}, answer={"default": {"ready": 2}}),
        "born with messages": reborn().life(180, "info", 2, args={"born": True}, answer={"default": {"ready": 3}}),
    },
    (check_lives.lives, "of another life"): {
        "a message of the life before": reborn().lease(180, "tk-1-5", queue="r"),
    },
    (check_lives.lives, "missing"): {
        "answered, and not there": reborn().note("missing", "r", life=2, uids=["tk-2-1"]),
    },
}
