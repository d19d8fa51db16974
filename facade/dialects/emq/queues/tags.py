"""Methods on tags. A tag without a name is the default tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import TagExists
from engine.shapes import TagInfo
from facade.dialects.emq.queues import filters, settings
from facade.dialects.emq.queues.call import Call, EmqError, checked
from facade.dialects.emq.queues.names import full_name, record_of
from facade.dialects.emq.queues.queues import state_of
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs import access as wire

if TYPE_CHECKING:
    from engine.engine import Engine
    from schemas.records import TagRecord


async def create_tag(engine: Engine, call: Call) -> wire.CreateTagResponse:
    """Make a tag. One of that name is refused, also when it is equal: a tag can't be changed."""
    given: wire.CreateTagRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    if not given.tag_name:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, "the request names no tag")
    start = -1 if given.start_timestamp is None else given.start_timestamp
    notes = settings.user_attributes(given.user_attributes) or {}
    read_qps = checked("readQPSQuota", given.read_qps_quota, *settings.QPS) or 0
    tag, made = await engine.queues.create_tag(
        call.by, record.name, given.tag_name, start, filters.filter_of(engine, given), notes, read_qps
    )
    if not made:
        raise TagExists(f"queue {given.queue_name!r} has a tag {given.tag_name!r}", field="tag", given=given.tag_name)
    return wire.CreateTagResponse(
        queue_name=full_name(engine, record, call.by),
        tag_name=tag.name,
        start_timestamp=start_of(record.created_at_ms, tag),
        read_qps_quota=read_qps,
    )


def start_of(queue_created_at_ms: int, tag: TagInfo | TagRecord) -> int:
    """The real start of a tag that was told to begin earlier than its queue."""
    return max(tag.start_at_ms, queue_created_at_ms)


async def delete_tag(engine: Engine, call: Call) -> None:
    """Delete a tag."""
    given: wire.DeleteTagRequest = call.body
    await engine.queues.delete_tag(call.by, (await record_of(engine, given.queue_name, call.by)).name, given.tag_name)


async def get_tag_info(engine: Engine, call: Call) -> wire.GetTagInfoResponse:
    """A tag: its start, filter and counts."""
    given: wire.GetTagInfoRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    tag = _named(
        await engine.queues.list_tags(call.by, record.name),
        given.tag_name or record.default_tag_name,
        record.default_tag_name,
    )
    name, value, several = filters.parts_of(engine, tag.filter)
    return wire.GetTagInfoResponse(
        queue_name=full_name(engine, record, call.by),
        tag_name=given.tag_name or record.default_tag_name or None,
        tag_state=state_of(tag.created_at_ms, tag.created_at_ms, tag),
        start_timestamp=start_of(record.created_at_ms, tag),
        read_qps_quota=tag.read_qps,
        attribute_name=name,
        attribute_value=value,
        user_attributes=tag.user_attributes or None,
        attributes_filter=several,
    )


def _named(tags: list[TagInfo], name: str, default_name: str) -> TagInfo:
    """The tag of that name. Raises EmqError."""
    if not name or name == default_name:
        return tags[0]
    for tag in tags:
        if tag.name == name:
            return tag
    raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"the queue has no tag {name[:200]!r}")


async def list_tag(engine: Engine, call: Call) -> wire.ListTagResponse:
    """The names of all tags but the default one, which need not have a name."""
    record = await record_of(engine, call.body.queue_name, call.by)
    tags = await engine.queues.list_tags(call.by, record.name)
    own = [record.default_tag_name] if record.default_tag_name else []
    return wire.ListTagResponse(
        queue_name=full_name(engine, record, call.by), tag_name=[*own, *(tag.name for tag in tags[1:])]
    )
