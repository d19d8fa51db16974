"""Methods on queues: create, delete, purge, attributes, info, lists, redrive policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from engine.errors import QueueExists
from engine.shapes import TagInfo
from facade.dialects.emq.queues import settings
from facade.dialects.emq.queues.call import Call, EmqError, checked
from facade.dialects.emq.queues.names import exists, full_name, name_of, new_name, record_of
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs import queue as wire
from schemas.accounts import account_of
from schemas.records.settings import QueueSettings, RedrivePolicy

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal

RECEIVE_TIMES: Final = (1, 100)
_PAGE: Final = 1000
_NO_POLICY: Final = "a topic queue or a queue with priority has no redrive policy"


async def create_queue(engine: Engine, call: Call) -> wire.CreateQueueResponse:
    """Make a queue. One of that name is refused, also when it is equal."""
    given: wire.CreateQueueRequest = call.body
    name = new_name(engine, call.by.id, given.queue_name, call.by)
    if given.redrive_policy is not None and (given.enable_priority or given.topic_queue):
        raise EmqError(ErrorCode.INVALID_ACTION, _NO_POLICY)
    topics = True if given.topic_queue else None
    wanted = structs.replace(
        settings.settings_of(given.queue_attribute),
        redrive_policy=await policy_of(engine, given.redrive_policy, call.by),
        fifo=topics,
        dedup_scope="group" if topics else None,
        one_per_group=topics,
        priority=given.enable_priority,
        dead_letter=given.dead_letter_queue,
        keep_unacked=settings.keep_unacked(given.delete_message_force),
        default_tag_name=given.default_tag_name,
        **settings.quota_of(given.queue_quota),
    )
    try:
        info, made = await engine.queues.create_queue(call.by, name, wanted)
    except QueueExists:
        made = False
    if not made:
        raise exists(name_of(engine, name, call.by))
    return wire.CreateQueueResponse(
        queue_name=full_name(engine, info, call.by),
        queue_attribute=settings.attribute_of(info),
        queue_quota=settings.quota_reply(info.read_qps, info.write_qps),
        dead_letter_queue=info.dead_letter,
        enable_priority=info.priority,
        topic_queue=info.fifo,
        delete_message_force=not info.keep_unacked,
        default_tag_name=info.default_tag_name or None,
        redrive_policy=policy_reply(engine, info.redrive_policy, call.by),
    )


async def policy_of(engine: Engine, given: wire.RedrivePolicy | None, by: Principal) -> RedrivePolicy | None:
    """The engine's policy. Raises EmqError, QueueNotFound."""
    if given is None:
        return None
    checked("maxReceiveTime", given.max_receive_time, *RECEIVE_TIMES)
    target = await record_of(engine, given.dlq_name, by)
    if target.priority or target.fifo:
        raise EmqError(
            ErrorCode.INVALID_ACTION, f"queue {given.dlq_name!r} has topics or priority, so it is no dead-letter queue"
        )
    return RedrivePolicy(target.name, given.max_receive_time)


def policy_reply(engine: Engine, policy: RedrivePolicy | None, by: Principal) -> wire.RedrivePolicy | None:
    """EMQ's policy; None stays None."""
    if policy is None:
        return None
    return wire.RedrivePolicy(
        dlq_name=name_of(engine, policy.dead_letter_queue, by), max_receive_time=policy.max_receive_count
    )


async def delete_queue(engine: Engine, call: Call) -> None:
    """Delete a queue and its messages."""
    await engine.queues.delete_queue(call.by, (await record_of(engine, call.body.queue_name, call.by)).name)


async def purge_queue(engine: Engine, call: Call) -> None:
    """Settle all messages sent so far, under all tags."""
    await engine.queues.purge(call.by, (await record_of(engine, call.body.queue_name, call.by)).name)


async def set_queue_attribute(engine: Engine, call: Call) -> wire.SetQueueAttributesResponse:
    """Change the attributes that are named."""
    given: wire.SetQueueAttributesRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    info = await engine.queues.set_queue(call.by, record.name, settings.settings_of(given.queue_attribute))
    return wire.SetQueueAttributesResponse(
        queue_name=full_name(engine, info, call.by), queue_attribute=settings.attribute_of(info)
    )


async def set_queue_quota(engine: Engine, call: Call) -> wire.SetQueueQuotaResponse:
    """Bound the requests of a second; 0 = no bound."""
    given: wire.SetQueueQuotaRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    info = await engine.queues.set_queue(call.by, record.name, QueueSettings(**settings.quota_of(given.queue_quota)))
    quota = settings.quota_reply(info.read_qps, info.write_qps)
    return wire.SetQueueQuotaResponse(queue_name=full_name(engine, info, call.by), queue_quota=quota)


async def get_queue_info(engine: Engine, call: Call) -> wire.GetQueueInfoResponse:
    """A queue: attributes, counts under the default tag, what it is."""
    record = await record_of(engine, call.body.queue_name, call.by)
    info = await engine.queues.get_queue(call.by, record.name)
    return wire.GetQueueInfoResponse(
        queue_name=full_name(engine, info, call.by),
        queue_attribute=settings.attribute_of(info),
        queue_state=state_of(info.created_at_ms, max(info.created_at_ms, info.purged_at_ms), info.tags[0]),
        queue_quota=settings.quota_reply(info.read_qps, info.write_qps),
        is_dead_letter_queue=info.dead_letter or bool(info.source_queues),
        redrive_policy=policy_reply(engine, info.redrive_policy, call.by),
        enable_priority=info.priority,
        topic_queue=info.fifo,
        delete_message_force=not info.keep_unacked,
        default_tag_name=info.default_tag_name or None,
        source_queues=[name_of(engine, source, call.by) for source in info.source_queues],
    )


def state_of(created_at_ms: int, modified_at_ms: int, tag: TagInfo) -> wire.QueueState:
    """The counts of a queue or tag. Only a purge moves the time of the last change."""
    return wire.QueueState(
        create_timestamp=created_at_ms,
        last_modified_timestamp=modified_at_ms,
        approximate_message_number=tag.backlog,
        approximate_available_message_number=tag.ready,
        approximate_invisibility_message_number=tag.leased + tag.parked,
    )


async def list_queue(engine: Engine, call: Call) -> wire.ListQueueResponse:
    """The queues of who asks, by the beginning of their short or full names."""
    prefix = _checked(call.body.queue_name_prefix or "")
    names, after = await engine.queues.list_queues(call.by, _account(prefix), _PAGE, None)
    while after is not None:
        more, after = await engine.queues.list_queues(call.by, _account(prefix), _PAGE, after)
        names += more
    found = [name_of(engine, name, call.by) for name in names]
    return wire.ListQueueResponse(queue_name=sorted(name for name in found if _begins(name, prefix)))


async def query_privileged_queue(engine: Engine, call: Call) -> wire.QueryPrivilegedQueueResponse:
    """The queues of others with which who asks was given a permission, and their counts."""
    prefix = _checked(call.body.queue_name_prefix or "")
    found, after = await engine.queues.list_shared(call.by, _account(prefix), _PAGE, None)
    while after is not None:
        more, after = await engine.queues.list_shared(call.by, _account(prefix), _PAGE, after)
        found += more
    named = ((full_name(engine, queue, call.by), queue) for queue in found)
    entries = [
        wire.QueryPrivilegedQueueResponseEntry(
            queue_name=name,
            approximate_message_number=queue.backlog,
            approximate_available_message_number=queue.ready,
            approximate_invisibility_message_number=queue.leased,
        )
        for name, queue in named
        if _begins(name, prefix)
    ]
    return wire.QueryPrivilegedQueueResponse(queue_list=entries)


def _checked(prefix: str) -> str:
    """A prefix of names. Raises EmqError for more than one '/'."""
    if prefix.count("/") > 1:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"a prefix of names has one '/' at most, given {prefix[:200]!r}")
    return prefix


def _account(prefix: str) -> str:
    """What the engine's names begin with: the account that a prefix names, if it names one."""
    account = account_of(f"{prefix}*")
    return f"{account}." if account else ""


def _begins(name: str, prefix: str) -> bool:
    """Whether a full name begins with a prefix, or its short name with one without '/'."""
    return (name if "/" in prefix else name.rpartition("/")[2]).startswith(prefix)


async def set_queue_redrive_policy(engine: Engine, call: Call) -> wire.SetQueueRedrivePolicyResponse:
    """Set the redrive policy, in place of the one there is."""
    given: wire.SetQueueRedrivePolicyRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    if record.priority or record.fifo:
        raise EmqError(ErrorCode.INVALID_ACTION, _NO_POLICY)
    wanted = await policy_of(engine, given.redrive_policy, call.by)
    if wanted is not None and wanted.dead_letter_queue == record.name:
        raise EmqError(ErrorCode.INVALID_ACTION, "a queue can't be its own dead-letter queue")
    policy = await engine.queues.set_redrive_policy(call.by, record.name, wanted)
    answer = policy_reply(engine, policy, call.by) or given.redrive_policy
    return wire.SetQueueRedrivePolicyResponse(queue_name=full_name(engine, record, call.by), redrive_policy=answer)


async def remove_queue_redrive_policy(engine: Engine, call: Call) -> None:
    """Remove the redrive policy."""
    await engine.queues.set_redrive_policy(call.by, (await record_of(engine, call.body.queue_name, call.by)).name, None)


async def list_dead_letter_source_queues(engine: Engine, call: Call) -> wire.ListDeadLetterSourceQueuesResponse:
    """The queues whose policies name this one; for clients before 2016-06."""
    record = await record_of(engine, call.body.dlq_name, call.by)
    info = await engine.queues.get_queue(call.by, record.name)
    sources = [name_of(engine, source, call.by) for source in info.source_queues]
    return wire.ListDeadLetterSourceQueuesResponse(dlq_name=full_name(engine, info, call.by), source_queues=sources)
