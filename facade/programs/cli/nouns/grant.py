"""`leaseway grant`: who may do what with a queue, or with messages of one of its tags."""

from __future__ import annotations

import click

from facade.programs.cli.program.command import noun, yes_option
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import words_of
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import Level

command = noun("grant", REMOTE["grant"][1])

_queue = click.argument("queue", shell_complete=queue_names)
_tag = click.option("--tag", metavar="NAME", help="Of messages of this tag alone (default: of the queue).")


def _path(queue: str, tag: str | None, *principal: str) -> str:
    return path_to("queues", queue, *(("tags", tag) if tag else ()), "grants", *principal)


@command.verb("ls", "leaseway grant ls orders")
@_queue
@_tag
def ls(session: Session, queue: str, tag: str | None) -> None:
    """List who has which level; the owner and administrators need none."""
    session.rows(session.client.get(_path(queue, tag))["grants"], ("principal", "level"), name="principal")


@command.verb("set", "leaseway grant set orders billing use", "leaseway grant set orders audit receive --tag audit")
@_queue
@click.argument("principal")
@click.argument("level", type=words_of(level for level in Level if level is not Level.NONE))
@_tag
def change(session: Session, queue: str, principal: str, level: str, tag: str | None) -> None:
    """Give a principal a level, in place of the one that it had."""
    session.one(session.client.call("PUT", _path(queue, tag, principal), {"level": level}), name="principal")


@command.verb("rm", "leaseway grant rm orders billing --yes")
@_queue
@click.argument("principal")
@_tag
@yes_option
def rm(session: Session, queue: str, principal: str, tag: str | None, *, yes: bool) -> None:
    """Take the level of a principal away."""
    session.confirm(
        f"take the level of {principal!r} on queue {queue!r}{f', tag {tag!r},' if tag else ''} away", yes=yes
    )
    session.client.call("DELETE", _path(queue, tag, principal))
    session.say(f"took the level of {principal!r} away")
