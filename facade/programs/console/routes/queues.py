"""All queues, page by page; making one."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.console.web.fields import fields, settings_of, typed
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, live, page
from facade.programs.console.web.visit import Visit
from schemas.vocabulary import DEFAULT_TAG

PAGE: Final = 100
SORTS: Final = ("name", "backlog", "ready", "delayed", "leased", "parked", "stored", "oldest")


def _rows(visit: Visit, **more: Any) -> dict[str, Any]:
    sort, prefix, cursor = visit.asked("sort", "name"), visit.asked("prefix"), visit.asked("cursor")
    found = visit.get(
        "/v1/queues", counts="true", sort=sort, prefix=prefix or None, cursor=cursor or None, limit=PAGE, **more
    )
    return {
        "rows": found["counts"],
        "next": found["next"],
        "sort": sort,
        "prefix": prefix,
        "cursor": cursor,
        "sorts": SORTS,
    }


def show(visit: Visit) -> Response:
    """A page of queues."""
    return visit.page("queues.html", title="Queues", to="/queues", **_rows(visit))


def part(visit: Visit) -> Response:
    """The rows that are shown."""
    return visit.fragment("parts/queues.html", to="/queues", **_rows(visit))


def show_dead(visit: Visit) -> Response:
    """A page of dead-letter queues."""
    return visit.page("queues.html", title="Dead letters", to="/dead-letters", **_rows(visit, dead_letters="true"))


def part_dead(visit: Visit) -> Response:
    """The rows that are shown."""
    return visit.fragment("parts/queues.html", to="/dead-letters", **_rows(visit, dead_letters="true"))


def new(visit: Visit) -> Response:
    """The form of a new queue."""
    return visit.page("new_queue.html", fields=typed(visit, fields()), default_tag=DEFAULT_TAG)


def create(visit: Visit) -> Response:
    """Makes a queue."""
    name = visit.given("name")
    if not name:
        raise Failure("a queue has a name", WRONG_USE)
    status, _ = visit.client.exchange("GET", f"/v1{path('queues', name)}")
    made = visit.client.post("/v1/queues", {"name": name, **settings_of(visit)})
    return visit.to(path("queue", made["name"]), done="there" if status == 200 else "created")


ROUTES: Final = (
    page("/queues", show),
    live("/live/queues", part),
    page("/dead-letters", show_dead),
    live("/live/dead-letters", part_dead),
    page("/new-queue", new),
    act("/new-queue", create, new),
)
