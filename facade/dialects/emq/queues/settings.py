"""The attributes of a queue: EMQ's struct and the engine's settings, and EMQ's ranges.

Ranges: reference/emq.md 1.2.
"""

from __future__ import annotations

from typing import Final

from engine.shapes import QueueInfo
from facade.attributes import Attribute
from facade.dialects.emq.queues.call import EmqError, checked
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs.queue import QueueAttribute, QueueQuota, Throughput
from schemas.records import QueueRecord
from schemas.records.settings import QueueSettings

# By the field of the struct. The number of partitions is not the user's to say: it is ignored.
ATTRIBUTES: Final = {
    "delay_seconds": Attribute("delaySeconds", "delay_ms", 1000, 0, 900),
    "invisibility_seconds": Attribute("invisibilitySeconds", "lease_ms", 1000, 0, 43_200),
    "receive_message_wait_seconds": Attribute("receiveMessageWaitSeconds", "receive_wait_ms", 1000, 0, 20),
    "receive_message_maximum_number": Attribute("receiveMessageMaximumNumber", "max_receive_messages", 1, 1, 100),
    "message_retention_seconds": Attribute("messageRetentionSeconds", "retention_ms", 1000, 60, 1_209_600),
    "message_maximum_bytes": Attribute("messageMaximumBytes", "max_message_bytes", 1, 1, 262_144),
}
QPS: Final = (0, 100_000)


def settings_of(given: QueueAttribute | None) -> QueueSettings:
    """What a request asks for; what it does not name is None. Raises EmqError."""
    if given is None:
        return QueueSettings()
    values: dict[str, int] = {}
    for field, row in ATTRIBUTES.items():
        value: int | None = checked(row.name, getattr(given, field), row.low, row.high)
        if value is not None:
            values[row.setting] = row.given(value)
    return QueueSettings(**values, user_attributes=user_attributes(given.user_attributes))


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


def attribute_of(queue: QueueRecord | QueueInfo) -> QueueAttribute:
    """All attributes that are in force."""
    values = {field: row.shown(queue) for field, row in ATTRIBUTES.items()}
    return QueueAttribute(
        **values, partition_number=queue.partitions, user_attributes=queue.user_attributes or None, owner=queue.owner
    )
