"""What a FIFO queue adds: where a group's messages go, what makes a message repeat another, what a
send must name.

A group's messages are in one partition, in the order of the log. Deduplication looks at one
partition too, so with scope `queue` a FIFO queue uses one; with scope `group` its groups are spread
(docs/decisions/0004). Limits: reference/sqs.md, FIFO. The
order itself is kept by the scripts.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Sequence

import msgspec

from engine.errors import InvalidValue
from engine.shapes import SendEntry
from schemas.records import Message, QueueRecord
from schemas.records.settings import DEAD_LETTER, PARK, TABLE, QueueSettings, named

KINDS = ("standard", "FIFO")  # by whether a queue is FIFO
FIRST_SEQUENCE_NUMBER = 10**19
# The group of a message that was sent without one begins so, in a queue that delivers one message
# of a group at a time: such a message waits for no other.
ALONE = "~"

_ID = re.compile(r"[!-~]{1,128}\Z")


def partition_of_group(record: QueueRecord, group: str) -> int:
    """The partition of a group's messages."""
    return 0 if record.dedup_scope == "queue" else zlib.crc32(group.encode()) % record.partitions


def group_digest(group: str | None) -> bytes:
    """8 bytes that stand for a group in Redis; two groups that share them wait for each other, no
    more.
    """
    return hashlib.blake2b((group or "").encode(), digest_size=8).digest()


def dedup_digest(record: QueueRecord, message: Message) -> bytes:
    """12 bytes that stand for a deduplication id within its scope; empty = the message repeats
    nothing (it was moved here).
    """
    if message.dedup_id is None or message.origin is not None:
        return b""
    scope = f"{message.group}/" if record.dedup_scope == "group" else "/"
    return hashlib.blake2b(f"{scope}{message.dedup_id}".encode(), digest_size=12).digest()


def sequence_number(offset: int) -> str:
    """20 digits, growing within a group; the first is not zero, for clients take zero for none."""
    return str(FIRST_SEQUENCE_NUMBER + offset)


def check_fifo_settings(settings: QueueSettings, fifo: bool) -> None:
    """Raises InvalidValue for a FIFO setting of a queue that is not FIFO."""
    for field, given in named(settings).items():
        if TABLE[field].fifo and not fifo:
            raise InvalidValue(f"{field} is for FIFO queues only", field=field, limit="a FIFO queue", given=given)


def with_exhausted(record: QueueRecord, settings: QueueSettings) -> QueueRecord:
    """A record that has these settings by now, without a count that means nothing any more.

    Raises InvalidValue for a choice that lacks what it needs: dead_letter a redrive policy, park
    that or a count.
    """
    has_policy = record.redrive_policy is not None
    if record.on_exhausted == DEAD_LETTER and not (has_policy or any(tag.redrive_policy for tag in record.tags)):
        raise _lacks("dead_letter needs a redrive policy", "block, or a redrive policy", DEAD_LETTER)
    if record.on_exhausted == PARK:
        if not (has_policy or record.max_receive_count):
            raise _lacks("park needs a max_receive_count or a redrive policy", "block, or a max_receive_count", PARK)
        return record
    if settings.max_receive_count is not None:
        raise InvalidValue(
            "max_receive_count of a queue is for one that parks; a redrive policy has its own",
            field="max_receive_count", limit="on_exhausted park", given=settings.max_receive_count,
        )  # fmt: skip
    return msgspec.structs.replace(record, max_receive_count=0)


def _lacks(why: str, limit: str, given: str) -> InvalidValue:
    return InvalidValue(f"on_exhausted {why}", field="on_exhausted", limit=limit, given=given)


def check_entries(record: QueueRecord, entries: Sequence[SendEntry]) -> Sequence[SendEntry]:
    """The entries with their deduplication ids. Raises InvalidValue naming what a queue of this
    kind needs or refuses.
    """
    if not record.fifo:
        for entry in entries:
            if entry.group is not None:
                _check_id("group", entry.group)
            if entry.dedup_id is not None:
                raise InvalidValue(
                    "dedup_id is for FIFO queues only", field="dedup_id", limit="a FIFO queue", given=entry.dedup_id
                )
        return entries
    if record.one_per_group and all(entry.group is None for entry in entries):
        entries = [
            msgspec.structs.replace(entry, group=group)
            for entry, group in zip(entries, _apart(record, len(entries)), strict=True)
        ]
    elif record.dedup_scope == "group" and len({entry.group for entry in entries}) > 1:
        raise InvalidValue(
            "the messages of a batch must be of one group where dedup_scope is group, for their partitions differ",
            field="group",
            limit=1,
        )
    return [_fifo_entry(record, entry) for entry in entries]


def _apart(record: QueueRecord, number: int) -> list[str]:
    """So many groups that nothing else is in, all of one partition: what is sent together is stored
    together.
    """
    groups = [f"{ALONE}{secrets.token_hex(8)}"]
    partition = partition_of_group(record, groups[0])
    while len(groups) < number:
        if partition_of_group(record, group := f"{ALONE}{secrets.token_hex(8)}") == partition:
            groups.append(group)
    return groups


def _fifo_entry(record: QueueRecord, entry: SendEntry) -> SendEntry:
    if entry.group is None:
        raise InvalidValue("a message to a FIFO queue needs a group", field="group", limit="1 to 128 characters")
    if entry.delay_ms is not None or entry.deliver_at_ms is not None:
        raise InvalidValue(
            "a message to a FIFO queue has no delay of its own: its queue has one",
            field="delay_ms",
            given=entry.delay_ms,
        )
    _check_id("group", entry.group)
    _check_id("dedup_id", entry.dedup_id)
    if entry.dedup_id is not None:
        return entry
    if not record.content_dedup:
        raise InvalidValue(
            "a message to a FIFO queue needs a dedup_id, or the queue content_dedup",
            field="dedup_id",
            limit="1 to 128 characters",
        )
    return msgspec.structs.replace(entry, dedup_id=hashlib.sha256(entry.body).hexdigest())


def check_group(group: str) -> None:
    """Raises InvalidValue for what names no group; "" names those who have none."""
    if group:
        _check_id("group", group)


def _check_id(field: str, given: str | None) -> None:
    if given is not None and _ID.match(given) is None:
        raise InvalidValue(
            f"{field} must be 1 to 128 printable ASCII characters without space",
            field=field,
            limit=128,
            given=given[:200],
        )
