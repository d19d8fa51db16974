"""One tag of a queue: pausing it, having it begin anew, and the end of it."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.client import path_to
from facade.programs.connect.failures import WRONG_USE, Failure, Refused
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, page
from facade.programs.console.web.visit import Visit
from facade.programs.console.web.words import moment
from schemas.vocabulary import DEFAULT_TAG

_TO: Final = ("time", "earliest", "latest")


def show(visit: Visit) -> Response:
    """What is under it now, and what may be done with it."""
    queue, name = visit.of_queue(), visit.part("tag")
    found = [tag for tag in queue["tags"] if tag["name"] == name]
    if not found:
        raise Refused(404, {"detail": f"queue {visit.queue!r} has no tag {name!r}"})
    return visit.page("tag.html", queue=queue, may=visit.may, tag=found[0], is_default=name == DEFAULT_TAG, places=_TO)


def pause(visit: Visit) -> Response:
    """Lets nobody receive under it, or lets receives go on."""
    to, reason = path_to("queues", visit.queue, "tags", visit.part("tag")), visit.given("reason")
    is_end = visit.given("what") == "resume"
    if is_end:
        visit.client.post(f"{to}/resume")
    else:
        visit.client.post(f"{to}/pause", {"reason": reason} if reason else {})
    return visit.to(path("queue", visit.queue, "tags", visit.part("tag")), done="resumed" if is_end else "paused")


def seek(visit: Visit) -> Response:
    """Has it begin anew at a time."""
    tag, to = visit.part("tag"), visit.given("to")
    if visit.given("typed") != tag:
        raise Refused(422, {"detail": f"Type the name, {tag}, to say that you mean it; nothing was changed."})
    body: dict[str, Any] = {"to": to}
    if to not in ("earliest", "latest"):
        try:
            body = {"to_ms": moment(visit.given("at"))}
        except ValueError:
            raise Failure(f"a time is YYYY-MM-DDTHH:MM:SS, given {visit.given('at')[:100]!r}", WRONG_USE) from None
        if body["to_ms"] is None:
            raise Failure("say the time to which the tag goes; nothing was changed", WRONG_USE)
    visit.client.post(path_to("queues", visit.queue, "tags", tag, "seek"), body)
    return visit.to(path("queue", visit.queue, "tags", tag), done="sought")


_TAG: Final = "/queue/{queue}/tags/{tag}"

ROUTES: Final = (
    page(_TAG, show),
    act(_TAG + "/pause", pause, show),
    act(_TAG + "/seek", seek, show),
)
