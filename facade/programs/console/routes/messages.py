"""Messages: looking without receiving, one of them, sending, and letting dead ones live again."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.client import path_to
from facade.programs.connect.failures import NOT_ALLOWED, WRONG_USE, Failure
from facade.programs.console.web.fields import notes_of
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, page
from facade.programs.console.web.visit import Visit
from facade.programs.console.web.words import moment
from schemas.vocabulary import DEATHS, DEFAULT_TAG, MessageState, Verb

PAGE: Final = 50
_STATES: Final = tuple(state.value for state in MessageState)


def _search(visit: Visit, state: str) -> dict[str, Any]:
    """A page of messages as the address asks for them."""
    tag, wanted = visit.asked("tag"), visit.asked("state", state)
    attributes = [line.strip() for line in visit.asked("attribute").splitlines() if line.strip()]
    found = visit.of_queue(
        "messages",
        tag=tag or None,
        state=wanted or None,
        attribute=attributes or None,
        text=visit.asked("text") or None,
        ignore_case="true" if visit.asked("text") and visit.asked("ignore_case") else None,
        next=visit.asked("next") or None,
        limit=PAGE,
        **{"from": _time(visit.asked("from")), "to": _time(visit.asked("to"))},
    )
    kept = {name: visit.asked(name) for name in ("tag", "attribute", "text", "ignore_case", "from", "to")}
    read = {"scanned": found["scanned"], "cut": found["cut"]}
    return {
        "messages": found["messages"],
        "next": found["next"],
        **read,
        "asked": {**kept, "state": wanted},
        "states": _STATES,
    }


def show(visit: Visit) -> Response:
    """Messages that fit, none of them received; with an id, that one."""
    if wanted := visit.asked("id"):
        return visit.to(path("queue", visit.queue, "messages", wanted), tag=visit.asked("tag"))
    return visit.page("messages.html", queue=visit.seen, may=visit.may, **_search(visit, ""))


def one(visit: Visit) -> Response:
    """What is known of a message."""
    tag = visit.asked("tag")
    message = visit.of_queue("messages", visit.part("message"), tag=tag or None)
    return visit.page(
        "message.html", queue=visit.seen, may=visit.may, message=message, tag=tag, default_tag=DEFAULT_TAG
    )


def life(visit: Visit) -> Response:
    """What happened to a message."""
    message, tag = visit.part("message"), visit.asked("tag")
    found = visit.of_queue("messages", message, "events", tag=tag or None, next=visit.asked("next") or None)
    return visit.page("life.html", queue=visit.seen, may=visit.may, id=message, tag=tag, found=found)


def change(visit: Visit) -> Response:
    """Deletes a message that is not leased, calls a delayed one off, or sends a copy of one."""
    to = path_to("queues", visit.queue, "messages", visit.part("message"))
    if visit.given("what") == "copy":
        visit.client.post(f"{to}/copy")
        return visit.to(path("queue", visit.queue, "messages", visit.part("message")), done="sent")
    if visit.given("what") == "cancel":
        visit.client.post(f"{to}/cancel")
    else:
        visit.client.call("DELETE", to)
    return visit.to(
        path("queue", visit.queue, "messages"), done="cancelled" if visit.given("what") == "cancel" else "deleted"
    )


def write(visit: Visit) -> Response:
    """The form of a new message; of a copy of one, with what that has."""
    copied = visit.asked("copy")
    message = visit.of_queue("messages", copied) if copied else {}
    if message.get("masked"):
        raise Failure("a masked message can't be edited: a copy would be without what is hidden of it", NOT_ALLOWED)
    return visit.page("send.html", queue=visit.seen, may=visit.may, message=message)


def send(visit: Visit) -> Response:
    """Sends a message, or one for each line; shows it to who may look at it."""
    may = visit.may
    common: dict[str, Any] = {}
    if attributes := notes_of(visit.text("attributes")):
        common["attributes"] = attributes
    for name in ("group", "dedup_id"):
        if given := visit.given(name):
            common[name] = given
    for name, kind in (("delay_seconds", float), ("priority", int)):
        if given := visit.given(name):
            common[name] = _number(name, given, kind)
    text = visit.text("body")
    bodies = [line for line in text.split("\n") if line] if visit.given("lines") else [text]
    found = visit.client.post(
        path_to("queues", visit.queue, "messages"), {"messages": [{**common, "body": body} for body in bodies]}
    )
    sent = [message["id"] for message in found["messages"]]
    if len(sent) == 1 and Verb.PEEK in may:
        return visit.to(path("queue", visit.queue, "messages", sent[0]), done="sent")
    return visit.to(path("queue", visit.queue, "messages" if Verb.QUERY in may else "send"), done="sent")


def letters(visit: Visit) -> Response:
    """Dead letters of a queue, to choose those that are to live again; their causes, for who may
    look at whole messages: a cause is told by what their bodies have in common.
    """
    may_see = Verb.QUERY in visit.may and (Verb.UNMASK in visit.may or visit.seen.get("mask") == [])
    report = visit.site.reports.newest() if may_see else None
    return visit.page(
        "letters.html", queue=visit.seen, may=visit.may, reasons=DEATHS, report=report, **_search(visit, "ready")
    )


def redrive(visit: Visit) -> Response:
    """Starts a task that moves the chosen ones, or all that fit, or says what it would do."""
    is_dry, which = visit.given("which").startswith("try_"), visit.given("which").removeprefix("try_")
    body: dict[str, Any] = {} if is_dry else {"rate": _number("rate", visit.given("rate") or "0", int)}
    if which != "all":
        if not visit.each("id"):
            raise Failure("choose dead letters, or all of them; nothing was moved", WRONG_USE)
        body["ids"] = visit.each("id")
    for name in ("destination", "reason", "source", "text"):
        if visit.given(name):
            body[name] = visit.given(name)
    if is_dry:
        found = visit.client.post(path_to("queues", visit.queue, "redrive", "preview"), body)
        return visit.page("preview.html", queue=visit.seen, may=visit.may, found=found, which=which)
    task = visit.client.post(path_to("queues", visit.queue, "redrive"), body)
    return visit.to(path("tasks", task["id"]))


def _time(text: str) -> int | None:
    try:
        return moment(text)
    except ValueError:
        raise Failure(f"a time is YYYY-MM-DDTHH:MM:SS, given {text[:100]!r}", WRONG_USE) from None


def _number(name: str, text: str, kind: type[float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise Failure(f"{name} is a number, given {text[:100]!r}", WRONG_USE) from None


_QUEUE: Final = "/queue/{queue}"

ROUTES: Final = (
    page(_QUEUE + "/messages", show),
    page(_QUEUE + "/messages/{message}", one),
    page(_QUEUE + "/messages/{message}/life", life),
    act(_QUEUE + "/messages/{message}", change, one),
    page(_QUEUE + "/send", write),
    act(_QUEUE + "/send", send, write),
    page(_QUEUE + "/letters", letters),
    act(_QUEUE + "/letters", redrive, letters),
)
