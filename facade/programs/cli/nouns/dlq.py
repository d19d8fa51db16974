"""`leaseway dlq`: dead-letter queues and what is in them."""

from __future__ import annotations

from typing import Any

import click

from facade.programs.cli.nouns.messages import letters, looking, settling
from facade.programs.cli.nouns.queue import COLUMNS, counted
from facade.programs.cli.program.command import noun
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import condition, moment_ms, words_of
from facade.programs.cli.words import REMOTE
from schemas.vocabulary import DEATHS, MessageState

command = noun("dlq", REMOTE["dlq"][1])
LETTER = (
    "id",
    "origin.original_queue",
    "origin.reason",
    "origin.note",
    "origin.receive_count",
    "origin.moved_at_ms",
    "body",
    "body_base64",
)


@command.verb("ls", "leaseway dlq ls", "leaseway dlq ls --prefix shop- -o json")
@click.option("--prefix", default="", help="Only names that begin so.")
def ls(session: Session, prefix: str) -> None:
    """List dead-letter queues with what was counted in them; `queue show` says whose they are."""
    session.rows(counted(session.client, prefix, "name", None, dead_letters=True), COLUMNS)


@command.verb("show", "leaseway dlq show orders.dead", "leaseway dlq show orders.dead --limit 1000 -o jsonl")
@click.argument("queue", shell_complete=queue_names)
@click.option(
    "--state",
    type=words_of(MessageState),
    default="ready",
    show_default=True,
    help="Those beyond what is in hand are stored.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most N dead letters."
)
@click.option("--body", "only_body", is_flag=True, help="Print bodies alone: each as it is, and a line end.")
def show(session: Session, queue: str, state: str, limit: int, *, only_body: bool) -> None:
    """Show dead letters: where they came from and why they died. Nothing is counted."""
    rows = list(looking.say_masked(session, looking.query(session, queue, limit, state=state)))
    settling.show(session, rows, LETTER, name="id", only_body=only_body)


@command.verb(
    "redrive",
    "leaseway dlq redrive orders.dead --wait",
    "leaseway dlq redrive orders.dead ID ID --to orders-2",
    "leaseway dlq redrive orders.dead --reason exhausted --text 4711 --dry-run",
    "leaseway dlq redrive --all --source orders --since 2026-11-27T22:00 --wait",
    "leaseway dlq show orders.dead -o name | leaseway dlq redrive orders.dead - --rate 50",
)
@click.argument("queue", required=False, shell_complete=queue_names)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="All dead-letter queues that you may redrive, or those of the ids: a task for each.",
)
@click.option(
    "--to",
    metavar="QUEUE",
    shell_complete=queue_names,
    help="Where to send them (default: each to where it came from).",
)
@click.option(
    "--where",
    multiple=True,
    type=condition,
    metavar="NAME[=VALUE]",
    help="Only with this attribute; may be repeated: all hold.",
)
@click.option("--any", "either", is_flag=True, help="One of the --where is enough.")
@click.option("--reason", type=words_of(DEATHS), help="Only what died of it.")
@click.option("--source", metavar="QUEUE", shell_complete=queue_names, help="Only what died in this queue.")
@click.option("--since", type=moment_ms, metavar="TIME", help="Only what came there at or after: ISO 8601 or epoch ms.")
@click.option("--until", type=moment_ms, metavar="TIME", help="Only what came there before.")
@click.option("--text", metavar="TEXT", help="Only text bodies that have this in them.")
@click.option("--ignore-case", is_flag=True, help="With --text: in capitals or not.")
@click.option("--rate", type=int, metavar="N", help="At most N a second (default: no bound).")
@click.option("--dry-run", is_flag=True, help="Only show how many would be moved.")
@click.option("--wait", is_flag=True, help="Wait until all are moved, or for --timeout.")
def redrive(session: Session, **given: Any) -> None:
    """Start a task that moves dead letters: all, or those for which all holds that is given. `-`
    reads ids from stdin. `leaseway task outcomes` says what came of each.
    """
    letters.redrive(session, **given)
