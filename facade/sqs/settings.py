"""Attributes of a queue: SQS's strings <-> the engine's settings.

What the engine has no field for (KMS, tags) is kept in the queue's user attributes under `sqs.`. What would have to be enforced and
is not yet (Policy, RedriveAllowPolicy) is refused, since a client that sets it relies on it.
Neighbours: `queues`. This module must not know requests or the engine's verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.verbs import QueueInfo, QueueSettings, TagInfo
from facade.sqs.errors import INVALID_ATTRIBUTE_NAME, INVALID_ATTRIBUTE_VALUE, UNSUPPORTED_OPERATION, SqsError, invalid
from facade.sqs.limits import ATTRIBUTE_RANGES, RECEIVE_COUNT, TAG_KEY_CHARACTERS, TAG_VALUE_CHARACTERS, TAGS
from facade.sqs.names import Address, name_of_arn, queue_arn
from schemas.records import RedrivePolicy

_PREFIX: Final = "sqs."
_TAG_PREFIX: Final = "sqs.tag."
# Attribute -> the engine's setting, and how many of the engine's units one of SQS's is.
_NUMBERS: Final[dict[str, tuple[str, int]]] = {
    "DelaySeconds": ("delay_ms", 1000),
    "MaximumMessageSize": ("max_message_bytes", 1),
    "MessageRetentionPeriod": ("retention_ms", 1000),
    "ReceiveMessageWaitTimeSeconds": ("receive_wait_ms", 1000),
    "VisibilityTimeout": ("lease_ms", 1000),
}
_STORED: Final = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled")
_OF_FIFO: Final = ("FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
_NOT_YET: Final = ("Policy", "RedriveAllowPolicy")
REDRIVE_POLICY: Final = "RedrivePolicy"


class Changes(Struct, frozen=True):
    """What a request names: settings of the engine, `stored` attributes (empty = remove), and whether the policy is to go."""

    settings: QueueSettings
    stored: dict[str, str] = {}
    no_policy: bool = False


def changes(given: Mapping[str, str]) -> Changes:
    """What the attributes of a request ask for. Raises SqsError for an unknown name or a value out of its range."""
    values: dict[str, Any] = {}
    stored: dict[str, str] = {}
    for name, value in given.items():
        if name in _NUMBERS:
            setting, factor = _NUMBERS[name]
            values[setting] = _number(name, value) * factor
        elif name == REDRIVE_POLICY:
            values["redrive_policy"] = redrive_policy(value) if value else None
        elif name in _STORED:
            stored[name] = _stored_value(name, value)
        else:
            raise _unknown(name, value)
    if stored.get("KmsMasterKeyId") and stored.get("SqsManagedSseEnabled") == "true":
        raise SqsError(INVALID_ATTRIBUTE_NAME, "You can use one type of server-side encryption (SSE) at one time.")
    return Changes(QueueSettings(**values), stored, no_policy=given.get(REDRIVE_POLICY) == "")


def _unknown(name: str, value: str) -> SqsError:
    if name == "FifoQueue" and value.lower() == "true":
        return SqsError(UNSUPPORTED_OPERATION, "FIFO queues come later; FifoQueue can't be true yet.")
    if name in _NOT_YET:
        return SqsError(INVALID_ATTRIBUTE_NAME, f"Attribute {name} is not enforced yet, so it can't be set.")
    return SqsError(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:100]}.")


def _number(name: str, value: str) -> int:
    low, high = ATTRIBUTE_RANGES[name]
    if not (value.isascii() and value.isdigit() and len(value) <= 10 and low <= int(value) <= high):
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}. It must be {low} to {high}, given {value[:100]}.")
    return int(value)


def _stored_value(name: str, value: str) -> str:
    if name in ATTRIBUTE_RANGES:
        return str(_number(name, value))
    if name == "SqsManagedSseEnabled" and value not in ("true", "false"):
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}. It must be true or false, given {value[:100]}.")
    if len(value) > 1024:
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}. It may have 1024 characters.")
    return value


def redrive_policy(text: str) -> RedrivePolicy:
    """The policy in a RedrivePolicy attribute. Raises SqsError."""
    try:
        parts = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        parts = None
    if not isinstance(parts, dict) or not {"deadLetterTargetArn", "maxReceiveCount"} <= parts.keys():
        raise invalid(REDRIVE_POLICY, text, "Redrive policy is a JSON object with deadLetterTargetArn and maxReceiveCount.")
    target, count = name_of_arn(str(parts["deadLetterTargetArn"])), str(parts["maxReceiveCount"])
    if target is None:
        raise invalid(REDRIVE_POLICY, text, "Invalid value for deadLetterTargetArn.")
    if not (count.isascii() and count.isdigit() and len(count) <= 4 and RECEIVE_COUNT[0] <= int(count) <= RECEIVE_COUNT[1]):
        raise invalid(REDRIVE_POLICY, text, "Invalid value for maxReceiveCount: it must be 1 to 1000.")
    return RedrivePolicy(target, int(count))


def tags_of(given: Mapping[str, str] | None) -> dict[str, str]:
    """Tags as user attributes. Raises SqsError for a key or value that SQS refuses."""
    given = given or {}
    if len(given) > TAGS:
        raise invalid("Tags", len(given), f"A queue may have {TAGS} tags.")
    for key, value in given.items():
        if not TAG_KEY_CHARACTERS[0] <= len(key) <= TAG_KEY_CHARACTERS[1] or key.lower().startswith("aws:"):
            raise invalid("Tags", key, "A tag key has 1 to 128 characters and does not begin with aws:.")
        if len(value) > TAG_VALUE_CHARACTERS[1]:
            raise invalid("Tags", value, "A tag value has up to 256 characters.")
    return {_TAG_PREFIX + key: value for key, value in given.items()}


def user_attributes(now: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """The queue's user attributes after `stored` was set; what is set to nothing is removed."""
    renamed = {_PREFIX + name: value for name, value in stored.items()}
    kept = {name: value for name, value in now.items() if name not in renamed}
    return {**kept, **{name: value for name, value in renamed.items() if value}}


def _tag(queue: QueueInfo, at: Address) -> TagInfo | None:
    name = at.tag or "default"
    return next((tag for tag in queue.tags if tag.name == name), None)


def _policy_text(queue: QueueInfo) -> str | None:
    policy = queue.redrive_policy
    if policy is None:
        return None
    parts = {"deadLetterTargetArn": queue_arn(policy.dead_letter_queue), "maxReceiveCount": policy.max_receive_count}
    return msgspec.json.encode(parts).decode()


def _counts(of: Callable[[TagInfo], int]) -> Callable[[QueueInfo, Address], str]:
    def text(queue: QueueInfo, at: Address) -> str:
        tag = _tag(queue, at)
        return str(of(tag) if tag is not None else 0)

    return text


def _numeric(name: str) -> Callable[[QueueInfo, Address], str]:
    setting, factor = _NUMBERS[name]
    return lambda queue, at: str(getattr(queue, setting) // factor)


def _kept(name: str) -> Callable[[QueueInfo, Address], str | None]:
    return lambda queue, at: queue.user_attributes.get(_PREFIX + name)


# Attribute -> its value for a queue, None = it has none.
_SHOWN: Final[dict[str, Callable[[QueueInfo, Address], str | None]]] = {
    **{name: _numeric(name) for name in _NUMBERS},
    **{name: _kept(name) for name in _STORED},
    **{name: lambda queue, at: None for name in (*_OF_FIFO, *_NOT_YET)},
    REDRIVE_POLICY: lambda queue, at: _policy_text(queue),
    "QueueArn": lambda queue, at: queue_arn(at.name),
    "CreatedTimestamp": lambda queue, at: str(queue.created_at_ms // 1000),
    "LastModifiedTimestamp": lambda queue, at: str(queue.modified_at_ms // 1000),
    "ApproximateNumberOfMessages": _counts(lambda tag: tag.ready + tag.stored),
    "ApproximateNumberOfMessagesNotVisible": _counts(lambda tag: tag.leased),
    "ApproximateNumberOfMessagesDelayed": _counts(lambda tag: tag.delayed),
}


def check_names(names: Iterable[str]) -> None:
    """Raises SqsError for a name that is no attribute."""
    for name in names:
        if name != "All" and name not in _SHOWN:
            raise SqsError(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:100]}.")


def shown(queue: QueueInfo, at: Address, names: Iterable[str]) -> dict[str, str]:
    """The attributes asked for that the queue has."""
    asked = frozenset(names)
    values = ((name, value(queue, at)) for name, value in _SHOWN.items() if "All" in asked or name in asked)
    return {name: value for name, value in values if value is not None}


def differing(queue: QueueInfo, given: Changes) -> str | None:
    """The first attribute whose given value is not the queue's; None when all that is given is what is."""
    for name, (setting, _) in _NUMBERS.items():
        value = getattr(given.settings, setting)
        if value is not None and value != getattr(queue, setting):
            return name
    policy = given.settings.redrive_policy
    if (policy is not None or given.no_policy) and policy != queue.redrive_policy:
        return REDRIVE_POLICY
    now = queue.user_attributes
    return next((name for name, value in given.stored.items() if now.get(_PREFIX + name, "") != value), None)
