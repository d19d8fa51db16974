"""`leaseway dlq` and `leaseway task`."""

from __future__ import annotations

import io
import math
import sys
import time
from typing import Any

import pytest

from facade.programs.cli.program import waiting
from tests.unit.cli.service import Cli


def task(status: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "t1",
        "status": status,
        "moved": 0,
        "failed": 0,
        "total": 3,
        "failure": "",
        "created_at_ms": 1,
        **more,
    }


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_S", 0.001)


def test_ls_asks_for_queues_for_dead_letters_page_by_page_and_for_nothing_of_each(cli: Cli) -> None:
    def row(name: str) -> dict[str, Any]:
        numbers = dict.fromkeys(("ready", "delayed", "leased", "parked", "stored"), 0)
        return {"name": name, "backlog": 7, **numbers, "oldest_at_ms": None, "as_of_ms": 1795469815321}

    pages = [
        {"queues": [], "counts": [row(name)], "next": next_} for name, next_ in (("a.dead", "c1"), ("b.dead", None))
    ]
    cli.service.on("GET /v1/queues", *((200, page) for page in pages))

    ran = cli("dlq", "ls", "--prefix", "shop-", "-o", "json")

    assert [(one["name"], one["backlog"]) for one in ran.json] == [("a.dead", 7), ("b.dead", 7)]
    asked = "/v1/queues?counts=true&sort=name&prefix=shop-&dead_letters=true"
    assert [path for _, path, _ in cli.service.asked] == [f"{asked}&limit=1000", f"{asked}&cursor=c1&limit=1000"]


def test_show_has_where_a_letter_came_from(cli: Cli) -> None:
    origin = {
        "original_queue": "a",
        "reason": "killed",
        "note": "late",
        "receive_count": 3,
        "moved_at_ms": 1795469815321,
    }
    letter = {"id": "m", "state": "ready", "body": "x", "origin": origin}
    cli.service.on("GET /v1/queues/a.dead/messages", (200, {"messages": [letter], "next": None}))

    head, line = cli("dlq", "show", "a.dead").out.splitlines()

    assert head.split() == [
        "id",
        "origin.original_queue",
        "origin.reason",
        "origin.note",
        "origin.receive_count",
        "origin.moved_at_ms",
        "body",
    ]
    assert line.split() == ["m", "a", "killed", "late", "3", "2026-11-23T21:36:55.321Z", "x"]
    assert cli.service.asked == [("GET", "/v1/queues/a.dead/messages?state=ready&limit=50", None)]


def test_redrive_of_chosen_letters_waits_until_they_are_moved(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a.dead/redrive", (202, task("running")))
    cli.service.on("GET /v1/tasks/t1", (200, task("running", moved=1)), (200, task("completed", moved=3)))

    ran = cli(
        "dlq", "redrive", "a.dead", "m1", "m2", "--to", "b", "--rate", "5", "--where", "kind", "--wait", "-o", "json"
    )

    assert (ran.code, ran.json["moved"], ran.err) == (0, 3, "")
    assert cli.service.asked[0][2] == {
        "ids": ["m1", "m2"],
        "destination": "b",
        "filter": {"operator": "AND", "conditions": [{"name": "kind"}]},
        "rate": 5,
    }


def test_redrive_without_wait_prints_the_task_and_goes(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a.dead/redrive", (202, task("running")))

    assert cli("dlq", "redrive", "a.dead", "-o", "name").out == "t1\n"
    assert cli.service.asked == [("POST", "/v1/queues/a.dead/redrive", {})]


def test_redrive_of_an_empty_list_moves_nothing_rather_than_all(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))

    ran = cli("dlq", "redrive", "a.dead", "-")

    assert (ran.code, ran.out, cli.service.asked) == (0, "", [])
    assert ran.err == "stdin names no message, so nothing is moved\n"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"status": "completed", "moved": 2, "failed": 1}, "task t1 is completed; moved 2, failed 1 of 3 found"),
        ({"status": "failed", "failure": "no right"}, "task t1 is failed: no right; moved 0, failed 0 of 3 found"),
        ({"status": "cancelled", "moved": 1}, "task t1 is cancelled; moved 1, failed 0 of 3 found"),
    ],
)
def test_a_task_that_has_not_moved_all_ends_with_1(end: dict[str, Any], said: str, cli: Cli) -> None:
    cli.service.on("GET /v1/tasks/t1", (200, task("running")), (200, task(**end)))

    ran = cli("task", "show", "t1", "--wait", "-o", "json")

    assert (ran.code, ran.json["status"]) == (1, end["status"])
    assert ran.err == f"leaseway task show: {said}\n"


def test_without_wait_any_task_is_shown(cli: Cli) -> None:
    cli.service.on("GET /v1/tasks/t1", (200, task("failed")))

    assert cli("task", "show", "t1").code == 0


def test_a_wait_ends_with_its_timeout_and_the_task_goes_on(cli: Cli) -> None:
    cli.service.on("GET /v1/tasks/t1", (200, task("running", moved=1)))

    ran = cli("task", "show", "t1", "--wait", "--timeout", "0.3")

    assert (ran.code, ran.out) == (1, "")
    assert "has not ended within 0.3 s (--timeout): moved 1, failed 0 of 3 found; task t1 goes on" in ran.err


def test_an_interrupted_wait_says_that_the_task_goes_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.service.on("GET /v1/tasks/t1", (200, task("running")))

    def interrupted(_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)

    ran = cli("task", "show", "t1", "--wait")

    assert ran.code == 130
    assert "task t1 goes on; `leaseway task cancel t1` ends it\n" in ran.err


def test_a_service_that_is_away_for_a_moment_does_not_end_a_wait(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _s: None)
    away = (503, {"detail": "Away."})
    cli.service.on("GET /v1/tasks/t1", (200, task("running")), away, (200, task("completed", moved=3)))

    assert cli("task", "show", "t1", "--wait").code == 0


@pytest.mark.parametrize("status", [429, 500])
def test_too_many_requests_or_a_fault_do_not_end_a_wait(status: int, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _s: None)
    cli.service.on("POST /v1/queues/a.dead/redrive", (202, task("running")))
    cli.service.on("GET /v1/tasks/t1", (status, {"detail": "Later."}), (200, task("completed", moved=3)))

    assert cli("dlq", "redrive", "a.dead", "--wait", "-o", "name").out == "t1\n"


def test_a_wait_that_is_refused_names_the_task(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a.dead/redrive", (202, task("running")))
    cli.service.on("GET /v1/tasks/t1", (403, {"detail": "No right."}))

    ran = cli("dlq", "redrive", "a.dead", "--wait")

    assert (ran.code, ran.out) == (4, "")
    assert ran.err == "leaseway dlq redrive: task t1 was started, and may go on: No right\n"


def test_a_poll_of_a_wait_has_no_more_than_what_is_left(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[float | None] = []
    monkeypatch.setattr("facade.programs.connect.client.Client.until", lambda _self, end: bounds.append(end))
    cli.service.on("GET /v1/tasks/t1", (200, task("running")), (200, task("completed", moved=3)))
    began = time.monotonic()

    assert cli("task", "show", "t1", "--wait", "--timeout", "9").code == 0
    assert cli("task", "show", "t1", "--wait", "--timeout", "600").code == 0

    cli.service.on("GET /v1/tasks/t1", (200, task("running")), (200, task("completed", moved=3)))
    assert cli("task", "show", "t1", "--wait", "--timeout", "600").code == 0

    now = time.monotonic()
    short, none, *rest = bounds
    assert short is not None
    assert began + 9 <= short <= now + 9
    assert (none, rest[0], rest[-1]) == (None, None, None)
    assert rest[1] is not None
    assert began + 30 <= rest[1] <= now + 30


def test_cancel(cli: Cli) -> None:
    cli.service.on("DELETE /v1/tasks/t1", (200, task("cancelled")))

    assert cli("task", "cancel", "t1", "-o", "name").out == "t1\n"


def test_a_timeout_is_of_the_whole_command_also_where_its_first_request_takes_long(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    took_s, bounds = 0.3, list[float]()
    answer = cli.service.answer

    def slow(method: str, path: str) -> Any:
        time.sleep(took_s if method == "POST" else 0)
        return answer(method, path)

    monkeypatch.setattr(cli.service, "answer", slow)
    monkeypatch.setattr(
        "facade.programs.connect.client.Client.until", lambda _self, end: bounds.append(end or math.inf)
    )
    cli.service.on("POST /v1/queues/a.dead/redrive", (202, task("running")))
    cli.service.on("GET /v1/tasks/t1", (200, task("completed", moved=3)))
    began = time.monotonic()

    assert cli("dlq", "redrive", "a.dead", "--wait", "--timeout", "9").code == 0

    assert began + 9 <= bounds[0] <= began + 9 + took_s


def test_redrive_takes_what_all_of_its_options_say(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a.dead/redrive", (202, task("running")))
    words = "--reason killed --source a --since 0 --until 2026-11-23T21:36:55 --text x --ignore-case"

    assert cli("dlq", "redrive", "a.dead", *words.split(), "-o", "name").out == "t1\n"
    assert cli.service.asked[0][2] == {
        "reason": "killed",
        "source": "a",
        "from": 0,
        "to": 1795469815000,
        "text": "x",
        "ignore_case": True,
    }


def test_a_dry_run_shows_what_would_be_moved_and_when_it_was_cut(cli: Cli) -> None:
    preview = {"source": "a.dead", "moved": 7, "failed": {"leased": 1}, "letters": [], "scanned": 9, "cut": None}
    cli.service.on("POST /v1/queues/a.dead/redrive/preview", (200, preview))
    cli.service.on("POST /v1/redrive/preview", (200, {"previews": [preview, {**preview, "cut": "records"}]}))

    ran = cli("dlq", "redrive", "a.dead", "--dry-run", "--rate", "5", "--wait", "-o", "json")
    assert (ran.json, ran.err) == ([preview], "")
    assert cli.service.asked == [("POST", "/v1/queues/a.dead/redrive/preview", {})]
    ran = cli("dlq", "redrive", "--all", "--dry-run", "-o", "name")
    assert ran.out == "a.dead\na.dead\n"
    assert ran.err == "there are more letters than a dry run reads: the numbers are those of the first ones\n"


def test_redrive_of_all_queues_waits_for_each_task(cli: Cli) -> None:
    other = {**task("running"), "id": "t2"}
    cli.service.on("POST /v1/redrive", (202, {"tasks": [task("running"), other], "next": None}))
    cli.service.on("GET /v1/tasks/t1", (200, task("completed", moved=3)))
    cli.service.on("GET /v1/tasks/t2", (200, {**other, "status": "completed", "failed": 1}))

    ran = cli("dlq", "redrive", "--all", "m1", "m2", "--wait", "-o", "json")

    assert cli.service.asked[0] == ("POST", "/v1/redrive", {"ids": ["m1", "m2"]})
    assert (ran.code, [row["id"] for row in ran.json]) == (1, ["t1", "t2"])
    assert "task t2 is completed; moved 0, failed 1" in ran.err


def test_redrive_needs_a_queue_or_all(cli: Cli) -> None:
    ran = cli("dlq", "redrive")

    assert (ran.code, cli.service.asked) == (2, [])
    assert "name the dead-letter queue, or say --all" in ran.err


def test_tasks_are_listed(cli: Cli) -> None:
    cli.service.on("GET /v1/tasks", (200, {"tasks": [task("running")], "next": None}))

    assert cli("task", "ls", "--status", "running", "-o", "name").out == "t1\n"
    assert cli.service.asked == [("GET", "/v1/tasks?status=running&limit=100", None)]


def test_outcomes_are_read_page_by_page_and_chosen_by_their_word(cli: Cli) -> None:
    moved = {"id": "m1", "outcome": "moved", "queue": "a", "moved_id": "n1"}
    pages = [
        (200, {"letters": [moved], "next": "1", "complete": True}),
        (200, {"letters": [{"id": "m2", "outcome": "leased"}], "next": None, "complete": False}),
    ]
    cli.service.on("GET /v1/tasks/t1/outcomes", *pages)

    ran = cli("task", "outcomes", "t1", "--outcome", "leased", "-o", "json")

    assert (ran.code, ran.json) == (0, [{"id": "m2", "outcome": "leased"}])
    assert ran.err == "the task came to more letters than it keeps the outcomes of\n"
    assert [path for _, path, _ in cli.service.asked] == [
        "/v1/tasks/t1/outcomes?limit=1000",
        "/v1/tasks/t1/outcomes?next=1&limit=1000",
    ]
