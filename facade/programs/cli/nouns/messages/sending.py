"""`leaseway message send`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import click

from facade.programs.cli.nouns.messages.bodies import (
    MOST_MESSAGES,
    Message,
    batches,
    body_of,
    from_arguments,
    from_object,
    lines_of,
)
from facade.programs.cli.program.command import Callback
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import moment_ms, pairs, seconds
from facade.programs.connect.client import path_to
from facade.programs.connect.failures import Failure, Unreachable

COLUMNS = ("id", "sent_at_ms", "sequence_number", "body_md5")

files_option = click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Body: all of this file, - = of stdin; may be repeated.",
)


def attributes_option(callback: Callback) -> Callback:
    """Adds what each message is sent with."""
    for option in (
        click.option("--lease-seconds", type=seconds, metavar="SECONDS", help="Length of its leases."),
        click.option(
            "--priority", type=int, metavar="N", help="1 is received first, 16 last, in a queue with priority."
        ),
        click.option(
            "--dedup-id", metavar="ID", help="FIFO: a message with an id of the last five minutes is not delivered."
        ),
        click.option("--group", metavar="ID", help="Its group, whose order a FIFO queue keeps."),
        click.option("--at", type=moment_ms, metavar="TIME", help="When it is due: ISO 8601 or epoch ms."),
        click.option("--delay-seconds", type=seconds, metavar="SECONDS", help="Until it can be received."),
        click.option(
            "--number",
            multiple=True,
            type=pairs,
            metavar="NAME=NUMBER",
            help="A number as attribute; may be repeated.",
        ),
        click.option(
            "--attribute", multiple=True, type=pairs, metavar="NAME=TEXT", help="An attribute; may be repeated."
        ),
    ):
        callback = option(callback)
    return callback


def common_of(given: dict[str, Any]) -> Message:
    """What the options say of every message."""
    attributes: dict[str, Any] = dict(given["attribute"])
    attributes.update({name: {"type": "number", "value": value} for name, value in given["number"]})
    fields = {
        "attributes": attributes or None,
        "deliver_at_ms": given["at"],
        **{name: given[name] for name in ("delay_seconds", "group", "dedup_id", "priority", "lease_seconds")},
    }
    return {name: value for name, value in fields.items() if value is not None}


def messages_of(bodies: Sequence[str], files: Sequence[Path], common: Message) -> list[Message]:
    """What one send is to have. Raises Failure, UsageError: none, or too many."""
    messages = [{**common, **message} for message in from_arguments(bodies, files)]
    if not messages:
        raise click.UsageError("give a BODY, --file FILE, --lines or --jsonl")
    if len(messages) > MOST_MESSAGES:
        raise click.UsageError(
            f"one send has at most {MOST_MESSAGES} messages, given {len(messages)}: pass them as --lines"
        )
    return messages


def send(
    session: Session, queue: str, bodies: tuple[str, ...], files: tuple[Path, ...], source: str | None, **given: Any
) -> None:
    """Sends what the options say (`message.py` declares them)."""
    common = common_of(given)
    path = path_to("queues", queue, "messages")
    if source is None:
        sent = session.client.post(path, {"messages": messages_of(bodies, files, common)})["messages"]
        session.rows(sent, COLUMNS, name="id")
        return
    if bodies or files:
        raise click.UsageError(f"--{source} reads messages from stdin, and takes no BODY or --file beside it")
    done = _Sent()
    try:
        session.stream(_streamed(session, path, _read(sys.stdin.buffer, source, common), done), COLUMNS)
    except (KeyboardInterrupt, OSError):
        session.say(str(done))
        raise


def _read(stream: BinaryIO, source: str, common: Message) -> Iterator[list[Message]]:
    """Batches of the lines of stdin."""
    number = 0
    for lines in lines_of(stream):
        messages = []
        for line in lines:
            number += 1
            messages.append(_joined(common, body_of(line) if source == "lines" else from_object(number, line)))
        yield from batches(messages)


def _joined(common: Message, own: Message) -> Message:
    """A message of what all have and what it says itself, which counts more; attributes of both."""
    joined = {**common, **own}
    if isinstance(own.get("attributes"), dict) and "attributes" in common:
        joined["attributes"] = {**common["attributes"], **own["attributes"]}
    return joined


@dataclass
class _Sent:
    """How many messages are sent; `doubt`: a request has no answer, so perhaps there are more."""

    messages: int = 0
    doubt: bool = False

    def __str__(self) -> str:
        return f"{self.messages} message(s){' and perhaps the next ones' if self.doubt else ''} were sent before"


def _streamed(session: Session, path: str, read: Iterator[list[Message]], sent: _Sent) -> Iterator[dict[str, Any]]:
    """What became of each message; a failure says how many were sent before it."""
    try:
        for batch in read:
            sent.doubt = True
            results = session.client.post(path, {"messages": batch})["messages"]
            sent.doubt = False
            sent.messages += len(batch)
            yield from results
    except Failure as failure:
        sent.doubt = isinstance(failure, Unreachable) and failure.sent
        raise Failure(f"{failure}; {sent}", failure.code) from None
    session.say(f"sent {sent.messages} message(s)")
