"""Attributes of a queue: SQS's strings <-> the engine's settings.

What the engine has no field for (KMS, FifoThroughputLimit) is kept in the queue's user attributes
under `sqs.`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from engine.shapes import QueueInfo, TagInfo
from facade.dialects.sqs.queues import fifo
from facade.dialects.sqs.queues.filters import FILTER_POLICY
from facade.dialects.sqs.queues.names import Address, Place
from facade.dialects.sqs.queues.policies import grants_of
from facade.dialects.sqs.queues.redrive import (
    ALLOW_ALL,
    REDRIVE_ALLOW_POLICY,
    REDRIVE_POLICY,
    policy_of,
    policy_text,
    sources_of,
    sources_text,
)
from facade.dialects.sqs.wire.errors import INVALID_ATTRIBUTE_NAME, INVALID_ATTRIBUTE_VALUE, SqsError
from facade.dialects.sqs.wire.limits import KEY_REUSE_SECONDS, LIMITS, Limits
from schemas.records import QueueRecord
from schemas.records.settings import ANY, QueueSettings
from schemas.vocabulary import DEFAULT_TAG

_PREFIX: Final = "sqs."
# Their ranges depend on a setting of the service; what they show does not.
_NUMBERS: Final = LIMITS["aws"].attributes
_KEY: Final = "KmsMasterKeyId"
_KEY_REUSE: Final = "KmsDataKeyReusePeriodSeconds"
_KEY_REUSE_SECONDS: Final = "300"
_STORED: Final = (_KEY, _KEY_REUSE, "SqsManagedSseEnabled")
POLICY: Final = "Policy"


class Changes(Struct, frozen=True):
    """What a request names: settings of the engine, `stored` attributes (empty = remove), and
    whether the policy is to go.

    `of_fifo`: the attributes for FIFO queues as they were given; which of them are right depends on
    the queue (see `fifo.check`).
    """

    settings: QueueSettings
    stored: dict[str, str] = {}
    no_policy: bool = False
    of_fifo: dict[str, str] = {}


def changes(queue: str, given: Mapping[str, str], limits: Limits, place: Place) -> Changes:
    """What the attributes of a request for a queue ask for. Raises SqsError for an unknown name, or
    a value out
    of its range.
    """
    values: dict[str, Any] = {}
    stored: dict[str, str] = {}
    numbers = limits.attributes
    for name, value in given.items():
        if (row := numbers.get(name)) is not None:
            values[row.setting] = row.given(_number(name, value, row.low, row.high))
        elif name == REDRIVE_POLICY:
            values["redrive_policy"] = policy_of(value, place) if value else None
        elif name == REDRIVE_ALLOW_POLICY:
            values["allowed_sources"] = sources_of(value, place)
            # The engine does not know "all, and somebody said so" from "all".
            stored[name] = ALLOW_ALL if value and ANY in values["allowed_sources"] else ""
        elif name == POLICY:
            values |= {"policy": value, "grants": grants_of(value, place, queue)}
        elif name in _STORED:
            stored[name] = _stored_value(name, value)
        elif name in fifo.SETTINGS:
            values[fifo.SETTINGS[name]] = fifo.value_of(name, value)
        elif name == fifo.THROUGHPUT_LIMIT:
            stored[name] = "" if fifo.value_of(name, value) == fifo.PER_QUEUE else value
        else:
            raise _unknown(name)
    if stored.get(_KEY) and stored.get("SqsManagedSseEnabled") == "true":
        about = (
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE."
        )
        raise SqsError(INVALID_ATTRIBUTE_NAME, about)
    of_fifo = {name: given[name] for name in fifo.NAMES if name in given}
    return Changes(QueueSettings(**values), stored, given.get(REDRIVE_POLICY) == "", of_fifo)


def check_fifo(record: QueueRecord, wanted: Changes) -> None:
    """Raises SqsError when a queue as it is can't get the FIFO attributes that a request names."""
    limit = record.user_attributes.get(_PREFIX + fifo.THROUGHPUT_LIMIT, fifo.PER_QUEUE)
    fifo.check(wanted.of_fifo, fifo=record.fifo, scope=record.dedup_scope, limit=limit)


def _unknown(name: str) -> SqsError:
    if name == FILTER_POLICY:
        return SqsError(
            INVALID_ATTRIBUTE_NAME,
            f"{name} is an attribute of a tag, as orders@billing; it is set when the tag is made.",
        )
    return SqsError(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:100]}.")


def _number(name: str, value: str, low: int, high: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 10 and low <= int(value) <= high):
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}.")
    return int(value)


def _stored_value(name: str, value: str) -> str:
    if name == _KEY_REUSE:
        return str(_number(name, value, *KEY_REUSE_SECONDS))
    if name == "SqsManagedSseEnabled" and value not in ("true", "false"):
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}.")
    if len(value) > 1024:
        raise SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}.")
    return value


def user_attributes(now: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """The queue's user attributes after `stored` was set; what is set to nothing is removed, with
    its key how long it is reused.
    """
    if stored.get(_KEY) == "":
        stored = {**stored, _KEY_REUSE: ""}
    renamed = {_PREFIX + name: value for name, value in stored.items()}
    kept = {name: value for name, value in now.items() if name not in renamed}
    return {**kept, **{name: value for name, value in renamed.items() if value}}


def tag_of(queue: QueueInfo, at: Address) -> TagInfo | None:
    """The tag that is spoken to; None = the queue has none of that name."""
    name = at.tag or DEFAULT_TAG
    return next((tag for tag in queue.tags if tag.name == name), None)


_Show = Callable[[QueueInfo, Address, Place], str | None]


def _counts(of: Callable[[TagInfo], int]) -> _Show:
    def text(queue: QueueInfo, at: Address, place: Place) -> str:
        tag = tag_of(queue, at)
        return str(of(tag) if tag is not None else 0)

    return text


def _numeric(name: str) -> _Show:
    row = _NUMBERS[name]
    return lambda queue, at, place: str(row.shown(queue))


def _kept(name: str) -> _Show:
    return lambda queue, at, place: queue.user_attributes.get(_PREFIX + name)


def _key_reuse(queue: QueueInfo, at: Address, place: Place) -> str | None:
    """How long a key is reused; of a queue without a key it is not shown."""
    now = queue.user_attributes
    return now.get(_PREFIX + _KEY_REUSE, _KEY_REUSE_SECONDS) if _PREFIX + _KEY in now else None


def _of_fifo(name: str) -> _Show:
    return lambda queue, at, place: fifo.text_of(name, queue)


def _throughput_limit(queue: QueueInfo, at: Address, place: Place) -> str | None:
    return queue.user_attributes.get(_PREFIX + fifo.THROUGHPUT_LIMIT, fifo.PER_QUEUE) if queue.fifo else None


def _allowed(queue: QueueInfo, at: Address, place: Place) -> str | None:
    said = f'{{"redrivePermission":"{ALLOW_ALL}"}}' if _PREFIX + REDRIVE_ALLOW_POLICY in queue.user_attributes else None
    return sources_text(queue.allowed_sources, place) or said


def tag_filter(tag: TagInfo | None) -> str | None:
    """The FilterPolicy that a tag was made with through SQS."""
    return None if tag is None else tag.user_attributes.get(_PREFIX + FILTER_POLICY)


def tag_attributes(filter_policy: str) -> dict[str, str]:
    """The user attributes of a tag made with this FilterPolicy."""
    return {_PREFIX + FILTER_POLICY: filter_policy} if filter_policy else {}


# Attribute -> its value for a queue, None = it has none.
_SHOWN: Final[dict[str, _Show]] = {
    **{name: _numeric(name) for name in _NUMBERS},
    **{name: _kept(name) for name in _STORED},
    **{name: _of_fifo(name) for name in fifo.SETTINGS},
    fifo.THROUGHPUT_LIMIT: _throughput_limit,
    _KEY_REUSE: _key_reuse,
    REDRIVE_POLICY: lambda queue, at, place: policy_text(queue.redrive_policy, place),
    REDRIVE_ALLOW_POLICY: _allowed,
    POLICY: lambda queue, at, place: queue.policy or None,
    FILTER_POLICY: lambda queue, at, place: tag_filter(tag_of(queue, at)),
    "QueueArn": lambda queue, at, place: place.arn(at.name),
    "CreatedTimestamp": lambda queue, at, place: str(queue.created_at_ms // 1000),
    "LastModifiedTimestamp": lambda queue, at, place: str(queue.modified_at_ms // 1000),
    "ApproximateNumberOfMessages": _counts(lambda tag: tag.ready + tag.stored),
    "ApproximateNumberOfMessagesNotVisible": _counts(lambda tag: tag.leased + tag.parked),
    "ApproximateNumberOfMessagesDelayed": _counts(lambda tag: tag.delayed),
}


def check_names(names: Iterable[str]) -> None:
    """Raises SqsError for a name that is no attribute."""
    for name in names:
        if name != "All" and name not in _SHOWN:
            raise SqsError(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:100]}.")


def shown(queue: QueueInfo, at: Address, names: Iterable[str], place: Place) -> dict[str, str]:
    """The attributes asked for that the queue has."""
    asked = frozenset(names)
    values = ((name, value(queue, at, place)) for name, value in _SHOWN.items() if "All" in asked or name in asked)
    return {name: value for name, value in values if value is not None}


def differing(queue: QueueInfo, given: Changes) -> str | None:
    """The first attribute whose given value is not the queue's; None when all that is given is what
    is.
    """
    for name, row in _NUMBERS.items():
        value = getattr(given.settings, row.setting)
        if value is not None and value != getattr(queue, row.setting):
            return name
    policy = given.settings.redrive_policy
    if (policy is not None or given.no_policy) and policy != queue.redrive_policy:
        return REDRIVE_POLICY
    for name, setting in (*fifo.SETTINGS.items(), (POLICY, "policy"), (REDRIVE_ALLOW_POLICY, "allowed_sources")):
        value = getattr(given.settings, setting)
        if value is not None and value != getattr(queue, setting):
            return name
    now = queue.user_attributes
    return next((name for name, value in given.stored.items() if now.get(_PREFIX + name, "") != value), None)
