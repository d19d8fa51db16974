"""`leaseway tx`: transactions, and the questions about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from facade.programs.cli.nouns.messages import sending
from facade.programs.cli.program.command import noun
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import seconds, words_of
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import TransactionStatus

command = noun("tx", REMOTE["tx"][1])
COLUMNS = ("id", "status", "producer_group", "messages", "prepared_at_ms", "decided_at_ms", "reason")

_transaction = click.argument("transaction")


@command.verb("ls", "leaseway tx ls orders", "leaseway tx ls orders --status open -o json")
@click.argument("queue", shell_complete=queue_names)
@click.option("--status", type=words_of(TransactionStatus), help="Only those that stand there.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="N", help="At most N transactions."
)
def ls(session: Session, queue: str, status: str | None, limit: int) -> None:
    """List transactions of a queue, those prepared last first."""
    found = session.client.get(path_to("queues", queue, "transactions"), status=status, limit=limit)
    session.rows(found["transactions"], COLUMNS, name="id")


@command.verb("show", "leaseway tx show 5f1c0f8e9a3b8c10800000000000012a")
@_transaction
def show(session: Session, transaction: str) -> None:
    """Show where a transaction stands."""
    session.one(session.client.get(path_to("transactions", transaction)), name="id")


@command.verb(
    "prepare",
    "leaseway tx prepare orders paid --producer-group payments",
    "leaseway tx commit $(leaseway tx prepare orders paid --producer-group payments -o name)",
)
@click.argument("queue", shell_complete=queue_names)
@click.argument("bodies", nargs=-1, metavar="[BODY]...")
@click.option("--producer-group", required=True, metavar="NAME", help="Whom the service asks for the outcome.")
@click.option(
    "--check-immunity-seconds",
    type=seconds,
    metavar="SECONDS",
    help="For so long nobody is asked.",
)
@sending.files_option
@sending.attributes_option
def prepare(
    session: Session, queue: str, bodies: tuple[str, ...], files: tuple[Path, ...], producer_group: str, **given: Any
) -> None:
    """Store messages that nobody sees until the transaction is committed."""
    body: dict[str, Any] = {
        "producer_group": producer_group,
        "messages": sending.messages_of(bodies, files, sending.common_of(given)),
    }
    if given["check_immunity_seconds"] is not None:
        body["check_immunity_seconds"] = given["check_immunity_seconds"]
    session.one(session.client.post(path_to("queues", queue, "transactions"), body), name="id")


def _decision(verb: str, about: str) -> None:
    @_transaction
    def decide(session: Session, transaction: str) -> None:
        session.one(session.client.post(path_to("transactions", transaction, verb)), name="id")

    command.verb(verb, f"leaseway tx {verb} 5f1c0f8e9a3b8c10800000000000012a", about=about)(decide)


_decision("commit", "Send the messages of a transaction: once, however often it is repeated.")
_decision("rollback", "Drop the messages of a transaction; may be repeated.")
_decision("unknown", "Say that the outcome is not known yet: the producer group is asked again.")


@command.verb("checks", "leaseway tx checks payments --wait-seconds 20", "leaseway tx checks payments -o jsonl")
@click.argument("producer_group")
@click.option("--max", type=int, default=10, show_default=True, metavar="N", help="At most N questions.")
@click.option("--wait-seconds", type=seconds, default=0.0, metavar="SECONDS", help="Wait so long for the first.")
def checks(session: Session, producer_group: str, max: int, wait_seconds: float) -> None:
    """Take questions about transactions; answer each with commit, rollback or unknown."""
    body = {"max": max, "wait_seconds": wait_seconds}
    found = session.client.post(path_to("producer-groups", producer_group, "checks"), body, wait_s=wait_seconds)[
        "checks"
    ]
    if not found:
        session.say("nothing is asked")
    session.rows(
        found, ("id", "number", "transaction.id", "transaction.queue", "transaction.prepared_at_ms"), name="id"
    )
