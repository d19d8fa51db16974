"""The first page: what needs somebody, worst first."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from facade.programs.console.web.serving import live, page
from facade.programs.console.web.visit import Visit

WORST: Final = 10
_ALARM: Final = re.compile(
    r'^leaseway_alarm\{kind="([a-z_]+)",queue="([^"]*)"(?:,worker="[^"]*")?\} ([0-9.e+]+)$', re.MULTILINE
)


class Alarm(NamedTuple):
    """Something that needs attention; `queue` "" = it is about no queue, or about several."""

    kind: str
    queue: str
    number: float


def alarms_of(metrics: str) -> list[Alarm]:
    """The alarms among metrics, by kind."""
    return sorted(Alarm(kind, queue, float(number)) for kind, queue, number in _ALARM.findall(metrics))


def _worst(visit: Visit) -> dict[str, Any]:
    """The queues with the oldest messages, and with the most; and the dead-letter queues."""

    def rows(sort: str, **more: Any) -> list[dict[str, Any]]:
        found = visit.get("/v1/queues", counts="true", sort=sort, limit=WORST, **more)["counts"]
        return [row for row in found if row["backlog"]]

    health = visit.get("/health")
    status, text = visit.client.text("/metrics") if health["alarms"] else (0, "")
    return {
        "oldest": [row for row in rows("oldest") if row["oldest_at_ms"]],
        "deepest": rows("backlog"),
        "dead": rows("backlog", dead_letters="true"),
        "health": health,
        "alarms": alarms_of(text) if status == 200 else [],
    }


def show(visit: Visit) -> Response:
    """The page."""
    return visit.page("overview.html", **_worst(visit))


def part(visit: Visit) -> Response:
    """What of it changes."""
    return visit.fragment("parts/overview.html", **_worst(visit))


ROUTES: Final = (page("/", show), live("/live/overview", part))
