"""Redriving dead letters, looking at what came of each, and sending edited copies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from facade.programs.cli.nouns.messages import settling
from facade.programs.cli.nouns.messages.bodies import from_arguments
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import filter_of
from facade.programs.cli.program.waiting import ended, judge
from facade.programs.connect.client import path_to
from facade.programs.connect.failures import Failure

TASK = ("id", "status", "source", "destination", "moved", "failed", "total", "created_at_ms")
PREVIEW = ("source", "moved", "failed", "scanned", "cut")
EVENT = ("at_ms", "kind", "tag", "receive_count", "until_ms", "reason", "by", "task", "queue", "id")
OUTCOME = ("id", "outcome", "queue", "moved_id")


def redrive(
    session: Session, queue: str | None, ids: Sequence[str], *, every: bool, dry_run: bool, wait: bool, **given: Any
) -> None:
    """Starts a task, or with `every` one for each dead-letter queue; or shows what they would
    do.
    """
    if every and queue is not None:
        ids, queue = (queue, *ids), None
    if not every and queue is None:
        raise click.UsageError("name the dead-letter queue, or say --all")
    chosen = settling.named(ids)
    if ids and not chosen:
        session.say("stdin names no message, so nothing is moved")
        return
    body = _body(chosen, given)
    path = path_to("redrive") if queue is None else path_to("queues", queue, "redrive")
    if dry_run:
        body.pop("rate", None)
        found = session.client.post(f"{path}/preview", body)
        _show_previews(session, [found] if queue is not None else found["previews"])
        return
    started = session.client.post(path, body)
    tasks = started["tasks"] if queue is None else [started]
    if wait:
        tasks = [ended(session, task) for task in tasks]
    if queue is None:
        session.rows(tasks, TASK, name="id")
    else:
        session.one(tasks[0], name="id")
    if wait:
        for task in tasks:
            judge(task)


def _body(chosen: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    body = {
        "ids": list(chosen) or None,
        "destination": given["to"],
        "filter": filter_of(given["where"], either=given["either"]),
        "from": given["since"],
        "to": given["until"],
        "ignore_case": given["ignore_case"] or None,
        **{name: given[name] for name in ("reason", "source", "text", "rate")},
    }
    return {name: value for name, value in body.items() if value is not None}


def _show_previews(session: Session, previews: list[dict[str, Any]]) -> None:
    session.rows(previews, PREVIEW, name="source")
    if any(preview["cut"] for preview in previews):
        session.say("there are more letters than a dry run reads: the numbers are those of the first ones")


def outcomes(session: Session, task: str, words: Sequence[str], limit: int | None) -> None:
    """Prints what came of each letter of a task, or of those with these outcomes."""
    path = path_to("tasks", task, "outcomes")
    found: list[dict[str, Any]] = []
    place, complete = None, True
    while True:
        page = session.client.get(path, next=place, limit=1000)
        found += [letter for letter in page["letters"] if not words or letter["outcome"] in words]
        place, complete = page["next"], page["complete"]
        if place is None or (limit is not None and len(found) >= limit):
            break
    session.rows(found[:limit], OUTCOME, name="id")
    if not complete:
        session.say("the task came to more letters than it keeps the outcomes of")


def copy(
    session: Session, queue: str, id: str, body: str | None, file: Path | None, *, remove: bool, **given: Any
) -> None:
    """Sends an edited copy of a message, and prints what was sent."""
    if body is not None and file is not None:
        raise click.UsageError("give a BODY or --file FILE, not both")
    (edited,) = [*from_arguments([] if body is None else [body], [] if file is None else [file])] or [{}]
    fields = {
        **edited,
        "destination": given["to"],
        "attributes": dict(given["attribute"]) or None,
        "group": given["group"],
        "dedup_id": given["dedup_id"],
        "remove": remove or None,
    }
    path = path_to("queues", queue, "messages", id, "copy")
    sent = session.client.post(path, {name: value for name, value in fields.items() if value is not None})
    session.one(sent, name="id")
    if remove and sent["removed"] is None:
        raise Failure(
            f"the copy {sent['id']} was sent; whether message {id} was deleted is not known: "
            "look with `leaseway message show`"
        )
    if remove and not sent["removed"]:
        raise Failure(f"the copy {sent['id']} was sent, and message {id} was not deleted: it is leased, or settled")


def events(session: Session, queue: str, id: str, tag: str | None) -> None:
    """Prints what happened to a message, oldest first; says on stderr what is not known."""
    found: list[dict[str, Any]] = []
    place = None
    while True:
        page = session.client.get(path_to("queues", queue, "messages", id, "events"), tag=tag, next=place)
        found += page["events"]
        place = page["next"]
        if place is None:
            break
    session.rows(found, EVENT, name="kind")
    if not page["complete"]:
        session.say(f"the journal does not have all; what happened before {page['since_ms']} (epoch ms) is not known")
