"""`leaseway apply`: makes true what a document says."""

from __future__ import annotations

import click

from facade.programs.cli.program.command import SETTINGS, ApiCommand, yes_option
from facade.programs.cli.program.session import Session
from facade.programs.cli.tools.document import COLUMNS, Change, document_options, put, read
from facade.programs.cli.words import REMOTE

# What a question names before it says how many more there are.
NAMED = 5


@click.command(
    "apply",
    cls=ApiCommand,
    help=f"{REMOTE['apply'][1].capitalize()}. What the file does not name stays; it may be applied again.",
    context_settings=SETTINGS,
    examples=(
        "leaseway apply -f queues.yaml --dry-run",
        "leaseway apply -f queues.yaml --prune tags --prune grants --yes",
    ),
)
@document_options
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@yes_option
def command(session: Session, file: str, prune: tuple[str, ...], *, dry_run: bool, yes: bool) -> None:
    """Applies the document, and prints what was done."""
    document = read(file)
    if prune and not dry_run:
        gone = [change for change in put(session, document, prune, dry_run=True) if change["action"] == "delete"]
        if gone:
            more = f" and {len(gone) - NAMED} more" if len(gone) > NAMED else ""
            session.confirm(f"delete {', '.join(map(_named, gone[:NAMED]))}{more}", yes=yes)
    changes = put(session, document, prune, dry_run=dry_run)
    session.rows(changes, COLUMNS)
    session.say(f"{len(changes)} {'change(s) to make' if dry_run else 'change(s) made'}")


def _named(change: Change) -> str:
    of = f"{change['queue']}/" if change["queue"] else ""
    return f"{change['kind']} {of + change['name']!r}"
