"""`leaseway export`: queues and what belongs to them as one document."""

from __future__ import annotations

import click

from facade.programs.cli.program.command import SETTINGS, ApiCommand
from facade.programs.cli.program.session import Session
from facade.programs.cli.tools.document import PATH
from facade.programs.cli.words import REMOTE


@click.command(
    "export",
    cls=ApiCommand,
    help=f"{REMOTE['export'][1].capitalize()}, in YAML if -o says nothing else. It has no secrets.",
    context_settings=SETTINGS,
    examples=("leaseway export > queues.yaml", "leaseway export --prefix shop- -o json"),
)
@click.option("--prefix", metavar="TEXT", help="Only queues whose names begin so.")
def command(session: Session, prefix: str | None) -> None:
    """Prints the document."""
    session.printer("yaml").one(session.client.get(PATH, prefix=prefix), "version")
