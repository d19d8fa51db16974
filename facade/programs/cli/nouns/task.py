"""`leaseway task`: redrive tasks."""

from __future__ import annotations

import click

from facade.programs.cli.nouns.messages import letters
from facade.programs.cli.program.command import noun
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import words_of
from facade.programs.cli.program.waiting import ended, judge
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import TaskStatus

command = noun("task", REMOTE["task"][1])


@command.verb("ls", "leaseway task ls", "leaseway task ls --status running -o name")
@click.option("--status", type=words_of(TaskStatus), help="Only those that stand there.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="At most N tasks.")
def ls(session: Session, status: str | None, limit: int) -> None:
    """List the tasks of the last three days, newest first."""
    session.rows(session.client.entries("/v1/tasks", "tasks", limit=limit, status=status), letters.TASK, name="id")


@command.verb("outcomes", "leaseway task outcomes 6f2b7c1e", "leaseway task outcomes 6f2b7c1e --outcome leased -o name")
@click.argument("task")
@click.option(
    "--outcome",
    "words",
    multiple=True,
    type=words_of(LetterOutcome),
    help="Only letters with this outcome; may be repeated.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N letters (default: all).")
def outcomes(session: Session, task: str, words: tuple[str, ...], limit: int | None) -> None:
    """Say what came of each letter that a task has come to, also while it runs."""
    letters.outcomes(session, task, words, limit)


@command.verb("show", "leaseway task show 6f2b7c1e", "leaseway task show 6f2b7c1e --wait --timeout 600")
@click.argument("task")
@click.option("--wait", is_flag=True, help="Wait until it has ended; 1 is the exit status unless it has moved all.")
def show(session: Session, task: str, *, wait: bool) -> None:
    """Show a task and its progress."""
    found = session.client.get(path_to("tasks", task))
    if wait:
        found = ended(session, found)
    session.one(found, name="id")
    if wait:
        judge(found)


@command.verb("cancel", "leaseway task cancel 6f2b7c1e")
@click.argument("task")
def cancel(session: Session, task: str) -> None:
    """Cancel a task; what it has moved stays moved."""
    session.one(session.client.call("DELETE", path_to("tasks", task)), name="id")
