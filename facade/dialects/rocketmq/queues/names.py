"""Names of topics and groups: topics are the engine's queues, groups their tags.

RocketMQ's names have no '.', so two of the engine's that have one can be reached: a FIFO queue of
SQS without its `.fifo`, and the dead-letter queue of a group as `%DLQ%group`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import QueueNotFound
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal
    from schemas.records import QueueRecord

DEAD_LETTERS: Final = "%DLQ%"
_DEAD_LETTER_QUEUE: Final = "dlq."
_FIFO: Final = ".fifo"
_TOPIC: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,126}")
_GROUP: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")


def topic_of(resource: pb.Resource) -> str:
    """The name of a topic as the client writes it. Raises RocketError."""
    _check_namespace(resource, Code.ILLEGAL_TOPIC)
    name = resource.name.removeprefix(DEAD_LETTERS)
    if _TOPIC.fullmatch(name) is None:
        about = "a topic is 1 to 127 letters, digits, '_' or '-', not beginning with '-'"
        raise RocketError(Code.ILLEGAL_TOPIC, f"{about}, given {resource.name[:200]!r}")
    return resource.name


def group_of(resource: pb.Resource) -> str:
    """The name of a consumer group. Raises RocketError."""
    _check_namespace(resource, Code.ILLEGAL_CONSUMER_GROUP)
    if _GROUP.fullmatch(resource.name) is None:
        about = "a consumer group is 1 to 80 letters, digits, '_' or '-', not beginning with '-'"
        raise RocketError(Code.ILLEGAL_CONSUMER_GROUP, f"{about}, given {resource.name[:200]!r}")
    return resource.name


def _check_namespace(resource: pb.Resource, code: Code) -> None:
    if resource.resource_namespace:
        raise RocketError(code, f"there are no namespaces here, given {resource.resource_namespace[:200]!r}")


def dead_letter_queue_of(group: str, *, fifo: bool) -> str:
    """The engine's name of the dead-letter queue of a group: one for topics of each kind, for a
    FIFO queue's dead letters go to a FIFO queue.
    """
    return f"{_DEAD_LETTER_QUEUE}{group}{_FIFO if fifo else ''}"


async def record_of(engine: Engine, by: Principal, topic: str) -> QueueRecord:
    """The queue behind a topic, with which `by` may do something. Raises QueueNotFound, which names
    the topic.
    """
    name = _DEAD_LETTER_QUEUE + topic.removeprefix(DEAD_LETTERS) if topic.startswith(DEAD_LETTERS) else topic
    record = engine.queues.known(name, by) or engine.queues.known(name + _FIFO, by)
    if record is not None:
        return record
    try:
        return await engine.queues.record(name, by)
    except QueueNotFound:
        record = engine.queues.known(name + _FIFO, by)  # all records were read just now
        if record is None:
            raise QueueNotFound(f"there is no topic {topic!r}", field="topic", given=topic) from None
        return record
