"""What is watched: alerts of a queue, its statistics, and the health of the service."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.client import path_to
from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.console.routes.overview import alarms_of
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, live, page
from facade.programs.console.web.visit import Visit
from facade.programs.console.web.words import moment
from schemas.vocabulary import Measurement, Subject, Verb

PAGE: Final = 100
HISTORY_SPANS: Final = ("hour", "day")
_HELD: Final = ["ready", "delayed", "leased", "parked", "stored"]
_DONE: Final = ("received", "redelivered", "acked", "dead")
# Where several workers share a port, each series says whose it is.
_WORKER: Final = re.compile(r'\{worker="[^"]*"\}')


def alerts(visit: Visit) -> Response:
    """Alert policies of a queue, and what has fired."""
    return visit.page(
        "alerts.html",
        queue=visit.seen,
        may=visit.may,
        alerts=visit.of_queue("alerts")["alerts"],
        events=visit.of_queue("alerts", "history")["events"],
        subjects=[one.value for one in Subject],
        measurements=[one.value for one in Measurement],
    )


def change(visit: Visit) -> Response:
    """Adds a policy, or takes one away."""
    to = path("queue", visit.queue, "alerts")
    if visit.given("alert"):
        visit.client.call("DELETE", path_to("queues", visit.queue, "alerts", visit.given("alert")))
        return visit.to(to, done="deleted")
    try:
        threshold = float(visit.given("threshold"))
    except ValueError:
        raise Failure(f"a threshold is a number, given {visit.given('threshold')[:100]!r}", WRONG_USE) from None
    body: dict[str, Any] = {
        "subject": visit.given("subject"),
        "measurement": visit.given("measurement"),
        "threshold": threshold,
    }
    if visit.given("tag"):
        body["tag"] = visit.given("tag")
    visit.client.post(path_to("queues", visit.queue, "alerts"), body)
    return visit.to(to, done="added")


def statistics(visit: Visit) -> Response:
    """The requests of a day."""
    day = visit.asked("day") or datetime.fromtimestamp(visit.now_ms / 1000, UTC).date().isoformat()
    return visit.page(
        "statistics.html", queue=visit.seen, may=visit.may, found=visit.of_queue("statistics", day=day), day=day
    )


def audit(visit: Visit) -> Response:
    """Who has asked for what, and what came of it."""
    asked = {name: visit.asked(name) for name in ("principal", "queue", "verb", "from", "to")}
    try:
        times = {name: moment(asked[name]) for name in ("from", "to")}
    except ValueError:
        raise Failure("a time is YYYY-MM-DDTHH:MM:SS", WRONG_USE) from None
    given = {name: asked[name] or None for name in ("principal", "queue", "verb")}
    found = visit.get("/v1/audit", **given, **times, cursor=visit.asked("cursor") or None, limit=PAGE)
    return visit.page("audit.html", found=found, asked=asked, verbs=sorted(Verb))


def _history(visit: Visit) -> dict[str, Any]:
    """The numbers of the last hour or day: what was in the queue, and what was done between two
    times.
    """
    found = visit.of_queue("history", span=visit.asked("span", "hour"))
    times, tags = found["at_ms"], found["tags"]
    # Before it was there, nothing is to be drawn.
    first = next((i for i in range(len(times)) if found["ready"][i] is not None), 0)
    done = {
        "sent": found["sent"],
        **{name: [_total(row) for row in zip(*(tag[name] for tag in tags), strict=True)] for name in _DONE},
    }
    return {
        "queue_name": visit.queue,
        "span": visit.asked("span", "hour"),
        "found": found,
        "charts": [
            ("in", "In the queue", _HELD, [
                (times[i], [found[name][i] for name in _HELD]) for i in range(first, len(times))
            ]),
            ("done", f"Done in each {found['step_ms'] // 1000} s", list(done), [
                (times[i], [_grown(column[i - 1], column[i]) for column in done.values() if column])
                for i in range(first + 1, len(times))
            ]),
        ],
    }  # fmt: skip


def _total(numbers: tuple[int | None, ...]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _grown(before: int | None, after: int | None) -> int | None:
    """By how much a number that only grows has; None = it is not known."""
    return None if before is None or after is None or after < before else after - before


def history(visit: Visit) -> Response:
    """The history of a queue."""
    return visit.page("history.html", queue=visit.seen, may=visit.may, spans=HISTORY_SPANS, **_history(visit))


def history_part(visit: Visit) -> Response:
    """Its numbers, asked for again."""
    return visit.fragment("parts/history.html", **_history(visit))


def _health(visit: Visit) -> dict[str, Any]:
    health = visit.get("/health")
    _, ready = visit.client.exchange("GET", "/ready")
    status, text = visit.client.text("/metrics")
    values = [
        line.split(" ", 1)
        for line in _WORKER.sub("", text).splitlines()
        if line.startswith("leaseway_") and "{" not in line
    ]
    return {
        "ready": ready,
        "health": health,
        "alarms": alarms_of(text) if status == 200 else [],
        "values": values if status == 200 else [],
        "is_shown": status == 200,
    }


def health(visit: Visit) -> Response:
    """How the service is."""
    return visit.page("health.html", **_health(visit))


def health_part(visit: Visit) -> Response:
    """What of that changes."""
    return visit.fragment("parts/health.html", **_health(visit))


ROUTES: Final = (
    page("/audit", audit),
    page("/queue/{queue}/alerts", alerts),
    act("/queue/{queue}/alerts", change, alerts),
    page("/queue/{queue}/statistics", statistics),
    page("/queue/{queue}/history", history),
    live("/live/queue/{queue}/history", history_part),
    page("/health", health),
    live("/live/health", health_part),
)
