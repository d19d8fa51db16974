"""Operations on queues, their redrive policies and tags.

Each reads its parameters, asks the engine, and renders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from facade.dialects.native.reference import examples
from facade.dialects.native.wire.render import counts_reply, pause_reply, policy_reply, queue_reply, tag_reply
from facade.dialects.native.wire.replies import PauseReply, QueuesReply, RedrivePolicyReply, TagReply, TagsReply
from facade.dialects.native.wire.settings import CreateQueueBody, QueueReply, SetQueueBody, policy_of, settings_of
from facade.dialects.native.wire.shapes import (
    CopyBody,
    CreateTagBody,
    ListQueuesQuery,
    PauseBody,
    RedrivePolicyBody,
    SeekBody,
)
from facade.dialects.native.wire.translate import filter_of
from facade.dialects.native.wire.units import QUEUE_RULE, TAG_RULE
from facade.http.operation import Answer, Call, Operation
from facade.http.problem import ProblemError

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal

_QUEUE = {"queue": QUEUE_RULE}


def _at(queue: str) -> tuple[tuple[str, str], ...]:
    return (("location", f"/v1/queues/{queue}"),)


async def create_queue(engine: Engine, call: Call) -> Answer:
    """Create a queue: 201, or 200 if an equal one exists."""
    queue, made = await engine.queues.create_queue(call.by, call.body.name, settings_of(call.body))
    return Answer(queue_reply(queue), 201 if made else 200, _at(queue.name))


async def list_queues(engine: Engine, call: Call) -> Answer:
    """A page of names, or of counts."""
    asked: ListQueuesQuery = call.query
    if asked.counts:
        return await _counts(engine, call.by, asked)
    for field in ("sort", "cursor", "dead_letters"):
        if (given := getattr(asked, field)) not in (UNSET, False):
            raise ProblemError("invalid_value", f"{field} is for counts=true", field=field, given=given)
    names, after = await engine.queues.list_queues(
        call.by, asked.prefix, asked.limit, None if asked.after is UNSET else asked.after
    )
    return Answer(QueuesReply(queues=names, next=after))


async def _counts(engine: Engine, by: Principal, asked: ListQueuesQuery) -> Answer:
    if asked.after is not UNSET:
        raise ProblemError(
            "invalid_value", "with counts=true the next page is named by `cursor`", field="after", given=asked.after
        )
    sort, cursor = asked.sort or "name", asked.cursor or ""
    rows, after = await engine.queues.list_counts(
        by, asked.prefix, asked.limit, sort, cursor, dead_letters=asked.dead_letters
    )
    return Answer(
        QueuesReply(queues=[row.name for row in rows], counts=[counts_reply(row) for row in rows], next=after)
    )


async def get_queue(engine: Engine, call: Call) -> Answer:
    """A queue with its tags and counts."""
    return Answer(queue_reply(await engine.queues.get_queue(call.by, call.path["queue"])))


async def set_queue(engine: Engine, call: Call) -> Answer:
    """Change settings."""
    return Answer(queue_reply(await engine.queues.set_queue(call.by, call.path["queue"], settings_of(call.body))))


async def delete_queue(engine: Engine, call: Call) -> Answer:
    """Delete a queue and its messages."""
    await engine.queues.delete_queue(call.by, call.path["queue"])
    return Answer(status=204)


async def purge(engine: Engine, call: Call) -> Answer:
    """Settle all messages sent so far."""
    await engine.queues.purge(call.by, call.path["queue"])
    return Answer(status=204)


async def pause(engine: Engine, call: Call) -> Answer:
    """Have nobody receive, from a queue or under a tag."""
    return Answer(
        pause_reply(await engine.queues.pause(call.by, call.path["queue"], call.path.get("tag"), call.body.reason))
    )


async def resume(engine: Engine, call: Call) -> Answer:
    """Have a queue or tag received from again."""
    await engine.queues.resume(call.by, call.path["queue"], call.path.get("tag"))
    return Answer(status=204)


async def copy_queue(engine: Engine, call: Call) -> Answer:
    """Create a queue like another."""
    queue = await engine.queues.copy_queue(call.by, call.path["queue"], call.body.target)
    return Answer(queue_reply(queue), 201, _at(queue.name))


async def get_redrive_policy(engine: Engine, call: Call) -> Answer:
    """The redrive policy; 404 if there is none."""
    policy, fault = await engine.queues.get_redrive_policy(call.by, call.path["queue"])
    if policy is None:
        raise ProblemError("no_redrive_policy", given=call.path["queue"])
    return Answer(policy_reply(policy, fault))


async def set_redrive_policy(engine: Engine, call: Call) -> Answer:
    """Set the redrive policy."""
    wanted = policy_of(call.body)
    policy = await engine.queues.set_redrive_policy(call.by, call.path["queue"], wanted)
    return Answer(policy_reply(policy or wanted, ""))


async def delete_redrive_policy(engine: Engine, call: Call) -> Answer:
    """Remove the redrive policy; nothing to remove is fine."""
    await engine.queues.set_redrive_policy(call.by, call.path["queue"], None)
    return Answer(status=204)


async def create_tag(engine: Engine, call: Call) -> Answer:
    """Create a tag: 201, or 200 if an equal one exists."""
    body: CreateTagBody = call.body
    policy = None if body.redrive_policy is None else policy_of(body.redrive_policy)
    notes = body.user_attributes or {}
    tag, made = await engine.queues.create_tag(
        call.by, call.path["queue"], body.name, body.start_at_ms, filter_of(body.filter), notes, body.read_qps, policy
    )
    return Answer(tag_reply(tag), 201 if made else 200)


async def list_tags(engine: Engine, call: Call) -> Answer:
    """All tags with counts."""
    return Answer(
        TagsReply(tags=[tag_reply(tag) for tag in await engine.queues.list_tags(call.by, call.path["queue"])])
    )


async def seek(engine: Engine, call: Call) -> Answer:
    """Have a tag begin anew: what it has settled since then is received again."""
    body: SeekBody = call.body
    if (body.to is None) == (body.to_ms is None):
        raise ProblemError("missing_field", "A seek needs to or to_ms, and not both.", field="to")
    to_ms = body.to_ms if body.to_ms is not None else 0 if body.to == "earliest" else -1
    return Answer(tag_reply(await engine.queues.seek(call.by, call.path["queue"], call.path["tag"], to_ms)))


async def delete_tag(engine: Engine, call: Call) -> Answer:
    """Delete a tag with its leases and counts."""
    await engine.queues.delete_tag(call.by, call.path["queue"], call.path["tag"])
    return Answer(status=204)


def _operation(
    name: str, method: str, path: str, summary: str, run: Any, replies: dict[int, Any], **more: Any
) -> Operation:
    group = "Tags" if "/tags" in path else "Queues"
    rules = _QUEUE if "{queue}" in path else {}
    if "{tag}" in path:
        rules = {**rules, "tag": TAG_RULE}
    found = ("queue_not_found",) if rules else ()
    return Operation(
        name=name,
        method=method,
        path="/v1/queues" + path,
        group=group,
        summary=summary,
        run=run,
        replies=replies,
        example=examples.QUEUES[name],
        rules=rules,
        codes=(*found, *more.pop("codes", ())),
        **more,
    )


def _pauses(below: str, of: str, pauses: str, resumes: str) -> tuple[Operation, Operation]:
    """To pause what stands at a path, and to resume it; each may be repeated."""
    path, codes = "/{queue}" + below, ("queue_in_use", *(("tag_not_found",) if below else ()))
    return (
        _operation(
            "pause" + of,
            "POST",
            path + "/pause",
            pauses,
            pause,
            {200: PauseReply},
            body=PauseBody,
            body_optional=True,
            codes=codes,
        ),
        _operation("resume" + of, "POST", path + "/resume", resumes, resume, {204: None}, codes=codes),
    )


_MADE = {201: QueueReply, 200: QueueReply}
_POLICY = "/{queue}/redrive-policy"

OPERATIONS = (
    _operation(
        "create_queue",
        "POST",
        "",
        "Create a queue",
        create_queue,
        _MADE,
        body=CreateQueueBody,
        codes=("queue_exists", "queue_in_use", "quota_exceeded"),
    ),
    _operation(
        "list_queues",
        "GET",
        "",
        "List names, or counts, of queues",
        list_queues,
        {200: QueuesReply},
        query=ListQueuesQuery,
    ),
    _operation("get_queue", "GET", "/{queue}", "A queue: settings, tags, counts", get_queue, {200: QueueReply}),
    _operation(
        "set_queue",
        "PATCH",
        "/{queue}",
        "Change settings",
        set_queue,
        {200: QueueReply},
        body=SetQueueBody,
        codes=("queue_in_use",),
    ),
    _operation(
        "delete_queue",
        "DELETE",
        "/{queue}",
        "Delete a queue and its messages",
        delete_queue,
        {204: None},
        codes=("queue_in_use",),
    ),
    _operation(
        "purge", "POST", "/{queue}/purge", "Settle all messages sent so far, under all tags", purge, {204: None}
    ),
    *_pauses("", "", "Let nobody receive from a queue, under any tag", "Let a queue be received from again"),
    _operation(
        "copy_queue",
        "POST",
        "/{queue}/copy",
        "Create a queue with the settings, tags and policy of this one",
        copy_queue,
        {201: QueueReply},
        body=CopyBody,
        codes=("queue_exists", "queue_in_use"),
    ),
    _operation(
        "get_redrive_policy",
        "GET",
        _POLICY,
        "The redrive policy",
        get_redrive_policy,
        {200: RedrivePolicyReply},
        codes=("no_redrive_policy",),
    ),
    _operation(
        "set_redrive_policy",
        "PUT",
        _POLICY,
        "Set the redrive policy",
        set_redrive_policy,
        {200: RedrivePolicyReply},
        body=RedrivePolicyBody,
        codes=("not_allowed_on_queue", "queue_in_use"),
    ),
    _operation(
        "delete_redrive_policy", "DELETE", _POLICY, "Remove the redrive policy", delete_redrive_policy, {204: None}
    ),
    _operation(
        "create_tag",
        "POST",
        "/{queue}/tags",
        "Create a tag",
        create_tag,
        {201: TagReply, 200: TagReply},
        body=CreateTagBody,
        codes=("tag_exists", "queue_in_use"),
    ),
    _operation("list_tags", "GET", "/{queue}/tags", "All tags with counts", list_tags, {200: TagsReply}),
    _operation(
        "delete_tag",
        "DELETE",
        "/{queue}/tags/{tag}",
        "Delete a tag",
        delete_tag,
        {204: None},
        codes=("tag_not_found", "queue_in_use"),
    ),
    _operation(
        "seek",
        "POST",
        "/{queue}/tags/{tag}/seek",
        "Have a tag begin anew at a time: later messages are received again, earlier ones are settled",
        seek,
        {200: TagReply},
        body=SeekBody,
        codes=("tag_not_found", "not_allowed_on_queue", "queue_in_use"),
    ),
    *_pauses("/tags/{tag}", "_tag", "Let nobody receive under a tag", "Let messages be received under a tag again"),
)
