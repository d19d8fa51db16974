"""`leaseway user`: a user's contacts and quotas, and what they have."""

from __future__ import annotations

from typing import Any

import click

from facade.programs.cli.program.command import noun
from facade.programs.cli.program.session import Session
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to

command = noun("user", REMOTE["user"][1])

_user = click.argument("user")


@command.verb("show", "leaseway user show shop", "leaseway user show shop -o json")
@_user
def show(session: Session, user: str) -> None:
    """Show a user: contacts, quotas, and what they have. Everybody may look at their own."""
    session.one(session.client.get(path_to("users", user)))


@command.verb("contacts", "leaseway user contacts shop --email shop@example.org --webhook https://example.org/alerts")
@_user
@click.option("--display-name", metavar="TEXT", help="What people call the user.")
@click.option("--email", metavar="ADDRESS", help="Where alerts go.")
@click.option("--phone", metavar="TEXT", help="A number; the service does not use it.")
@click.option("--webhook", metavar="URL", help="Where alerts are posted.")
def contacts(session: Session, user: str, **given: str | None) -> None:
    """Note how to reach a user; what is not named stays. An empty text takes a contact away."""
    _change(session, user, "contacts", given, ("display_name", "email", "phone", "webhook"))


@command.verb("quota", "leaseway user quota shop --read-qps 2000 --queues 100")
@_user
@click.option("--read-qps", type=int, metavar="N", help="Receives a second.")
@click.option("--write-qps", type=int, metavar="N", help="Sends a second.")
@click.option("--queues", type=int, metavar="N", help="Queues.")
@click.option("--partitions", type=int, metavar="N", help="Partitions of all queues.")
@click.option("--daily-bytes", type=int, metavar="N", help="Bytes sent on a UTC day.")
@click.option("--waits", type=int, metavar="N", help="Receives that wait at a worker.")
def quota(session: Session, user: str, **given: int | None) -> None:
    """Bound what a user may use; what is not named stays, and 0 is no bound. For administrators."""
    _change(session, user, "quota", given, ("read_qps", "write_qps", "queues", "partitions", "daily_bytes", "waits"))


def _change(session: Session, user: str, part: str, given: dict[str, Any], fields: tuple[str, ...]) -> None:
    """Sets the fields that are named; the API sets them all, so the others are read first."""
    named = {name: value for name, value in given.items() if value is not None}
    if not named:
        raise click.UsageError(f"name what to change: --{', --'.join(field.replace('_', '-') for field in fields)}")
    now = session.client.get(path_to("users", user))
    session.one(
        session.client.call("PUT", path_to("users", user, part), {**{field: now[field] for field in fields}, **named})
    )
