"""The attributes of a queue: MNS's elements and the engine's settings, and MNS's ranges
(reference/mns.md 1.1).

LoggingEnabled is kept in the queue's user attributes: there is no log delivery that it would start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.shapes import QueueInfo, TagInfo
from facade.attributes import Attribute
from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, MALFORMED_XML, MnsError
from facade.dialects.mns.wire.query import number
from facade.dialects.mns.wire.replies import Items
from facade.dialects.mns.wire.xml import Element
from schemas.records.settings import QueueSettings
from schemas.vocabulary import RetentionFrom

LOGGING: Final = "LoggingEnabled"
_STORED_LOGGING: Final = f"mns.{LOGGING}"
ATTRIBUTES: Final = (
    Attribute("DelaySeconds", "delay_ms", 1000, 0, 604_800),
    Attribute("MaximumMessageSize", "max_message_bytes", 1, 1024, 65_536, default=65_536),
    Attribute("MessageRetentionPeriod", "retention_ms", 1000, 60, 604_800, default=345_600),
    Attribute("VisibilityTimeout", "lease_ms", 1000, 1, 43_200, default=30),
    Attribute("PollingWaitSeconds", "receive_wait_ms", 1000, 0, 30),
)


class Changes(Struct, frozen=True):
    """What a request names: settings of the engine by name, and whether logging is enabled; None =
    it is not named.
    """

    values: Mapping[str, int]
    logging: bool | None

    def settings(self, now: Mapping[str, str]) -> QueueSettings:
        """For the engine; `now` = the user attributes that the queue has."""
        kept = None if self.logging is None else user_attributes(now, enabled=self.logging)
        return QueueSettings(**self.values, user_attributes=kept)


def changes(body: Element | None) -> Changes:
    """What the body of a request asks for; elements that are not known are ignored. Raises
    MnsError.
    """
    if body is None:
        return Changes({}, None)
    if body.name != "Queue":
        raise MnsError(MALFORMED_XML, f"the body must be a Queue, given {body.name[:100]}")
    values: dict[str, int] = {}
    for row in ATTRIBUTES:
        text = body.value(row.name)
        if text is not None:
            values[row.setting] = row.given(number(row.name, text.strip(), row.low, row.high))
    return Changes(values, _logging(body.value(LOGGING)))


def _logging(text: str | None) -> bool | None:
    if text is None:
        return None
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise MnsError(INVALID_ARGUMENT, f"The value of {LOGGING} should be True or False, given {text[:100]!r}")
    return word == "true"


def user_attributes(now: Mapping[str, str], *, enabled: bool) -> dict[str, str]:
    """The queue's user attributes with logging enabled or not."""
    kept = {name: value for name, value in now.items() if name != _STORED_LOGGING}
    return {**kept, _STORED_LOGGING: "True"} if enabled else kept


def new_queue(wanted: Changes, *, priority: bool) -> QueueSettings:
    """The settings of a new queue: MNS's defaults where nothing is named, and retention from the
    send.
    """
    values = {row.setting: row.given(row.default) for row in ATTRIBUTES}
    kept = user_attributes({}, enabled=bool(wanted.logging))
    return QueueSettings(
        **{**values, **wanted.values},
        retention_from=RetentionFrom.SEND,
        priority=priority or None,
        user_attributes=kept,
    )


def is_logging(queue: QueueInfo) -> bool:
    """Whether logging was enabled for the queue."""
    return queue.user_attributes.get(_STORED_LOGGING) == "True"


def differing(queue: QueueInfo, wanted: Changes) -> str | None:
    """The first element whose given value is not the queue's; None when all that is given is what
    is.
    """
    for row in ATTRIBUTES:
        now = getattr(queue, row.setting)
        if wanted.values.get(row.setting, now) != now:
            return row.name
    return LOGGING if wanted.logging is not None and wanted.logging != is_logging(queue) else None


def shown(queue: QueueInfo, name: str, tag: TagInfo) -> Items:
    """All attributes, in the order of the documents; counts are those of the tag."""
    return (
        ("QueueName", name),
        ("CreateTime", queue.created_at_ms // 1000),
        ("LastModifyTime", queue.modified_at_ms // 1000),
        *((row.name, row.shown(queue)) for row in ATTRIBUTES),
        ("ActiveMessages", tag.ready + tag.stored),
        ("InactiveMessages", tag.leased + tag.parked),
        ("DelayMessages", tag.delayed),
        (LOGGING, str(is_logging(queue))),
    )
