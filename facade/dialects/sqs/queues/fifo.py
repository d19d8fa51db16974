"""FIFO: the attributes that only FIFO queues have, what their sends must name, and how a batch is
parted.

The rules are the engine's; this module says them in the words and with the errors of SQS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from engine.errors import InvalidValue
from engine.rules.fifo import check_entries
from engine.shapes import QueueInfo, SendEntry
from facade.dialects.sqs.wire.errors import (
    INVALID_ATTRIBUTE_NAME,
    INVALID_ATTRIBUTE_VALUE,
    INVALID_PARAMETER,
    SqsError,
    missing,
    sqs_error,
)
from facade.dialects.sqs.wire.words import NO_DEDUPLICATION
from schemas.records import QueueRecord

FIFO_QUEUE: Final = "FifoQueue"
THROUGHPUT_LIMIT: Final = "FifoThroughputLimit"
# Attribute -> the engine's setting.
SETTINGS: Final = {
    FIFO_QUEUE: "fifo",
    "ContentBasedDeduplication": "content_dedup",
    "DeduplicationScope": "dedup_scope",
}
NAMES: Final = (*SETTINGS, THROUGHPUT_LIMIT)
PER_QUEUE: Final = "perQueue"
# What AWS says of those that it knows on a standard queue; the others it does not know there.
_OF_FIFO: Final = {
    name: f"You can specify the {name} only when FifoQueue is set to true."
    for name in ("DeduplicationScope", THROUGHPUT_LIMIT)
}

_SCOPES: Final = {"queue": "queue", "messageGroup": "group"}
_BOOLEANS: Final = {"true": True, "false": False}
_VALUES: Final[dict[str, dict[str, Any]]] = {
    FIFO_QUEUE: _BOOLEANS,
    "ContentBasedDeduplication": _BOOLEANS,
    "DeduplicationScope": _SCOPES,
    THROUGHPUT_LIMIT: {PER_QUEUE: PER_QUEUE, "perMessageGroupId": "perMessageGroupId"},
}


def value_of(name: str, text: str) -> Any:
    """The engine's value of an attribute. Raises SqsError for a text that is none."""
    values = _VALUES[name]
    found = values.get(text.lower() if values is _BOOLEANS else text)
    if found is None:
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}.")
    return found


def text_of(name: str, queue: QueueInfo) -> str | None:
    """The attribute of a queue; None of one that is not FIFO."""
    if not queue.fifo:
        return None
    value = getattr(queue, SETTINGS[name])
    return next(text for text, meant in _VALUES[name].items() if meant == value)


def asked_for(given: Mapping[str, str]) -> bool:
    """Whether the attributes of a new queue say that it is FIFO."""
    return given.get(FIFO_QUEUE, "").lower() == "true"


def check(given: Mapping[str, str], *, fifo: bool, scope: str = "queue", limit: str = PER_QUEUE) -> None:
    """Raises SqsError when a queue of this kind, scope (the engine's word) and limit can't get the
    attributes `given`.
    """
    of_fifo = [name for name in NAMES if name in given]
    if not fifo and of_fifo:
        raise SqsError(INVALID_ATTRIBUTE_NAME, _OF_FIFO.get(of_fifo[0], f"Unknown Attribute {of_fifo[0]}."))
    if FIFO_QUEUE in given and not asked_for(given):
        raise SqsError(
            INVALID_ATTRIBUTE_VALUE,
            f"Invalid value for the parameter {FIFO_QUEUE}. Reason: Modifying queue type is not supported.",
        )
    scope = _SCOPES.get(given.get("DeduplicationScope", ""), scope)
    limit = given.get(THROUGHPUT_LIMIT, limit)
    if limit != PER_QUEUE and scope == "queue":
        reason = f"{limit} needs DeduplicationScope messageGroup."
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {THROUGHPUT_LIMIT}. Reason: {reason}")


def fitted(record: QueueRecord, entry: SendEntry) -> SendEntry:
    """The entry as the engine takes it for this queue. Raises SqsError, for the message alone."""
    if record.fifo:
        if entry.group is None:
            raise missing("MessageGroupId")
        if entry.delay_ms == 0:  # here it says no more than that the queue's delay holds
            entry = structs.replace(entry, delay_ms=None)
    try:
        return check_entries(record, [entry])[0]
    except InvalidValue as error:
        raise sqs_error(error) from error


def check_batch(record: QueueRecord, entries: Mapping[str, Any]) -> None:
    """Raises SqsError, which fails the whole request, when an entry lacks its group or its
    deduplication id.
    """
    if not record.fifo:
        return
    for entry in entries.values():
        if entry.message_group_id is None:
            raise SqsError(INVALID_PARAMETER, missing("MessageGroupId").message)
        if entry.message_deduplication_id is None and not record.content_dedup:
            raise SqsError(INVALID_PARAMETER, NO_DEDUPLICATION)


def parts(record: QueueRecord, ready: Mapping[str, SendEntry]) -> list[Mapping[str, SendEntry]]:
    """What of a batch can be one send, in the order of its entries: groups in different partitions
    are sent apart.
    """
    if not record.fifo or record.dedup_scope == "queue":
        return [ready]
    found: dict[str | None, dict[str, SendEntry]] = {}
    for entry_id, entry in ready.items():
        found.setdefault(entry.group, {})[entry_id] = entry
    return list(found.values())
