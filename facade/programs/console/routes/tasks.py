"""Redrive tasks and transactions: what goes on for a while."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.client import path_to
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, live, page
from facade.programs.console.web.visit import Visit
from schemas.vocabulary import TaskStatus, TransactionStatus

PAGE: Final = 100


def find(visit: Visit) -> Response:
    """The tasks of the last days; a task or a transaction by its id."""
    wanted = visit.asked("id")
    if not wanted:
        return visit.page("tasks.html", statuses=list(TaskStatus), **_tasks(visit))
    return visit.to(path("transactions" if visit.asked("kind") == "transaction" else "tasks", wanted))


def _tasks(visit: Visit) -> dict[str, Any]:
    status, after = visit.asked("status"), visit.asked("next")
    found = visit.get("/v1/tasks", status=status or None, next=after or None, limit=PAGE)
    return {"tasks": found["tasks"], "next": found["next"], "wanted": status, "after": after}


def list_part(visit: Visit) -> Response:
    """The tasks that are shown."""
    return visit.fragment("parts/tasks.html", **_tasks(visit))


def outcomes(visit: Visit) -> Response:
    """What came of each message."""
    task, after = visit.part("task"), visit.asked("next")
    found = visit.get(path_to("tasks", task, "outcomes"), next=after or None, limit=PAGE)
    return visit.page("outcomes.html", task=visit.get(path_to("tasks", task)), found=found)


def _task(visit: Visit) -> dict[str, Any]:
    return {"task": visit.get(path_to("tasks", visit.part("task")))}


def show(visit: Visit) -> Response:
    """A task."""
    return visit.page("task.html", **_task(visit))


def part(visit: Visit) -> Response:
    """Its progress."""
    return visit.fragment("parts/task.html", **_task(visit))


def cancel(visit: Visit) -> Response:
    """Ends a task; what it has moved stays moved."""
    visit.client.call("DELETE", path_to("tasks", visit.part("task")))
    return visit.to(path("tasks", visit.part("task")), done="cancelled")


def transactions(visit: Visit) -> Response:
    """Transactions of a queue."""
    status = visit.asked("status")
    found = visit.of_queue("transactions", status=status or None)["transactions"]
    words = [one.value for one in TransactionStatus]
    return visit.page(
        "transactions.html", queue=visit.seen, may=visit.may, transactions=found, wanted=status, statuses=words
    )


def transaction(visit: Visit) -> Response:
    """One transaction."""
    return visit.page("transaction.html", transaction=visit.get(path_to("transactions", visit.part("transaction"))))


def decide(visit: Visit) -> Response:
    """Commits it, or rolls it back."""
    verb = "commit" if visit.given("what") == "commit" else "rollback"
    visit.client.post(path_to("transactions", visit.part("transaction"), verb))
    return visit.to(
        path("transactions", visit.part("transaction")), done="committed" if verb == "commit" else "rolled_back"
    )


ROUTES: Final = (
    page("/tasks", find),
    page("/tasks/{task}", show),
    live("/live/tasks", list_part),
    live("/live/tasks/{task}", part),
    page("/tasks/{task}/outcomes", outcomes),
    act("/tasks/{task}", cancel, show),
    page("/queue/{queue}/transactions", transactions),
    page("/transactions/{transaction}", transaction),
    act("/transactions/{transaction}", decide, transaction),
)
