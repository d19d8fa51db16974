"""`leaseway alert`: alert policies of a queue."""

from __future__ import annotations

import click

from facade.programs.cli.program.command import noun, yes_option
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import threshold, words_of
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import Measurement, Subject

command = noun("alert", REMOTE["alert"][1])
COLUMNS = ("id", "tag", "subject", "measurement", "threshold", "firing", "since_ms")
EVENT = ("at_ms", "change", "tag", "subject", "measurement", "threshold", "value", "told", "note")

_queue = click.argument("queue", shell_complete=queue_names)


@command.verb("ls", "leaseway alert ls orders")
@_queue
@click.option("--tag", metavar="NAME", help="Only those of this tag.")
def ls(session: Session, queue: str, tag: str | None) -> None:
    """List alert policies of a queue, and whether they fire."""
    session.rows(session.client.get(path_to("queues", queue, "alerts"), tag=tag)["alerts"], COLUMNS, name="id")


@command.verb(
    "create", "leaseway alert create orders --subject queue_message_number --measurement count --threshold 1000"
)
@_queue
@click.option("--subject", type=words_of(Subject), required=True, help="What is watched.")
@click.option("--measurement", type=words_of(Measurement), required=True, help="What of it, over a minute.")
@click.option(
    "--threshold",
    type=threshold,
    required=True,
    metavar="N",
    help="Milliseconds, or a count: it fires there and above.",
)
@click.option("--tag", metavar="NAME", help="A tag of the queue (default: the queue as a whole).")
def create(session: Session, queue: str, **given: object) -> None:
    """Watch a queue or a tag, and tell its owner. An equal policy that is there is fine."""
    body = {name: value for name, value in given.items() if value is not None}
    session.one(session.client.post(path_to("queues", queue, "alerts"), body), name="id")


@command.verb("history", "leaseway alert history orders")
@_queue
def history(session: Session, queue: str) -> None:
    """List what has fired and cleared, newest first, and whether the owner was told."""
    session.rows(session.client.get(path_to("queues", queue, "alerts", "history"))["events"], EVENT, name="id")


@command.verb("rm", "leaseway alert rm orders a1f2e3d4c5b6 --yes")
@_queue
@click.argument("alert")
@yes_option
def rm(session: Session, queue: str, alert: str, *, yes: bool) -> None:
    """Take an alert policy away."""
    session.confirm(f"delete alert policy {alert!r} of queue {queue!r}", yes=yes)
    session.client.call("DELETE", path_to("queues", queue, "alerts", alert))
    session.say(f"deleted alert policy {alert!r} of queue {queue!r}")
