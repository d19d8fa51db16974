"""`leaseway diff`: what a document would change."""

from __future__ import annotations

import click

from facade.programs.cli.program.command import SETTINGS, ApiCommand
from facade.programs.cli.program.session import Session
from facade.programs.cli.tools.document import COLUMNS, document_options, put, read
from facade.programs.cli.words import REMOTE
from facade.programs.connect.failures import FAILED, Failure


@click.command(
    "diff",
    cls=ApiCommand,
    help=f"{REMOTE['diff'][1].capitalize()}. The exit status is 1 where something differs.",
    context_settings=SETTINGS,
    examples=("leaseway diff -f queues.yaml", "leaseway export | leaseway diff -f - --profile other"),
)
@document_options
def command(session: Session, file: str, prune: tuple[str, ...]) -> None:
    """Prints what differs."""
    changes = put(session, read(file), prune, dry_run=True)
    session.rows(changes, COLUMNS)
    if changes:
        raise Failure(f"{len(changes)} difference(s)", FAILED)
