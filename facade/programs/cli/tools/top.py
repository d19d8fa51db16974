"""`leaseway top`: the counts of queues, most messages first, again and again."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from facade.programs.cli.nouns.queue import COLUMNS, SORTS, counted
from facade.programs.cli.output.cells import cell
from facade.programs.cli.program.command import SETTINGS, ApiCommand
from facade.programs.cli.program.session import Session
from facade.programs.cli.words import REMOTE
from facade.programs.connect.failures import WRONG_USE, Failure, is_passing


@click.command(
    "top",
    cls=ApiCommand,
    help=f"{REMOTE['top'][1].capitalize()}.",
    context_settings=SETTINGS,
    examples=("leaseway top", "leaseway top --sort oldest --prefix shop-", "leaseway top --once -o json"),
)
@click.option("--prefix", default="", help="Only names that begin so.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="backlog",
    show_default=True,
    help="The greatest number, or the oldest message, first.",
)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Show N queues.")
@click.option(
    "--every", type=click.FloatRange(0.5), default=2.0, show_default=True, metavar="SECONDS", help="Look so often."
)
@click.option("--once", is_flag=True, help="Look once and print that, as other commands do.")
def command(session: Session, prefix: str, sort: str, limit: int, every: float, *, once: bool) -> None:
    """Shows them."""
    if not every <= 86_400:
        raise click.BadParameter(f"is at most 86400, given {every:g}", param_hint="--every")
    if not once and not sys.stdout.isatty():
        raise Failure("it is drawn at a terminal; --once prints it", WRONG_USE)
    if once:
        session.rows(counted(session.client, prefix, sort, limit), COLUMNS)
        return
    _drawn(session, prefix, sort, limit, every)


def _drawn(session: Session, prefix: str, sort: str, limit: int, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    title = ""
    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            try:
                rows = list(counted(session.client, prefix, sort, limit))
                title = f"{session.client.connection.endpoint}, {time.strftime('%H:%M:%S')}, by {sort}"
                live.update(_table(rows, title), refresh=True)
            except Failure as failure:
                if not is_passing(failure) or not title:
                    raise
                live.update(_table([], f"{title}: {failure}"), refresh=True)
            time.sleep(every)


def _table(rows: list[dict[str, Any]], title: str) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "name" else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(name, row[name])) for name in COLUMNS))
    return table
