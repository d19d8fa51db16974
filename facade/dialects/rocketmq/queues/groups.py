"""Consumer groups: a group of a topic is a tag of its queue, made by the first subscription.

A tag can't be changed, so a group keeps the expression that it was made with: whoever subscribes
otherwise is refused. RocketMQ lets the last subscription win, and what another instance then
filters out is lost to the group (reference/rocketmq.md 2.1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from engine.errors import NotAllowedOnQueue, QueueNotFound, TagExists
from facade.dialects.rocketmq.queues import expressions
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.names import dead_letter_queue_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from schemas.records import QueueRecord, TagRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.vocabulary import DEFAULT_TAG, RetentionFrom

EXPRESSION_NOTE: Final = "rocketmq.expression"


async def subscribed(call: Call, record: QueueRecord, group: str, expression: pb.FilterExpression) -> None:
    """Makes the tag of a group unless it is there. Raises RocketError for another expression than
    the group has, EngineError.
    """
    text = expressions.text_of(expression)
    tag = _tag(record, group)
    if tag is None:
        tag = await _made(call, record, group, text)
    if tag is not None:
        _check(tag, group, text)


def _tag(record: QueueRecord, group: str) -> TagRecord | None:
    if group == record.default_tag_name:
        group = DEFAULT_TAG
    return next((tag for tag in record.tags if tag.name == group), None)


async def _made(call: Call, record: QueueRecord, group: str, text: str) -> TagRecord | None:
    """None = it was made as asked; the tag = somebody else was faster."""
    start_at_ms = 0 if call.common.settings.rocketmq_new_groups == "oldest" else -1

    async def make(policy: RedrivePolicy | None) -> None:
        note = {EXPRESSION_NOTE: text}
        await call.engine.queues.create_tag(
            call.by, record.name, group, start_at_ms, expressions.filter_of(text), note, redrive_policy=policy
        )

    try:
        await _with_policy(call, record, group, make)
    except TagExists:
        return _tag(await call.engine.queues.record(record.name, call.by), group)
    return None


async def _with_policy(
    call: Call, record: QueueRecord, group: str, make: Callable[[RedrivePolicy | None], Awaitable[None]]
) -> None:
    """A group has a dead-letter queue of its own, which is made here, unless the queue has a policy
    for all tags. It is made when the engine says that it is missing, so only by who may make tags.
    """
    if record.redrive_policy is not None or record.dead_letter:
        await make(None)
        return
    name = dead_letter_queue_of(group, fifo=record.fifo)
    policy = RedrivePolicy(name, call.common.settings.rocketmq_max_attempts)
    try:
        try:
            await make(policy)
        except QueueNotFound as error:
            if error.field != "dead_letter_queue":
                raise
            wanted = QueueSettings(partitions=1, fifo=record.fifo, dead_letter=True, retention_from=RetentionFrom.SEND)
            await call.engine.queues.create_queue(call.by, name, wanted)
            await make(policy)
    except NotAllowedOnQueue:
        await make(None)  # the topic is a dead-letter queue itself


def attempts_of(call: Call, record: QueueRecord, group: str) -> int:
    """Deliveries of a message before it goes to the dead-letter queue of a group that is there."""
    record = call.engine.queues.known(record.name, call.by) or record
    tag = _tag(record, group)
    policy = (tag and tag.redrive_policy) or record.redrive_policy
    return call.common.settings.rocketmq_max_attempts if policy is None else policy.max_receive_count


def _check(tag: TagRecord, group: str, text: str) -> None:
    """Raises RocketError unless the tag was made for this expression. One that was made in another
    dialect has any filter, and `*` means all that it wants.
    """
    known = tag.user_attributes.get(EXPRESSION_NOTE)
    of_others = known is None and (text == expressions.ALL or tag.filter == expressions.filter_of(text))
    if known != text and not of_others:
        about = f"consumer group {group!r} of this topic has {known or 'a filter of another dialect'!r}, given {text!r}"
        raise RocketError(
            Code.ILLEGAL_FILTER_EXPRESSION, f"{about}: use another group, or delete the tag of that name first"
        )
