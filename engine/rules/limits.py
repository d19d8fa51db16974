"""Ranges of what a request may name, and the checks. Engine-wide maxima; dialects may be narrower,
never wider.

Sources: reference/emq.md section 1.2, reference/sqs.md sections 3 and 5; wider where the native API
allows more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import DelayTooLong, InvalidValue, MessageTooLarge
from engine.rules.masks.mask import check_mask
from engine.shapes import NewTag, SendEntry
from schemas.filters import Filter
from schemas.records import Attribute, Message, QueueRecord
from schemas.records.settings import (
    DAY_MS,
    MAX_DAILY_BYTES,
    MAX_DELAY_MS,
    MAX_LABELS,
    MAX_LEASE_MS,
    MAX_LONG_POLLS,
    MAX_MESSAGE_BYTES,
    MAX_POLICY_BYTES,
    MAX_QPS,
    MAX_RECEIVE_COUNT,
    MAX_USER_ATTRIBUTES,
    MAX_WAIT_MS,
    TABLE,
    QueueSettings,
    named,
)
from schemas.vocabulary import DEFAULT_TAG, PRIORITIES, SOURCE_QUEUE_ATTRIBUTE, TRACE_ATTRIBUTE

# Delayed messages of a partition under a tag. Of MAX_OPEN in state/replies.py, which counts what is
# ready too: the rest is for that.
MAX_DELAYED = 150_000
MAX_BATCH = 100
MAX_BATCH_BYTES = MAX_MESSAGE_BYTES
# Bytes of messages in one answer, of which the first may have any size. As much as 100 messages
# have under the default limit of a queue.
MAX_RECEIVE_BYTES = 26_214_400
MAX_TAGS = 20
MAX_ATTRIBUTES = 100
UNCOUNTED_BYTES = 4_096  # of a trace header
MAX_LEVELS = 100
MAX_TASKS = 100  # of redrive, that one request starts
MAX_QUEUES = 1_000_000
MAX_CONTACT = 200
MAX_URL = 500
MAX_REASON = 200  # characters of why somebody did something
RESERVED_ATTRIBUTE = SOURCE_QUEUE_ATTRIBUTE
A_DEAD_LETTER_QUEUE = "a dead-letter queue"  # what the source of a task must be

# What a request names beside settings. `limit` is of a page, `ids` and the others below count what
# may be in a list.
ASKED: dict[str, tuple[int, int]] = {
    "delay_ms": (0, MAX_DELAY_MS),
    "lease_ms": (0, MAX_LEASE_MS),
    "wait_ms": (0, MAX_WAIT_MS),
    "check_immunity_ms": (0, MAX_LEASE_MS),
    "max": (1, MAX_BATCH),
    "max_receive_count": (1, MAX_RECEIVE_COUNT),
    "rate": (0, 100_000),
    "priority": (1, PRIORITIES),
    "read_qps": (0, MAX_QPS),
    "write_qps": (0, MAX_QPS),
    "daily_bytes": (0, MAX_DAILY_BYTES),
    "waits": (0, MAX_LONG_POLLS),
    "queues": (0, MAX_QUEUES),
    "partitions": (0, MAX_QUEUES),  # of all queues of a user
    "limit": (1, 1000),
    "partition": (0, 63),  # and below those that the queue has
    "from": (0, 2**53),
    "to": (0, 2**53),
    "start_at_ms": (-(2**53), 2**53),
    "threshold": (0, 10**15),
    "interval_ms": (60_000, 35 * DAY_MS),
    "deliver_at_ms": (0, 2**53),  # and as far from now as the queue's max_delay_ms, at most
    "messages": (1, MAX_BATCH),
    "handles": (1, MAX_BATCH),
    "text": (1, 1000),  # characters
    "ids": (1, 10_000),  # of one task: its record is written once a second and read by every worker
    "filter.conditions": (1, 20),
    "user_attributes": (0, MAX_USER_ATTRIBUTES),
    "grace_ms": (0, 7 * DAY_MS),
    "expires_at_ms": (0, 2**53),
}
# What pages of queues may be sorted by: the name, or the greatest number or the oldest message
# first.
SORTS = ("name", "backlog", "ready", "delayed", "leased", "parked", "stored", "oldest")
# How far back the history of a queue goes.
HISTORY_SPANS = ("hour", "day")
# Names of queues have room for what tells apart queues of SQS with one name
# (facade/dialects/sqs/queues/names.py); Kafka takes topics of 249 characters.
MAX_NAME = 80
MAX_QUEUE_NAME = 150
_QUEUE_FIELDS = ("name", "target", "dead_letter_queue", "destination", "source")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
_LIKE_AN_ACCOUNT = re.compile(r"[0-9]{12}_")
# Printable ASCII, and letters and digits beyond it.
ATTRIBUTE_NAME = r"[!-~\w]{1,256}"
_ATTRIBUTE_NAME = re.compile(ATTRIBUTE_NAME + r"\Z")
_ATTRIBUTE_TYPE = re.compile(r"(?:string|number|binary)(?:\.[A-Za-z0-9.]{1,200})?\Z", re.IGNORECASE)


def check_range(field: str, given: float | None, low: int, high: int) -> None:
    """Raises InvalidValue naming field, limit and what was given; None passes."""
    if given is not None and not low <= given <= high:
        raise InvalidValue(
            f"{field} must be {low} to {high}, given {given}", field=field, limit=[low, high], given=given
        )


def check_asked(field: str, given: float | None) -> None:
    """As `check_range`, with the range that ASKED has for `field`."""
    low, high = ASKED[field]
    if given is not None and not low <= given <= high:  # here: three calls less for each receive
        check_range(field, given, low, high)


def check_name(field: str, given: str) -> None:
    """Names: 1-80 (queues: 1-150) letters, digits, '_', '-', '.', not beginning with '-' or '.'."""
    limit = MAX_QUEUE_NAME if field in _QUEUE_FIELDS else MAX_NAME
    if len(given) > limit or _NAME.match(given) is None:
        raise InvalidValue(
            f"{field} must be 1 to {limit} letters, digits, '_', '-' or '.', not beginning with '-' or '.', "
            f"given {given[:200]!r}",
            field=field,
            limit=limit,
            given=given,
        )


def check_new_queue_name(field: str, given: str) -> None:
    """As `check_name`, of a queue to be made. Kafka takes no two topics whose names differ in `.`
    and `_` alone: `111122223333_orders` would keep account 111122223333 from `orders`, and tell
    whether it has that.
    """
    check_name(field, given)
    if _LIKE_AN_ACCOUNT.match(given):
        about = (
            "the name of a queue may not begin with twelve digits and an underscore, "
            "which Kafka does not tell from an account's"
        )
        raise InvalidValue(f"{about}, given {given[:200]!r}", field=field, given=given)


def check_settings(settings: QueueSettings) -> None:
    """Every value named must be in its range, or one of the words that there are."""
    for name, given in named(settings).items():
        setting = TABLE[name]
        if isinstance(given, int) and setting.high:
            check_range(name, given, setting.low, setting.high)
        elif isinstance(given, list):
            check_range(name, len(given), setting.low, setting.high)
        elif setting.choices and given not in setting.choices:
            words = list(setting.choices)
            raise InvalidValue(
                f"{name} must be {' or '.join(words)}, given {given[:100]!r}",
                field=name,
                limit=words,
                given=given[:100],
            )
    if settings.redrive_policy is not None:
        check_asked("max_receive_count", settings.redrive_policy.max_receive_count)
        check_name("dead_letter_queue", settings.redrive_policy.dead_letter_queue)
    check_user_attributes(settings.user_attributes or {})
    check_labels(settings.labels or {})
    check_mask(settings.mask or [])
    check_range("policy", len((settings.policy or "").encode()), 0, MAX_POLICY_BYTES)


def check_user_attributes(given: Mapping[str, str]) -> None:
    """Notes of the user on a queue or tag: up to 50, key 1-256 and value up to 1024 characters."""
    check_asked("user_attributes", len(given))
    for key, value in given.items():
        if not 1 <= len(key) <= 256 or len(value) > 1024:
            raise InvalidValue(
                "user_attributes need keys of 1 to 256 and values of up to 1024 characters",
                field="user_attributes",
                given=key,
            )


def check_user(given: Mapping[str, int | str]) -> None:
    """What is noted of a user: quotas in their ranges, contacts of up to 200 characters without
    line breaks.
    """
    for field, value in given.items():
        if isinstance(value, int):
            check_asked(field, value)
        elif len(value) > MAX_CONTACT or not value.isprintable():
            raise InvalidValue(
                f"{field} must be up to {MAX_CONTACT} printable characters",
                field=field,
                limit=MAX_CONTACT,
                given=value[:MAX_CONTACT],
            )


def check_reason(given: str) -> None:
    """Why somebody did something: up to 200 printable characters; empty = they did not say."""
    if len(given) > MAX_REASON or not given.isprintable():
        about = f"reason must be up to {MAX_REASON} printable characters, given {given[:200]!r}"
        raise InvalidValue(about, field="reason", limit=MAX_REASON, given=given[:200])


def check_labels(given: Mapping[str, str]) -> None:
    """Labels of a queue: up to 50, key 1-128 and value up to 256 characters."""
    check_range("labels", len(given), 0, MAX_LABELS)
    for key, value in given.items():
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise InvalidValue(
                "labels need keys of 1 to 128 and values of up to 256 characters", field="labels", given=key
            )


def check_filter(filter: Filter | None) -> None:
    """1-20 conditions with legal names and types."""
    if filter is None:
        return
    check_asked("filter.conditions", len(filter.conditions))
    for condition in filter.conditions:
        if _ATTRIBUTE_NAME.match(condition.name) is None:
            raise InvalidValue(
                "filter: an attribute name must be 1 to 256 letters, digits and printable ASCII characters without "
                "space",
                field="filter",
                given=condition.name,
            )
        if condition.type.lower() != "empty" and _ATTRIBUTE_TYPE.match(condition.type) is None:
            raise InvalidValue(
                "filter: a type must be empty, string, number or binary, with .subtype at will",
                field="filter",
                given=condition.type,
            )


def check_new_tags(tags: Sequence[NewTag]) -> None:
    """Tags that are made with their queue: names that differ, and what a tag may have."""
    check_range("tags", len(tags), 0, MAX_TAGS)
    if len({DEFAULT_TAG, *(tag.name for tag in tags)}) <= len(tags):
        raise InvalidValue(f"each tag needs a name of its own, other than {DEFAULT_TAG!r}", field="tags")
    for tag in tags:
        check_name("tag", tag.name)
        check_filter(tag.filter)
        check_user_attributes(tag.user_attributes)
        check_asked("read_qps", tag.read_qps)


def check_attributes(attributes: Mapping[str, Attribute]) -> None:
    """User attributes of a message: names, types, values; the reserved name is refused
    (reference/emq.md 1.5).
    """
    check_range("attributes", len(attributes), 0, MAX_ATTRIBUTES)
    for name, attribute in attributes.items():
        if name == RESERVED_ATTRIBUTE:
            raise InvalidValue(f"attribute name {RESERVED_ATTRIBUTE} is reserved", field="attributes", given=name)
        if _ATTRIBUTE_NAME.match(name) is None:
            raise InvalidValue(
                "an attribute name must be 1 to 256 letters, digits and printable ASCII characters without space",
                field="attributes",
                limit=256,
                given=name,
            )
        if _ATTRIBUTE_TYPE.match(attribute.type) is None:
            raise InvalidValue(
                "an attribute type must be string, number or binary, with .subtype at will",
                field="attributes",
                given=attribute.type,
            )


def message_bytes(entry: SendEntry | Message) -> int:
    """Size as limits count it: body, and name, type and value of each attribute, in encoded
    bytes. The trace header of SQS does not count, unless it is as long as no such header is.
    """
    size = len(entry.body)
    for name, attribute in entry.attributes.items():
        if name == TRACE_ATTRIBUTE and len(attribute.value) <= UNCOUNTED_BYTES:
            continue
        size += len(name.encode()) + len(attribute.type.encode()) + len(attribute.value)
    return size


def delay_until(deliver_at_ms: int, at_ms: int) -> int:
    """Returns the delay of a message that is appended at `at_ms` and due at another time; a past
    time is none.
    """
    return max(0, deliver_at_ms - at_ms)


def check_delay(queue: QueueRecord, delay_ms: int) -> None:
    """Raises InvalidValue for a delay that no message may have, or none of this queue."""
    check_asked("delay_ms", delay_ms)
    if delay_ms > queue.max_delay_ms:
        raise _too_long(queue, delay_ms, field="delay_ms", limit=[0, queue.max_delay_ms], given=delay_ms)


def check_deliver_at(queue: QueueRecord, deliver_at_ms: int, now_ms: int) -> None:
    """The same for the time at which a message is to be due; `now_ms` is Kafka's time at the
    latest.
    """
    check_asked("deliver_at_ms", deliver_at_ms)
    most_ms = queue.max_delay_ms
    if deliver_at_ms > now_ms + most_ms:
        raise _too_long(
            queue, deliver_at_ms - now_ms, field="deliver_at_ms", limit=[0, now_ms + most_ms], given=deliver_at_ms
        )


def _too_long(queue: QueueRecord, delay_ms: int, **about: Any) -> DelayTooLong:
    most_ms = queue.max_delay_ms
    detail = (
        f"a message of queue {queue.name!r} may be delayed for {most_ms} ms at most, which is its max_delay_ms, "
        f"given {delay_ms} ms"
    )
    return DelayTooLong(detail, queue=queue.name, most_ms=most_ms, delay_ms=delay_ms, **about)


def check_own_delay(queue: QueueRecord) -> None:
    """The same for the delay of a queue, which its messages have that name none."""
    check_delay(queue, queue.delay_ms)


def check_send(entries: Sequence[SendEntry], queue: QueueRecord) -> int:
    """1-100 entries, each within the queue's limits (but for `check_deliver_at`), 4,016,384 bytes
    in all. Returns the bytes in all.
    """
    max_message_bytes = queue.max_message_bytes
    check_asked("messages", len(entries))
    total = 0
    for entry in entries:
        if entry.delay_ms is not None:
            check_delay(queue, entry.delay_ms)
        if entry.deliver_at_ms is not None:
            if entry.delay_ms is not None:
                raise InvalidValue(
                    "a message has delay_ms or deliver_at_ms, not both",
                    field="deliver_at_ms",
                    given=entry.deliver_at_ms,
                )
            check_asked("deliver_at_ms", entry.deliver_at_ms)
        if entry.lease_ms is not None:
            check_asked("lease_ms", entry.lease_ms)
        if entry.priority is not None:
            check_asked("priority", entry.priority)
        if entry.attributes:
            check_attributes(entry.attributes)
        size = message_bytes(entry) if entry.attributes else len(entry.body)
        if size > max_message_bytes:
            raise MessageTooLarge(
                f"a message may have {max_message_bytes} bytes (body and attributes), given {size}",
                field="body",
                limit=max_message_bytes,
                given=size,
            )
        total += size
    if total > MAX_BATCH_BYTES:
        raise MessageTooLarge(
            f"a batch may have {MAX_BATCH_BYTES} bytes, given {total}",
            field="messages",
            limit=MAX_BATCH_BYTES,
            given=total,
        )
    return total
