"""One queue: what is in it now, its settings and tags, and the end of it."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.client import path_to
from facade.programs.connect.failures import WRONG_USE, Failure, Refused
from facade.programs.console.web.fields import fields, notes_of, settings_of, typed
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, live, page
from facade.programs.console.web.visit import Visit
from schemas.vocabulary import Verb

# Requests of the last hour, minute by minute: what the chart shows.
SERIES: Final = ("send_request.messages", "receive_request.messages", "delete_request.messages")


def _now(visit: Visit) -> dict[str, Any]:
    queue = visit.of_queue()
    names = ("backlog", "ready", "delayed", "leased", "parked", "stored")
    totals = {name: sum(tag[name] for tag in queue["tags"]) for name in names}
    return {"queue": queue, "may": visit.may, "totals": totals}


def show(visit: Visit) -> Response:
    """What is in it now; what may be done with it, for who may not see that."""
    if Verb.GET_QUEUE not in visit.may:
        return visit.page("unseen.html", queue=visit.seen, may=visit.may)
    return visit.page("queue.html", **_now(visit))


def part(visit: Visit) -> Response:
    """What of that changes."""
    return visit.fragment("parts/queue.html", **_now(visit))


def chart(visit: Visit) -> Response:
    """Requests of the last hour, as a table that is drawn where scripts run."""
    found = [visit.of_queue("metrics", metric=metric)["points"] for metric in SERIES]
    by_time = [{point["at_ms"]: point["value"] for point in points} for points in found]
    times = sorted({at for one in by_time for at in one})
    rows = [(at, [one.get(at, 0) for one in by_time]) for at in times]
    return visit.fragment(
        "parts/chart.html", queue_name=visit.queue, names=[name.partition("_")[0] for name in SERIES], rows=rows
    )


def settings(visit: Visit) -> Response:
    """The form of its settings."""
    queue = visit.of_queue()
    return visit.page("settings.html", queue=queue, may=visit.may, fields=typed(visit, fields(queue)))


def change(visit: Visit) -> Response:
    """Changes what differs."""
    named = settings_of(visit, visit.of_queue())
    if named:
        visit.client.call("PATCH", path_to("queues", visit.queue), named)
    return visit.to(path("queue", visit.queue, "settings"), done="changed" if named else "nothing")


def set_policy(visit: Visit) -> Response:
    """Says where messages go that die, or that they go nowhere."""
    to = path_to("queues", visit.queue, "redrive-policy")
    if visit.given("dead_letter_queue"):
        count = _whole(visit.given("max_receive_count"), "deliveries")
        visit.client.call(
            "PUT", to, {"dead_letter_queue": visit.given("dead_letter_queue"), "max_receive_count": count}
        )
    else:
        visit.client.call("DELETE", to)
    return visit.to(path("queue", visit.queue, "settings"), done="changed")


def add_tag(visit: Visit) -> Response:
    """Makes a tag."""
    starts = {"now": -1, "oldest": 0}
    body: dict[str, Any] = {"name": visit.given("name"), "start_at_ms": starts.get(visit.given("start"), -1)}
    if conditions := notes_of(visit.given("filter")):
        body["filter"] = {
            "operator": "AND",
            "conditions": [{"name": name, "value": value} for name, value in conditions.items()],
        }
    visit.client.post(path_to("queues", visit.queue, "tags"), body)
    return visit.to(path("queue", visit.queue), done="added")


def copy(visit: Visit) -> Response:
    """Makes a queue like it."""
    made = visit.client.post(path_to("queues", visit.queue, "copy"), {"target": visit.given("target")})
    return visit.to(path("queue", made["name"]), done="created")


# What cannot be undone has a page of its own, which says how many, and wants the name typed.


def _asking(visit: Visit, what: str, verb: str, name: str, **more: Any) -> Response:
    queue = visit.of_queue()
    return visit.page(
        "asking.html", queue=queue, may=visit.may, what=what, verb=verb, name=name, to=visit.request.url.path, **more
    )


def pause(visit: Visit) -> Response:
    """Lets nobody receive, or lets receives go on."""
    to = path_to("queues", visit.queue)
    if visit.given("what") == "resume":
        visit.client.post(f"{to}/resume")
        return visit.to(path("queue", visit.queue), done="resumed")
    reason = visit.given("reason")
    visit.client.post(f"{to}/pause", {"reason": reason} if reason else {})
    return visit.to(path("queue", visit.queue), done="paused")


def ask_purge(visit: Visit) -> Response:
    """Before a purge."""
    return _asking(visit, "Purge", "purge", visit.queue)


def ask_delete(visit: Visit) -> Response:
    """Before the queue is deleted."""
    return _asking(visit, "Delete", "delete_queue", visit.queue)


def ask_delete_tag(visit: Visit) -> Response:
    """Before a tag is deleted."""
    return _asking(visit, "Delete tag", "delete_tag", visit.part("tag"), tag=visit.part("tag"))


def purge(visit: Visit) -> Response:
    """Settles all that was sent so far."""
    _typed(visit, visit.queue)
    visit.client.post(path_to("queues", visit.queue, "purge"))
    return visit.to(path("queue", visit.queue), done="purged")


def delete(visit: Visit) -> Response:
    """Deletes it and its messages."""
    _typed(visit, visit.queue)
    visit.client.call("DELETE", path_to("queues", visit.queue))
    return visit.to("/queues", done="deleted")


def delete_tag(visit: Visit) -> Response:
    """Deletes a tag with its leases and counts."""
    _typed(visit, visit.part("tag"))
    visit.client.call("DELETE", path_to("queues", visit.queue, "tags", visit.part("tag")))
    return visit.to(path("queue", visit.queue), done="deleted")


def parked(visit: Visit) -> Response:
    """Groups of a FIFO queue that wait for somebody."""
    tag, after = visit.asked("tag"), visit.asked("next")
    found = visit.of_queue("parked", tag=tag or None, next=after or None)
    return visit.page(
        "parked.html", queue=visit.seen, may=visit.may, groups=found["groups"], next=found["next"], tag=tag
    )


def unpark(visit: Visit) -> Response:
    """Goes on with a parked group."""
    tag = visit.given("tag")
    body = {"group": visit.text("group"), "kill": visit.given("what") == "kill", **({"tag": tag} if tag else {})}
    found = visit.client.post(path_to("queues", visit.queue, "unpark"), body)
    return visit.to(
        path("queue", visit.queue, "parked"), tag=tag, done="unparked" if found["unparked"] else "not_parked"
    )


def _typed(visit: Visit, name: str) -> None:
    if visit.given("typed") != name:
        raise Refused(422, {"detail": f"Type the name, {name}, to say that you mean it; nothing was changed."})


def _whole(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Failure(f"{what}: a whole number, given {text[:100]!r}", WRONG_USE)
    return int(text)


_QUEUE: Final = "/queue/{queue}"

ROUTES: Final = (
    page(_QUEUE, show),
    live("/live" + _QUEUE, part),
    live("/chart" + _QUEUE, chart),
    page(_QUEUE + "/settings", settings),
    act(_QUEUE + "/settings", change, settings),
    act(_QUEUE + "/redrive-policy", set_policy, settings),
    act(_QUEUE + "/tags", add_tag, show),
    act(_QUEUE + "/copy", copy, show),
    act(_QUEUE + "/pause", pause, show),
    page(_QUEUE + "/purge", ask_purge),
    act(_QUEUE + "/purge", purge, ask_purge),
    page(_QUEUE + "/delete", ask_delete),
    act(_QUEUE + "/delete", delete, ask_delete),
    page(_QUEUE + "/tags/{tag}/delete", ask_delete_tag),
    act(_QUEUE + "/tags/{tag}/delete", delete_tag, ask_delete_tag),
    page(_QUEUE + "/parked", parked),
    act(_QUEUE + "/parked", unpark, parked),
)
