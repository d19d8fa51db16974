"""`leaseway tag`: the tags of a queue."""

from __future__ import annotations

from typing import Any

import click

from facade.programs.cli.program.command import noun, reason_option, yes_option
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import condition, filter_of, moment_ms, pairs, place, reasoned, redrive_policy
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to

command = noun("tag", REMOTE["tag"][1])
COLUMNS = ("name", "backlog", "ready", "delayed", "leased", "parked", "stored", "start_at_ms", "filter", "paused")


@command.verb("ls", "leaseway tag ls orders", "leaseway tag ls orders -o json")
@click.argument("queue", shell_complete=queue_names)
def ls(session: Session, queue: str) -> None:
    """List the tags of a queue with their counts."""
    session.rows(session.client.get(path_to("queues", queue, "tags"))["tags"], COLUMNS)


@command.verb(
    "create",
    "leaseway tag create orders billing",
    "leaseway tag create orders audit --start 0",
    "leaseway tag create orders eu --where region=eu --where kind",
)
@click.argument("queue", shell_complete=queue_names)
@click.argument("name")
@click.option(
    "--start",
    type=moment_ms,
    metavar="TIME",
    help="First moment: ISO 8601 or epoch ms; 0 = the oldest (default: now).",
)
@click.option(
    "--where",
    multiple=True,
    type=condition,
    metavar="NAME[=VALUE]",
    help="Only with this attribute; may be repeated: all hold.",
)
@click.option("--any", "either", is_flag=True, help="One of the --where is enough.")
@click.option("--read-qps", type=int, help="Receives a second; 0 = no bound.")
@click.option(
    "--dead-letter-queue", metavar="QUEUE", help="Where messages go that die under the tag (default: as in the queue)."
)
@click.option("--dead-letter-after", type=int, metavar="N", help="Deliveries before that.")
@click.option("--user-attribute", multiple=True, type=pairs, metavar="NAME=TEXT", help="May be repeated.")
def create(session: Session, queue: str, name: str, **given: Any) -> None:
    """Create a tag, a subscription of the queue. An equal one that is there is fine."""
    body = {
        "name": name,
        "start_at_ms": given["start"],
        "filter": filter_of(given["where"], either=given["either"]),
        "read_qps": given["read_qps"],
        "redrive_policy": redrive_policy(given["dead_letter_queue"], given["dead_letter_after"]),
        "user_attributes": dict(given["user_attribute"]) or None,
    }
    made = session.client.post(
        path_to("queues", queue, "tags"), {field: value for field, value in body.items() if value is not None}
    )
    session.one(made)


@command.verb("rm", "leaseway tag rm orders billing --yes")
@click.argument("queue", shell_complete=queue_names)
@click.argument("name")
@yes_option
def rm(session: Session, queue: str, name: str, *, yes: bool) -> None:
    """Delete a tag with its leases and counts."""
    session.confirm(f"delete tag {name!r} of queue {queue!r}", yes=yes)
    session.client.call("DELETE", path_to("queues", queue, "tags", name))
    session.say(f"deleted tag {name!r} of queue {queue!r}")


@command.verb(
    "seek",
    "leaseway tag seek orders billing --to 2026-11-28T09:00 --yes",
    "leaseway tag seek orders billing --to earliest --yes",
)
@click.argument("queue", shell_complete=queue_names)
@click.argument("name")
@click.option(
    "--to", required=True, type=place, metavar="TIME", help="earliest, latest, or a time: ISO 8601 or epoch ms."
)
@yes_option
def seek(session: Session, queue: str, name: str, to: dict[str, Any], *, yes: bool) -> None:
    """Have a tag begin anew: messages sent since then are received again, also those that were
    acked, and earlier ones are settled. Leases end.
    """
    session.confirm(f"seek tag {name!r} of queue {queue!r}: its leases end, and messages come again", yes=yes)
    session.one(session.client.post(path_to("queues", queue, "tags", name, "seek"), to))


@command.verb("pause", "leaseway tag pause orders billing --reason 'the ledger is closed'")
@click.argument("queue", shell_complete=queue_names)
@click.argument("name")
@reason_option
def pause(session: Session, queue: str, name: str, reason: str | None) -> None:
    """Let nobody receive under a tag; other tags and all else go on. May be repeated."""
    session.one(session.client.post(path_to("queues", queue, "tags", name, "pause"), reasoned(reason)), name="by")


@command.verb("resume", "leaseway tag resume orders billing")
@click.argument("queue", shell_complete=queue_names)
@click.argument("name")
def resume(session: Session, queue: str, name: str) -> None:
    """End a pause of a tag; its queue may still be paused."""
    session.client.post(path_to("queues", queue, "tags", name, "resume"))
    session.say(f"resumed tag {name!r} of queue {queue!r}")
