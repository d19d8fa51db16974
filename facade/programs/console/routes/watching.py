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
from schemas.vocabulary import Measurement, Subject

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
    body: dict[str, Any] = {"subject": visit.given("subject"), "measurement": visit.given("measurement"), "threshold": threshold}
    if visit.given("tag"):
        body["tag"] = visit.given("tag")
    visit.client.post(path_to("queues", visit.queue, "alerts"), body)
    return visit.to(to, done="added")


def statistics(visit: Visit) -> Response:
    """The requests of a day."""
    day = visit.asked("day") or datetime.fromtimestamp(visit.now_ms / 1000, UTC).date().isoformat()
    return visit.page("statistics.html", queue=visit.seen, may=visit.may, found=visit.of_queue("statistics", day=day), day=day)


def _health(visit: Visit) -> dict[str, Any]:
    health = visit.get("/health")
    _, ready = visit.client.exchange("GET", "/ready")
    status, text = visit.client.text("/metrics")
    values = [line.split(" ", 1) for line in _WORKER.sub("", text).splitlines() if line.startswith("leaseway_") and "{" not in line]
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
    page("/queue/{queue}/alerts", alerts),
    act("/queue/{queue}/alerts", change, alerts),
    page("/queue/{queue}/statistics", statistics),
    page("/health", health),
    live("/live/health", health_part),
)
