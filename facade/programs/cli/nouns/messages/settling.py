"""Receiving messages, and settling them by their handles."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from facade.programs.cli.nouns.messages.bodies import bytes_of
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import filter_of
from facade.programs.connect.client import path_to
from facade.programs.connect.failures import FAILED, WRONG_USE, Failure

AT_ONCE = 100
DELIVERY = (
    "id",
    "receive_count",
    "sent_at_ms",
    "next_visible_at_ms",
    "group",
    "attributes",
    "body",
    "body_base64",
    "handle",
)
RESULT = ("handle", "status", "reason", "next_visible_at_ms")


def receive(session: Session, queue: str, *, ack: bool, only_body: bool, **given: Any) -> None:
    """Receives messages and prints them; then acks them, if asked to: nothing is left out then, and
    no cell is cut, since nobody can look again. Raises Failure.
    """
    if ack and not (only_body or session.shows_all):
        raise Failure(
            "--ack loses what is not printed: -o name and --columns leave something out, --body or -o json does not",
            WRONG_USE,
        )
    wait = given["wait_seconds"]
    body = {
        "tag": given["tag"],
        "max": given["max"],
        "wait_seconds": wait,
        "lease_seconds": given["lease_seconds"],
        "filter": filter_of(given["where"], either=given["either"]),
    }
    asked = {name: value for name, value in body.items() if value is not None}
    found = session.client.post(path_to("queues", queue, "receive"), asked, wait_s=60.0 if wait is None else wait)[
        "messages"
    ]
    if not found:
        session.say(f"no message came{_paused(session, queue, given['tag'])}")
    attributed = any(one.get("attributes") for one in found)
    columns = [column for column in DELIVERY if attributed or column != "attributes"]
    show(session, found, columns, name="handle", only_body=only_body, whole=ack)
    if found and ack:
        results = session.client.post(path_to("queues", queue, "ack"), {"handles": [one["handle"] for one in found]})[
            "results"
        ]
        _judge(results)


def _paused(session: Session, queue: str, tag: str | None) -> str:
    """What to say of a pause that lets nobody receive; "" = there is none, or the caller is not
    told of the queue.
    """
    try:
        found = session.client.get(path_to("queues", queue))
    except Failure:
        return ""
    pauses = [(f"queue {queue!r}", found.get("paused"))]
    for number, one in enumerate(found.get("tags", ())):
        if (tag or "default") in (one["name"], "" if number else found.get("default_tag_name")):
            pauses.append((f"tag {one['name']!r}", one.get("paused")))
    for what, pause in pauses:
        if pause:
            return f": {what} is paused by {pause['by']}{': ' if pause['reason'] else ''}{pause['reason']}"
    return ""


def show(
    session: Session,
    messages: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    name: str,
    only_body: bool,
    whole: bool = False,
) -> None:
    """Prints messages, or their bodies alone: each as it is, and a line end. If `whole`, no cell
    of a table is cut.
    """
    if not only_body:
        session.rows(messages, columns, name=name, whole=whole)
        return
    write_bodies(messages)


def write_bodies(messages: Sequence[Mapping[str, Any]]) -> None:
    """Bodies alone."""
    sys.stdout.flush()
    for message in messages:
        sys.stdout.buffer.write(bytes_of(message) + b"\n")
    sys.stdout.buffer.flush()


def settle(
    session: Session, queue: str, verb: str, handles: Sequence[str], body: Mapping[str, Any] | None = None
) -> None:
    """Does `verb` with handles, 100 in a request, and prints what became of each. Raises Failure
    when some are stale.
    """
    results: list[dict[str, Any]] = []
    try:
        for some in _parts(named(handles)):
            entries = (
                {"entries": [{"handle": handle, **(body or {})} for handle in some]}
                if verb == "extend"
                else {"handles": some, **(body or {})}
            )
            results += session.client.post(path_to("queues", queue, verb), entries)["results"]
    finally:
        if results:
            session.rows(results, RESULT, name="handle")
    _judge(results)


def named(words: Sequence[str]) -> list[str]:
    """What the arguments name; `-` is the lines of stdin."""
    found: list[str] = []
    for word in words:
        found += [line.strip() for line in sys.stdin if line.strip()] if word == "-" else [word]
    return found


def _parts(handles: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(handles), AT_ONCE):
        yield list(handles[start : start + AT_ONCE])


def _judge(results: Sequence[Mapping[str, Any]]) -> None:
    bad = [result for result in results if result["status"] != "ok"]
    if bad:
        reasons = ", ".join(sorted({f"{result['status']}: {result.get('reason', 'no reason')}" for result in bad}))
        raise Failure(f"nothing was changed by {len(bad)} of {len(results)} handle(s) ({reasons})", FAILED)
