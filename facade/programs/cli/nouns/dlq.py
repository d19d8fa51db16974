"""`leaseway dlq`: dead-letter queues and what is in them."""

from __future__ import annotations

from typing import Any

import click

from facade.programs.cli.nouns.messages import looking, settling
from facade.programs.cli.nouns.queue import COLUMNS, counted
from facade.programs.cli.program.command import noun
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import condition, filter_of, words_of
from facade.programs.cli.program.waiting import ended, judge
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import MessageState

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
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most N dead letters.")
@click.option("--body", "only_body", is_flag=True, help="Print bodies alone: each as it is, and a line end.")
def show(session: Session, queue: str, state: str, limit: int, *, only_body: bool) -> None:
    """Show dead letters: where they came from and why they died. Nothing is counted."""
    rows = list(looking.query(session, queue, limit, state=state))
    settling.show(session, rows, LETTER, name="id", only_body=only_body)


@command.verb(
    "redrive",
    "leaseway dlq redrive orders.dead --wait",
    "leaseway dlq redrive orders.dead ID ID --to orders-2",
    "leaseway dlq show orders.dead -o name | leaseway dlq redrive orders.dead - --rate 50",
)
@click.argument("queue", shell_complete=queue_names)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--to", metavar="QUEUE", shell_complete=queue_names, help="Where to send them (default: each to where it came from).")
@click.option(
    "--where", multiple=True, type=condition, metavar="NAME[=VALUE]", help="Only messages with this attribute; may be repeated: all hold."
)
@click.option("--any", "either", is_flag=True, help="One of the --where is enough.")
@click.option("--rate", type=int, metavar="N", help="At most N a second (default: no bound).")
@click.option("--wait", is_flag=True, help="Wait until all are moved; --timeout bounds that, and the task goes on.")
def redrive(
    session: Session, queue: str, ids: tuple[str, ...], to: str | None, rate: int | None, where: Any, *, either: bool, wait: bool
) -> None:
    """Start a task that moves dead letters: all, those with these ids, or those with these
    attributes. `-` reads ids from stdin. What is settled meanwhile is passed over.
    """
    chosen = settling.named(ids)
    if ids and not chosen:
        session.say("stdin names no message, so nothing is moved")
        return
    body = {"ids": chosen or None, "destination": to, "filter": filter_of(where, either=either), "rate": rate}
    task = session.client.post(path_to("queues", queue, "redrive"), {name: value for name, value in body.items() if value is not None})
    if wait:
        task = ended(session, task)
    session.one(task, name="id")
    if wait:
        judge(task)
