"""`leaseway queue`: queues, their settings and counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from facade.programs.cli.program.command import Noun, noun, reason_option, yes_option
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.each import each
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.settings import SettingsCommand
from facade.programs.cli.program.values import reasoned
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import Client, path_to
from facade.programs.connect.failures import Refused

command: Noun = noun("queue", REMOTE["queue"][1])
COLUMNS = ("name", "backlog", "ready", "delayed", "leased", "parked", "stored", "oldest_at_ms", "as_of_ms", "paused")
# As the engine has them (rules/limits.py), which would take longer to import than all else.
SORTS = ("name", "backlog", "ready", "delayed", "leased", "parked", "stored", "oldest")


def counted(
    client: Client, prefix: str, sort: str, limit: int | None, *, dead_letters: bool = False
) -> Iterator[dict[str, Any]]:
    """What is in queues, or in those for dead letters, by an order of SORTS, at most `limit`."""
    return client.entries(
        "/v1/queues",
        "counts",
        after="cursor",
        limit=limit,
        counts="true",
        sort=sort,
        prefix=prefix or None,
        dead_letters="true" if dead_letters else None,
    )


@command.verb(
    "ls", "leaseway queue ls", "leaseway queue ls --prefix shop- --sort oldest --limit 20", "leaseway queue ls -o name"
)
@click.option("--prefix", default="", help="Only names that begin so.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N queues (default: all).")
@click.option("--counts", is_flag=True, help="Show how many messages are in them, over all tags, and as of when.")
@click.option(
    "--sort", type=click.Choice(SORTS), help="With counts: the greatest number, or the oldest message, first."
)
def ls(session: Session, prefix: str, limit: int | None, sort: str | None, *, counts: bool) -> None:
    """List queues."""
    if counts or sort:
        session.rows(counted(session.client, prefix, sort or "name", limit), COLUMNS)
        return
    names = session.client.entries("/v1/queues", "queues", after="after", limit=limit, prefix=prefix or None)
    session.rows(({"name": name} for name in names), COLUMNS[:1])


@command.verb("show", "leaseway queue show orders", "leaseway queue show orders -o yaml")
@click.argument("queue", shell_complete=queue_names)
def show(session: Session, queue: str) -> None:
    """Show a queue: its settings, its tags and their counts."""
    session.one(session.client.get(path_to("queues", queue)))


@command.verb(
    "create",
    "leaseway queue create orders",
    "leaseway queue create orders --lease-seconds 60 --dead-letter-queue orders.dead --dead-letter-after 5",
    "leaseway queue create orders.dead --dead-letter",
    "leaseway queue create payments --fifo --content-dedup",
    cls=SettingsCommand.to_create,
)
@click.argument("name")
def create(session: Session, name: str, settings: dict[str, Any]) -> None:
    """Create a queue. An equal one that is there is fine."""
    session.one(session.client.post("/v1/queues", {"name": name, **settings}))


@command.verb(
    "set",
    "leaseway queue set orders --lease-seconds 120",
    "leaseway queue set orders --no-redrive-policy",
    cls=SettingsCommand.to_change,
)
@click.argument("queue", shell_complete=queue_names)
@click.option("--no-redrive-policy", is_flag=True, help="Let no message go to a dead-letter queue.")
def change(session: Session, queue: str, settings: dict[str, Any], *, no_redrive_policy: bool) -> None:
    """Change settings of a queue; the others stay."""
    if not settings and not no_redrive_policy:
        raise click.UsageError("name a setting to change, such as --lease-seconds 60")
    if no_redrive_policy and "redrive_policy" in settings:
        raise click.UsageError("--no-redrive-policy and --dead-letter-queue exclude each other")
    path = path_to("queues", queue)
    changed: Any = session.client.call("PATCH", path, settings) if settings else None
    if no_redrive_policy:
        # Last: a setting that is refused must not cost the queue its policy.
        session.client.call("DELETE", path_to("queues", queue, "redrive-policy"))
        changed = session.client.get(path)
    session.one(changed)


@command.verb(
    "rm", "leaseway queue rm orders", "leaseway queue ls --prefix test- -o name | xargs leaseway queue rm --yes"
)
@click.argument("queues", nargs=-1, required=True, metavar="QUEUE...", shell_complete=queue_names)
@yes_option
def rm(session: Session, queues: tuple[str, ...], *, yes: bool) -> None:
    """Delete queues and their messages."""
    for name in queues:
        session.confirm(f"delete queue {name!r}{'' if yes else _content(session, name)}", yes=yes)

    def delete(name: str) -> None:
        session.client.call("DELETE", path_to("queues", name))
        session.say(f"deleted queue {name!r}")

    each(session, queues, delete)


@command.verb("purge", "leaseway queue purge orders --yes")
@click.argument("queue", shell_complete=queue_names)
@yes_option
def purge(session: Session, queue: str, *, yes: bool) -> None:
    """Settle all messages sent so far, under all tags."""
    session.confirm(f"purge queue {queue!r}{'' if yes else _content(session, queue)}", yes=yes)
    session.client.post(path_to("queues", queue, "purge"))
    session.say(f"purged queue {queue!r}")


@command.verb("pause", "leaseway queue pause orders --reason 'the database is down'")
@click.argument("queue", shell_complete=queue_names)
@reason_option
def pause(session: Session, queue: str, reason: str | None) -> None:
    """Let nobody receive from a queue, under any tag; all else goes on. May be repeated."""
    session.one(session.client.post(path_to("queues", queue, "pause"), reasoned(reason)), name="by")


@command.verb("resume", "leaseway queue resume orders")
@click.argument("queue", shell_complete=queue_names)
def resume(session: Session, queue: str) -> None:
    """End a pause of a queue; tags that are paused by themselves stay so."""
    session.client.post(path_to("queues", queue, "resume"))
    session.say(f"resumed queue {queue!r}")


@command.verb("copy", "leaseway queue copy orders orders-2")
@click.argument("queue", shell_complete=queue_names)
@click.argument("target")
def copy(session: Session, queue: str, target: str) -> None:
    """Create the queue TARGET with the settings and tags of QUEUE, without its messages,
    rights and redrive policies.
    """
    session.one(session.client.post(path_to("queues", queue, "copy"), {"target": target}))


@command.verb("parked", "leaseway queue parked steps", "leaseway queue parked steps --tag billing -o json")
@click.argument("queue", shell_complete=queue_names)
@click.option("--tag", metavar="NAME", help="Under this tag (default: the default tag).")
def parked(session: Session, queue: str, tag: str | None) -> None:
    """List the parked groups of a FIFO queue, with the messages that have parked them."""
    columns = ("group", "message_id", "receive_count", "held", "expires_at_ms")
    session.rows(session.client.entries(path_to("queues", queue, "parked"), "groups", tag=tag), columns, name="group")


@command.verb("unpark", "leaseway queue unpark steps user-17", "leaseway queue unpark steps user-17 --kill")
@click.argument("queue", shell_complete=queue_names)
@click.argument("group")
@click.option("--tag", metavar="NAME", help="Under this tag (default: the default tag).")
@click.option(
    "--kill", is_flag=True, help="Send its first message to the dead-letter queue; else it is received again."
)
def unpark(session: Session, queue: str, group: str, tag: str | None, *, kill: bool) -> None:
    """Go on with a parked group of a FIFO queue; may be repeated."""
    body = {"group": group, "kill": kill, **({"tag": tag} if tag else {})}
    found = session.client.post(path_to("queues", queue, "unpark"), body)
    session.say(
        f"group {group!r} goes on" if found["unparked"] else f"group {group!r} was not parked; nothing was changed"
    )


def _content(session: Session, queue: str) -> str:
    """How many messages a question is about, if that is known; it need not be without one."""
    if not session.can_ask:
        return ""
    try:
        tags = session.client.get(path_to("queues", queue))["tags"]
    except Refused:
        return ""
    return f" with {sum(tag['backlog'] for tag in tags)} messages under {len(tags)} tag(s)"
