"""`leaseway task`: redrive tasks."""

from __future__ import annotations

import click

from facade.programs.cli.program.command import noun
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.waiting import ended, judge
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to

command = noun("task", REMOTE["task"][1])


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
