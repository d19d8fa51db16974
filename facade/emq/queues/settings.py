"""The attributes of a queue: EMQ's struct and the engine's settings, and EMQ's ranges.

Ranges: reference/emq.md 1.2. The engine's are wider, so a queue that another dialect has made may
show larger numbers.
"""

from __future__ import annotations

from typing import Final, Protocol

from engine.shapes import QueueSettings
from facade.emq.queues.call import EmqError, checked
from facade.emq.wire.errors import ErrorCode
from facade.emq.wire.structs.queue import QueueAttribute, QueueQuota, Throughput

# Field of the struct -> name on the wire, range, setting of the engine, and units of the setting in
# one of the field. The number of partitions is not the user's to say: it is ignored.
_FIELDS: Final = (
    ("delay_seconds", "delaySeconds", 0, 900, "delay_ms", 1000),
    ("invisibility_seconds", "invisibilitySeconds", 0, 43_200, "lease_ms", 1000),
    ("receive_message_wait_seconds", "receiveMessageWaitSeconds", 0, 20, "receive_wait_ms", 1000),
    ("receive_message_maximum_number", "receiveMessageMaximumNumber", 1, 100, "max_receive_messages", 1),
    ("message_retention_seconds", "messageRetentionSeconds", 60, 1_209_600, "retention_ms", 1000),
    ("message_maximum_bytes", "messageMaximumBytes", 1, 262_144, "max_message_bytes", 1),
)


QPS: Final = (0, 100_000)


class Described(Protocol):
    """What has a queue's settings: its record, or what the engine says of it."""

    @property
    def owner(self) -> str: ...
    @property
    def partitions(self) -> int: ...
    @property
    def user_attributes(self) -> dict[str, str]: ...


def settings_of(given: QueueAttribute | None) -> QueueSettings:
    """What a request asks for; what it does not name is None. Raises EmqError."""
    if given is None:
        return QueueSettings()
    values: dict[str, int] = {}
    for field, name, low, high, setting, units in _FIELDS:
        value: int | None = checked(name, getattr(given, field), low, high)
        if value is not None:
            values[setting] = value * units
    return QueueSettings(**values, user_attributes=user_attributes(given.user_attributes))  # type: ignore[arg-type]


def keep_unacked(delete_message_force: bool | None) -> bool:
    """The engine's setting for EMQ's; what is not named is EMQ's default, true."""
    return delete_message_force is False


def quota_of(given: QueueQuota | None) -> dict[str, int]:
    """The engine's settings of a quota, by their names; what is not named is left out. Raises
    EmqError.
    """
    throughput = None if given is None else given.throughput
    if throughput is None:
        return {}
    read, write = checked("readQps", throughput.read_qps, *QPS), checked("writeQps", throughput.write_qps, *QPS)
    return {name: value for name, value in (("read_qps", read), ("write_qps", write)) if value is not None}


def quota_reply(read_qps: int, write_qps: int) -> QueueQuota:
    """A quota; 0 = no bound."""
    return QueueQuota(throughput=Throughput(read_qps=read_qps, write_qps=write_qps))


def user_attributes(given: dict[str, str] | None) -> dict[str, str] | None:
    """Notes of the user on a queue or tag; None stays None. Raises EmqError for empty texts."""
    if given is not None and not all(key and value for key, value in given.items()):
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, "userAttributes need keys and values that are not empty")
    return given


def attribute_of(queue: Described) -> QueueAttribute:
    """All attributes that are in force."""
    values = {field: getattr(queue, setting) // units for field, _, _, _, setting, units in _FIELDS}
    return QueueAttribute(**values, partition_number=queue.partitions, user_attributes=queue.user_attributes or None, owner=queue.owner)
