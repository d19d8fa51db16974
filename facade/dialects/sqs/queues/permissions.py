"""AddPermission, RemovePermission: a statement more or less in a queue's policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facade.dialects.sqs.queues import policies
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.wire.errors import missing
from facade.dialects.sqs.wire.replies import DONE, Output
from schemas.records.settings import QueueSettings

if TYPE_CHECKING:
    from engine.engine import Engine
    from schemas.records import QueueRecord


def _policy(call: Call, queue: str, text: str) -> QueueSettings:
    return QueueSettings(policy=text, grants=policies.grants_of(text, call.place, queue))


async def add_permission(engine: Engine, call: Call) -> Output:
    """Let others do something with a queue."""
    given = call.body
    name = call.place.whole(given.queue_url, "AddPermission")
    if not given.label:
        raise missing("Label")
    if not given.account_ids:
        raise missing("AWSAccountIds")
    if not given.actions:
        raise missing("Actions")

    def edit(record: QueueRecord) -> QueueSettings:
        text = policies.with_permission(
            record.policy, call.place.arn(name), given.label, given.account_ids, given.actions
        )
        return _policy(call, name, text)

    await engine.queues.set_queue(call.by, name, QueueSettings(), edit)
    return DONE


async def remove_permission(engine: Engine, call: Call) -> Output:
    """Take back what AddPermission gave under a label."""
    name = call.place.whole(call.body.queue_url, "RemovePermission")
    if not call.body.label:
        raise missing("Label")
    await engine.queues.set_queue(
        call.by,
        name,
        QueueSettings(),
        lambda record: _policy(call, name, policies.without_permission(record.policy, call.body.label)),
    )
    return DONE
