"""`leaseway message`: its verbs and their options; `messages/` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from facade.programs.cli.nouns.messages import letters, looking, sending, settling
from facade.programs.cli.program.command import noun, reason_option, yes_option
from facade.programs.cli.program.completion import queue_names
from facade.programs.cli.program.each import each
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import condition, moment_ms, pairs, reasoned, seconds, words_of
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import MessageState

command = noun("message", REMOTE["message"][1])

_queue = click.argument("queue", shell_complete=queue_names)
_handles = click.argument("handles", nargs=-1, required=True, metavar="HANDLE...")
_ids = click.argument("ids", nargs=-1, required=True, metavar="ID...")
_tag = click.option("--tag", metavar="NAME", help="Under this tag (default: the default tag).")
_body = click.option("--body", "only_body", is_flag=True, help="Print bodies alone: each as it is, and a line end.")
_where = click.option(
    "--where",
    multiple=True,
    type=condition,
    metavar="NAME[=VALUE]",
    help="Only with this attribute; may be repeated: all hold.",
)


@command.verb(
    "send",
    "leaseway message send orders hello",
    "leaseway message send orders --file order.json --attribute kind=retail",
    "leaseway message send payments paid --group customer-7 --dedup-id 4711",
    "tail -f app.log | leaseway message send orders --lines -o name",
    "leaseway message peek orders -o jsonl | leaseway message send copy --jsonl",
)
@_queue
@click.argument("bodies", nargs=-1, metavar="[BODY]...")
@sending.files_option
@click.option("--lines", "source", flag_value="lines", help="A message for each line of stdin that is not empty.")
@click.option(
    "--jsonl",
    "source",
    flag_value="jsonl",
    help="A message for each line of stdin: JSON as the API has it, or as printed.",
)
@sending.attributes_option
def send(session: Session, **given: Any) -> None:
    """Send messages. Those of arguments and files are one batch: all are sent, or none; `-` is all
    of stdin. Lines are sent as they come, up to 100 in a batch.
    """
    sending.send(session, **given)


@command.verb(
    "receive",
    "leaseway message receive orders --wait-seconds 20",
    "leaseway message receive orders --max 10 --ack --body",
    "leaseway message ack orders $(leaseway message receive orders -o name)",
)
@_queue
@click.option("--max", type=int, default=1, show_default=True, metavar="N", help="At most N messages.")
@click.option(
    "--wait-seconds", type=seconds, metavar="SECONDS", help="Wait so long for the first (default: as the queue says)."
)
@click.option(
    "--lease-seconds", type=seconds, metavar="SECONDS", help="Lease them for so long (default: as the queue says)."
)
@_tag
@_where
@click.option("--any", "either", is_flag=True, help="One of the --where is enough.")
@click.option("--ack", is_flag=True, help="Acknowledge them when they are printed.")
@_body
def receive(session: Session, **given: Any) -> None:
    """Receive messages: each is leased, and comes again unless it is acknowledged in time."""
    settling.receive(session, **given)


@command.verb(
    "peek",
    "leaseway message peek orders --state leased",
    "leaseway message peek orders --from 2026-11-27T22:00 --where kind=retail -o jsonl",
)
@_queue
@click.option(
    "--state", type=words_of(MessageState), help="Only those in this state under the tag (default: settled ones too)."
)
@click.option("--from", "from_ms", type=moment_ms, metavar="TIME", help="Sent at or after: ISO 8601 or epoch ms.")
@click.option("--to", "to_ms", type=moment_ms, metavar="TIME", help="Sent before.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most N messages.")
@_tag
@_where
@_body
def peek(session: Session, queue: str, limit: int, *, only_body: bool, **given: Any) -> None:
    """Look at messages without receiving them, partition by partition; settled ones are there while
    Kafka has them.
    """
    asked = {"from": given["from_ms"], "to": given["to_ms"], "state": given["state"], "tag": given["tag"]}
    rows = looking.query(session, queue, limit, **asked, attribute=looking.attributes_of(given["where"]))
    settling.show(session, list(looking.say_masked(session, rows)), looking.PEEKED, name="id", only_body=only_body)


@command.verb(
    "search",
    "leaseway message search orders --text 'order 4711'",
    "leaseway message search orders --attribute kind=retail --since 2026-11-27T22:00 --state settled -o jsonl",
)
@_queue
@click.option("--text", metavar="TEXT", help="Only text bodies that have this in them.")
@click.option("--ignore-case", is_flag=True, help="With --text: in capitals or not.")
@click.option(
    "--attribute",
    "where",
    multiple=True,
    type=condition,
    metavar="NAME[=VALUE]",
    help="Only with this attribute; may be repeated: all hold.",
)
@click.option("--since", type=moment_ms, metavar="TIME", help="Sent at or after: ISO 8601 or epoch ms.")
@click.option("--until", type=moment_ms, metavar="TIME", help="Sent before.")
@click.option(
    "--state", type=words_of(MessageState), help="Only those in this state under the tag (default: settled ones too)."
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most N messages.")
@click.option(
    "--scan",
    "most",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="End when N were read.",
)
@click.option("--next", "place", metavar="PLACE", help="Go on from where a search before has ended.")
@_tag
@_body
def search(
    session: Session, queue: str, limit: int, most: int, place: str | None, *, only_body: bool, **given: Any
) -> None:
    """Look for messages by text, attributes, time and state without receiving them, partition by
    partition. Kafka is read from --since to --until, which may take a while.
    """
    asked = {
        "from": given["since"],
        "to": given["until"],
        "state": given["state"],
        "tag": given["tag"],
        "text": given["text"],
    }
    asked |= {
        "attribute": looking.attributes_of(given["where"]),
        "ignore_case": "true" if given["ignore_case"] else None,
    }
    rows = looking.search(session, queue, limit, most, place, **asked)
    settling.show(session, list(looking.say_masked(session, rows)), looking.PEEKED, name="id", only_body=only_body)


@command.verb(
    "show",
    "leaseway message show orders dc9afed9-fed1-8002-8000-00000001010a",
    "leaseway message show orders ID --body > body",
    "leaseway message show orders ID --events",
)
@_queue
@click.argument("id", metavar="ID")
@_tag
@_body
@click.option("--events", "life", is_flag=True, help="Show what happened to it, as far as the journal has that.")
def show(session: Session, queue: str, id: str, tag: str | None, *, only_body: bool, life: bool) -> None:
    """Show one message by its id or a handle; nothing is counted."""
    if life:
        letters.events(session, queue, id, tag)
        return
    (found,) = looking.say_masked(session, [session.client.get(path_to("queues", queue, "messages", id), tag=tag)])
    if only_body:
        settling.write_bodies([found])
    else:
        session.one(found, name="id")


@command.verb(
    "tail", "leaseway message tail orders -f", "leaseway message tail orders --since 2026-11-27T22:00 -o jsonl"
)
@_queue
@click.option("--follow", "-f", is_flag=True, help="Go on with those that come, until Ctrl-C.")
@click.option(
    "--since", type=moment_ms, metavar="TIME", help="Sent at or after: ISO 8601 or epoch ms (default: a minute ago)."
)
@_tag
@_where
def tail(session: Session, queue: str, since: int | None, tag: str | None, where: Any, *, follow: bool) -> None:
    """Print messages as they are sent, without receiving them."""
    rows = looking.tail(session, queue, since, follow=follow, tag=tag, attribute=looking.attributes_of(where))
    session.stream(looking.say_masked(session, rows), ("sent_at_ms", "id", "state", "group", "body", "body_base64"))


@command.verb("ack", "leaseway message ack orders HANDLE", "leaseway message ack orders - < handles")
@_queue
@_handles
def ack(session: Session, queue: str, handles: tuple[str, ...]) -> None:
    """Acknowledge messages: they are not received again. `-` reads handles from stdin."""
    settling.settle(session, queue, "ack", handles)


@command.verb("extend", "leaseway message extend orders HANDLE --lease-seconds 120")
@_queue
@_handles
@click.option(
    "--lease-seconds",
    type=seconds,
    required=True,
    metavar="SECONDS",
    help="The lease, from now on; 0 = receivable at once.",
)
def extend(session: Session, queue: str, handles: tuple[str, ...], lease_seconds: float) -> None:
    """Give leases another length, counted from now."""
    settling.settle(session, queue, "extend", handles, {"lease_seconds": lease_seconds})


@command.verb("release", "leaseway message release orders HANDLE --delay-seconds 30")
@_queue
@_handles
@click.option(
    "--delay-seconds", type=seconds, default=0.0, metavar="SECONDS", help="Until they can be received (default 0)."
)
def release(session: Session, queue: str, handles: tuple[str, ...], delay_seconds: float) -> None:
    """Give messages back, to be received again."""
    settling.settle(session, queue, "release", handles, {"delay_seconds": delay_seconds})


@command.verb(
    "kill", "leaseway message kill orders HANDLE", "leaseway message kill orders HANDLE --reason 'no such customer'"
)
@_queue
@_handles
@reason_option
def kill(session: Session, queue: str, handles: tuple[str, ...], reason: str | None) -> None:
    """Send messages to the dead-letter queue now."""
    settling.settle(session, queue, "kill", handles, reasoned(reason))


@command.verb("rm", "leaseway message rm orders ID ID --yes")
@_queue
@_ids
@yes_option
def rm(session: Session, queue: str, ids: tuple[str, ...], *, yes: bool) -> None:
    """Delete messages that are not leased, under all tags. `-` reads ids from stdin."""
    found = settling.named(ids)
    session.confirm(f"delete {len(found)} message(s) of queue {queue!r}", yes=yes)

    def delete(message: str) -> None:
        session.client.call("DELETE", path_to("queues", queue, "messages", message))
        session.say(f"deleted message {message}")

    each(session, found, delete)


@command.verb(
    "copy",
    "leaseway message copy orders.dead ID --to orders-2",
    "leaseway message copy orders.dead ID '{\"order\": 17}' --attribute kind=retail --remove",
)
@_queue
@click.argument("id", metavar="ID")
@click.argument("body", required=False)
@click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="Another body: all of this file, - = of stdin."
)
@click.option(
    "--to", metavar="QUEUE", shell_complete=queue_names, help="Where to send it (default: to where it came from)."
)
@click.option(
    "--attribute",
    multiple=True,
    type=pairs,
    metavar="NAME=TEXT",
    help="An attribute, in place of all; may be repeated.",
)
@click.option("--group", metavar="ID", help="Another group.")
@click.option("--dedup-id", metavar="ID", help="FIFO: another id of deduplication.")
@click.option("--remove", is_flag=True, help="Delete the message when the copy is stored.")
def copy(session: Session, **given: Any) -> None:
    """Send a copy of a message, such as a dead letter, with another body or other attributes."""
    letters.copy(session, **given)


@command.verb("cancel", "leaseway message cancel orders ID")
@_queue
@_ids
def cancel(session: Session, queue: str, ids: tuple[str, ...]) -> None:
    """Cancel delayed messages under all tags: nobody receives them. `-` reads ids from stdin."""

    def cancel_one(message: str) -> None:
        session.client.post(path_to("queues", queue, "messages", message, "cancel"))
        session.say(f"cancelled message {message}")

    each(session, settling.named(ids), cancel_one)


@command.verb("reschedule", "leaseway message reschedule orders ID --at 2026-11-28T08:00")
@_queue
@_ids
@click.option(
    "--at", type=moment_ms, required=True, metavar="TIME", help="When they are due: ISO 8601 or epoch ms; past = now."
)
def reschedule(session: Session, queue: str, ids: tuple[str, ...], at: int) -> None:
    """Give delayed messages another due time. `-` reads ids from stdin."""

    def reschedule_one(message: str) -> None:
        session.client.post(path_to("queues", queue, "messages", message, "reschedule"), {"deliver_at_ms": at})
        session.say(f"rescheduled message {message}")

    each(session, settling.named(ids), reschedule_one)
