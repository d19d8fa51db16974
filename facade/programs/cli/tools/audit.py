"""`leaseway audit`: who has asked for what, and what came of it."""

from __future__ import annotations

from typing import Any

import click

from facade.programs.cli.program.command import noun
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import moment_ms, words_of
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import Verb

command = noun("audit", REMOTE["audit"][1])
COLUMNS = ("at_ms", "principal", "key_id", "peer", "operation", "queue", "tag", "subject", "outcome", "status", "error")


@command.verb(
    "ls",
    "leaseway audit ls",
    "leaseway audit ls --queue orders --verb purge --since 2026-11-27T22:00",
    "leaseway audit ls --principal shop --limit 1000 -o jsonl",
)
@click.option("--principal", metavar="NAME", help="Only what this principal has asked.")
@click.option("--queue", metavar="QUEUE", shell_complete=queue_names, help="Only what was asked of this queue.")
@click.option("--verb", type=words_of(Verb), help="Only this.")
@click.option(
    "--since", "from_ms", type=moment_ms, metavar="TIME", help="Only what was noted at or after: ISO 8601 or epoch ms."
)
@click.option("--until", "to", type=moment_ms, metavar="TIME", help="Only what was noted before.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="At most N records.")
def ls(session: Session, from_ms: int | None, limit: int, **asked: Any) -> None:
    """List changes and refusals, newest first; for administrators."""
    asked["from"] = from_ms
    session.rows(
        session.client.entries(path_to("audit"), "records", after="cursor", limit=limit, **asked), COLUMNS, name="id"
    )
