"""Methods on all that makes a queue but its messages, for who moves queues between services; and
whether somebody is an administrator.

`QueueTag` has room for one condition. A tag with several shows them in a field of our own (9); a
client that drops it leaves an attributeName without a value, which `copyQueue` refuses: the copy
would want every message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from engine.errors import NotAuthorised, QueueExists
from engine.shapes import NewTag, QueueInfo, TagInfo
from facade.dialects.emq.queues import filters, settings
from facade.dialects.emq.queues.call import Call, EmqError, checked
from facade.dialects.emq.queues.names import NO_DEVELOPER, exists, full_name, name_of, new_name, record_of, split
from facade.dialects.emq.queues.permissions import level_of, number_of
from facade.dialects.emq.queues.queues import policy_of, policy_reply
from facade.dialects.emq.queues.tags import start_of
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs import access as wire
from schemas.records.settings import Grant
from schemas.vocabulary import Level

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal

_SEVERAL = "several"


async def get_queue_meta(engine: Engine, call: Call) -> wire.GetQueueMetaResponse:
    """All that makes a queue but its messages."""
    record = await record_of(engine, call.body, call.by)
    info = await engine.queues.get_queue(call.by, record.name)
    levels = await engine.callers.list_grants(call.by, record.name)
    meta = wire.QueueMeta(
        queue_name=full_name(engine, info, call.by),
        queue_attribute=settings.attribute_of(info),
        queue_quota=settings.quota_reply(info.read_qps, info.write_qps),
        enable_priority=info.priority,
        topic_queue=info.fifo,
        delete_message_force=not info.keep_unacked,
        default_tag_name=info.default_tag_name or None,
        permission_list={who: number_of(level, old=call.old_permissions) for who, level in levels.items()},
        redrive_policy=policy_reply(engine, info.redrive_policy, call.by),
        source_queues=[name_of(engine, source, call.by) for source in info.source_queues],
        create_timestamp=info.created_at_ms,
        last_modified_timestamp=max(info.created_at_ms, info.purged_at_ms),
        queue_tag_map={
            tag.name: _tag_of(engine, info, number, tag, call.by) for number, tag in enumerate(info.tags[1:], 1)
        },
    )
    return wire.GetQueueMetaResponse(queue_meta=meta)


def _tag_of(engine: Engine, queue: QueueInfo, number: int, tag: TagInfo, by: Principal) -> wire.QueueTag:
    name, value, several = filters.parts_of(engine, tag.filter)
    return wire.QueueTag(
        queue_name=full_name(engine, queue, by),
        tag_name=tag.name,
        tag_id=number,
        start_timestamp=start_of(queue.created_at_ms, tag),
        create_timestamp=tag.created_at_ms,
        attribute_name=_SEVERAL if several is not None else name,
        attribute_value=value,
        user_attributes=tag.user_attributes or None,
        attributes_filter=several,
        read_qps_quota=tag.read_qps or None,
    )


async def copy_queue(engine: Engine, call: Call) -> None:
    """Make a queue by what `getQueueMeta` says of another, here or elsewhere. For administrators,
    unless it is to be their own.
    """
    meta: wire.QueueMeta = call.body.queue_meta
    owner, name = split(meta.queue_name)
    if owner in ("", NO_DEVELOPER):
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"a copy is named owner/name, given {meta.queue_name[:200]!r}")
    name = new_name(engine, owner, name, call.by)
    topics = True if meta.topic_queue else None
    wanted = structs.replace(
        settings.settings_of(meta.queue_attribute),
        redrive_policy=await policy_of(engine, meta.redrive_policy, call.by),
        fifo=topics,
        dedup_scope="group" if topics else None,
        one_per_group=topics,
        priority=meta.enable_priority,
        keep_unacked=settings.keep_unacked(meta.delete_message_force),
        default_tag_name=meta.default_tag_name,
        grants=_grants(owner, meta.permission_list or {}, old=call.old_permissions),
        **settings.quota_of(meta.queue_quota),
    )
    tags = [_new_tag(engine, tag) for tag in _in_order(meta.queue_tag_map or {})]
    try:
        _, made = await engine.queues.create_queue(call.by, name, wanted, tags, owner)
    except QueueExists:
        made = False
    if not made:
        raise exists(name_of(engine, name, call.by))


def _grants(owner: str, levels: dict[str, int], *, old: bool) -> list[Grant]:
    given = {who: level_of(number, old=old) for who, number in levels.items() if who != owner}
    return [Grant(True, [who], [], level) for who, level in given.items() if level != Level.NONE]


def _in_order(tags: dict[str, wire.QueueTag]) -> list[wire.QueueTag]:
    """By their ids. Raises EmqError."""
    ids = {tag.tag_id for tag in tags.values()}
    if len(ids) < len(tags) or min(ids, default=1) < 1:
        raise EmqError(
            ErrorCode.INVALID_ATTRIBUTE, f"the tags of a queue have ids above 0, each its own, given {sorted(ids)}"
        )
    return sorted(tags.values(), key=lambda tag: tag.tag_id)


def _new_tag(engine: Engine, tag: wire.QueueTag) -> NewTag:
    single = tag.attributes_filter is None
    wanted = wire.CreateTagRequest(
        queue_name=tag.queue_name,
        tag_name=tag.tag_name,
        attribute_name=tag.attribute_name if single else None,
        attribute_value=tag.attribute_value if single else None,
        attributes_filter=tag.attributes_filter,
    )
    notes = settings.user_attributes(tag.user_attributes) or {}
    return NewTag(
        tag.tag_name,
        filters.filter_of(engine, wanted),
        notes,
        checked("readQPSQuota", tag.read_qps_quota, *settings.QPS) or 0,
    )


async def verify_emq_admin(engine: Engine, call: Call) -> wire.VerifyEMQAdminResponse:
    """The owner's part of the names of an administrator's queues; refused to others."""
    if not engine.callers.is_admin(call.by, call.by.id):
        raise NotAuthorised(f"principal {call.by.id!r} is no administrator", field="principal", given=call.by.id)
    return wire.VerifyEMQAdminResponse(prefix=call.by.id)


async def verify_emq_admin_role(engine: Engine, call: Call) -> wire.VerifyEMQAdminRoleResponse:
    """Whether a developer is an administrator."""
    given: wire.VerifyEMQAdminRoleRequest = call.body
    return wire.VerifyEMQAdminRoleResponse(
        is_admin_role=engine.callers.is_admin(call.by, given.grantee_id or call.by.id)
    )
