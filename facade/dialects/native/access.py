"""Operations on rights: levels of permission on a queue, queues of others, users, and access keys.

Each reads its parameters, asks the engine, and renders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, structs

from facade.dialects.native.reference import examples
from facade.dialects.native.wire.keys import (
    CreateKeyBody,
    GrantReply,
    GrantsReply,
    KeyReply,
    KeysReply,
    NewKeyReply,
    QueueRightsReply,
    RightsReply,
    RotateKeyBody,
    SetKeyBody,
    UserReply,
)
from facade.dialects.native.wire.render import key_reply, user_reply
from facade.dialects.native.wire.replies import SharedQueueReply, SharedQueuesReply
from facade.dialects.native.wire.shapes import ContactsBody, GrantBody, ListQueuesQuery, UserQuotaBody
from facade.dialects.native.wire.units import KEY_RULE, PRINCIPAL_RULE, QUEUE_RULE, TAG_RULE, to_ms
from facade.http.operation import Answer, Call, Operation
from facade.http.problem import ProblemError
from schemas.vocabulary import Level, Role

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import UserInfo

_GRANTS: Final = "/v1/queues/{queue}/grants"
_GRANT: Final = _GRANTS + "/{principal}"
_TAG_GRANTS: Final = "/v1/queues/{queue}/tags/{tag}/grants"
_TAG_GRANT: Final = _TAG_GRANTS + "/{principal}"
_USER: Final = "/v1/users/{user}"
_KEY: Final = "/v1/keys/{key}"
_WHO: Final = {"user": PRINCIPAL_RULE}
_QUEUE: Final = {"queue": QUEUE_RULE}
_PRINCIPAL: Final = {"queue": QUEUE_RULE, "principal": PRINCIPAL_RULE}
_TAG: Final = {"queue": QUEUE_RULE, "tag": TAG_RULE}
_TAG_PRINCIPAL: Final = {**_TAG, "principal": PRINCIPAL_RULE}


# Levels on a queue; where the path names a tag, on messages of that tag alone.


async def list_grants(engine: Engine, call: Call) -> Answer:
    """Who has which level."""
    levels = await engine.callers.list_grants(call.by, call.path["queue"], call.path.get("tag", ""))
    return Answer(GrantsReply(grants=[GrantReply(principal=who, level=level) for who, level in sorted(levels.items())]))


async def get_grant(engine: Engine, call: Call) -> Answer:
    """The level of one principal; everybody may ask for their own."""
    who = call.path["principal"]
    return Answer(GrantReply(principal=who, level=await engine.callers.get_grant(call.by, call.path["queue"], who)))


async def grant(engine: Engine, call: Call) -> Answer:
    """Give a principal a level, in place of the one it had."""
    body: GrantBody = call.body
    who = call.path["principal"]
    await engine.callers.grant(call.by, call.path["queue"], who, body.level, call.path.get("tag", ""))
    return Answer(GrantReply(principal=who, level=body.level))


async def revoke(engine: Engine, call: Call) -> Answer:
    """Take a principal's level away."""
    await engine.callers.grant(
        call.by, call.path["queue"], call.path["principal"], Level.NONE, call.path.get("tag", "")
    )
    return Answer(status=204)


async def get_rights(engine: Engine, call: Call) -> Answer:
    """Who asks, and what they may do that is about no queue."""
    by = call.by
    may = await engine.callers.rights(by)
    role = Role.ADMIN if by.admin else by.role
    return Answer(RightsReply(principal=by.id, key_id=by.key_id, role=role, may=list(may)))


async def get_queue_rights(engine: Engine, call: Call) -> Answer:
    """What who asks may do with a queue."""
    queue = call.path["queue"]
    found = await engine.callers.queue_rights(call.by, queue)
    tags = {tag: list(map(str, verbs)) for tag, verbs in found.tags.items()}
    return Answer(QueueRightsReply(queue=queue, may=list(found.verbs), tags=tags))


async def list_shared(engine: Engine, call: Call) -> Answer:
    """A page of queues of others with which who asks was given a right."""
    asked: ListQueuesQuery = call.query
    queues, after = await engine.queues.list_shared(
        call.by, asked.prefix, asked.limit, None if asked.after is UNSET else asked.after
    )
    return Answer(SharedQueuesReply(queues=[SharedQueueReply(**structs.asdict(queue)) for queue in queues], next=after))


async def _user(engine: Engine, call: Call, user: UserInfo) -> Answer:
    return Answer(user_reply(user, await engine.callers.get_user_use(call.by, user.name)))


async def get_user(engine: Engine, call: Call) -> Answer:
    """A user: contacts, quotas, and what they have."""
    return await _user(engine, call, await engine.callers.get_user(call.by, call.path["user"]))


async def set_contacts(engine: Engine, call: Call) -> Answer:
    """Note how to reach a user."""
    body: ContactsBody = call.body
    user = await engine.callers.set_contacts(
        call.by, call.path["user"], body.display_name, body.email, body.phone, body.webhook
    )
    return await _user(engine, call, user)


async def set_user_quota(engine: Engine, call: Call) -> Answer:
    """Bound what a user may use."""
    body: UserQuotaBody = call.body
    more = {
        field: given for field in ("partitions", "daily_bytes", "waits") if (given := getattr(body, field)) is not UNSET
    }
    user = await engine.callers.set_user_quota(
        call.by, call.path["user"], body.read_qps, body.write_qps, body.queues, **more
    )
    return await _user(engine, call, user)


async def create_key(engine: Engine, call: Call) -> Answer:
    """Create an access key."""
    body: CreateKeyBody = call.body
    role = (Role.ADMIN if body.admin else Role.MEMBER) if body.role is UNSET else body.role
    if body.admin and role != Role.ADMIN:
        raise ProblemError(
            "invalid_value",
            f"A key with admin has the role admin, given {role[:100]!r}.",
            field="role",
            given=role[:100],
        )
    key_id, secret = await engine.callers.create_key(call.by, body.key_id, body.principal, role, body.expires_at_ms)
    return Answer(NewKeyReply(key_id=key_id, secret=secret), 201)


async def list_keys(engine: Engine, call: Call) -> Answer:
    """All access keys, without secrets."""
    return Answer(KeysReply(keys=[key_reply(key) for key in await engine.callers.list_keys(call.by)]))


async def set_key(engine: Engine, call: Call) -> Answer:
    """Change an access key: its role, its end, whether it counts."""
    body: SetKeyBody = call.body
    role, expires_at_ms, disabled = (None if value is UNSET else value for value in structs.astuple(body))
    return Answer(key_reply(await engine.callers.set_key(call.by, call.path["key"], role, expires_at_ms, disabled)))


async def rotate_key(engine: Engine, call: Call) -> Answer:
    """Give an access key another secret; a key may do so for itself."""
    grace_ms = to_ms(call.body.grace_seconds)
    assert grace_ms is not None
    secret = await engine.callers.rotate_key(call.by, call.path["key"], grace_ms)
    return Answer(NewKeyReply(key_id=call.path["key"], secret=secret))


async def delete_key(engine: Engine, call: Call) -> Answer:
    """Delete an access key."""
    await engine.callers.delete_key(call.by, call.path["key"])
    return Answer(status=204)


OPERATIONS = (
    Operation(
        name="list_grants",
        method="GET",
        path=_GRANTS,
        group="Rights",
        summary="Who has which level on a queue",
        run=list_grants,
        replies={200: GrantsReply},
        example=examples.RIGHTS["list_grants"],
        rules=_QUEUE,
        codes=("queue_not_found",),
    ),
    Operation(
        name="get_grant",
        method="GET",
        path=_GRANT,
        group="Rights",
        summary="The level of one principal; everybody may ask for their own",
        run=get_grant,
        replies={200: GrantReply},
        example=examples.RIGHTS["get_grant"],
        rules=_PRINCIPAL,
        codes=("queue_not_found",),
    ),
    Operation(
        name="grant",
        method="PUT",
        path=_GRANT,
        group="Rights",
        summary="Give a principal a level on a queue, in place of the one it had",
        run=grant,
        replies={200: GrantReply},
        example=examples.RIGHTS["grant"],
        rules=_PRINCIPAL,
        body=GrantBody,
        codes=("queue_not_found", "queue_in_use"),
    ),
    Operation(
        name="revoke",
        method="DELETE",
        path=_GRANT,
        group="Rights",
        summary="Take a principal's level on a queue away",
        run=revoke,
        replies={204: None},
        example=examples.RIGHTS["revoke"],
        rules=_PRINCIPAL,
        codes=("queue_not_found", "queue_in_use"),
    ),
    Operation(
        name="list_tag_grants",
        method="GET",
        path=_TAG_GRANTS,
        group="Rights",
        summary="Who has which level on messages of a tag",
        run=list_grants,
        replies={200: GrantsReply},
        example=examples.RIGHTS["list_tag_grants"],
        rules=_TAG,
        codes=("queue_not_found", "tag_not_found"),
    ),
    Operation(
        name="grant_tag",
        method="PUT",
        path=_TAG_GRANT,
        group="Rights",
        summary="Give a principal a level on messages of a tag, in place of the one it had",
        run=grant,
        replies={200: GrantReply},
        example=examples.RIGHTS["grant_tag"],
        rules=_TAG_PRINCIPAL,
        body=GrantBody,
        codes=("queue_not_found", "tag_not_found", "queue_in_use"),
    ),
    Operation(
        name="revoke_tag",
        method="DELETE",
        path=_TAG_GRANT,
        group="Rights",
        summary="Take a principal's level on messages of a tag away",
        run=revoke,
        replies={204: None},
        example=examples.RIGHTS["revoke_tag"],
        rules=_TAG_PRINCIPAL,
        codes=("queue_not_found", "tag_not_found", "queue_in_use"),
    ),
    Operation(
        name="get_rights",
        method="GET",
        path="/v1/rights",
        group="Rights",
        summary="Who you are, and what you may do that is about no queue",
        run=get_rights,
        replies={200: RightsReply},
        example=examples.RIGHTS["get_rights"],
    ),
    Operation(
        name="get_queue_rights",
        method="GET",
        path="/v1/queues/{queue}/rights",
        group="Rights",
        summary="What you may do with a queue; everybody may ask who has a right on it",
        run=get_queue_rights,
        replies={200: QueueRightsReply},
        example=examples.RIGHTS["get_queue_rights"],
        rules=_QUEUE,
        codes=("queue_not_found",),
    ),
    Operation(
        name="list_shared",
        method="GET",
        path="/v1/shared-queues",
        group="Rights",
        summary="Queues of others with which you were given a right",
        run=list_shared,
        replies={200: SharedQueuesReply},
        example=examples.RIGHTS["list_shared"],
        query=ListQueuesQuery,
    ),
    Operation(
        name="get_user",
        method="GET",
        path=_USER,
        group="Users",
        summary="A user: contacts, quotas, and what they have; everybody may ask for their own",
        run=get_user,
        replies={200: UserReply},
        example=examples.RIGHTS["get_user"],
        rules=_WHO,
    ),
    Operation(
        name="set_contacts",
        method="PUT",
        path=_USER + "/contacts",
        group="Users",
        summary="Note how to reach a user; everybody may do so for themselves",
        run=set_contacts,
        replies={200: UserReply},
        example=examples.RIGHTS["set_contacts"],
        rules=_WHO,
        body=ContactsBody,
        codes=("queue_in_use",),
    ),
    Operation(
        name="set_user_quota",
        method="PUT",
        path=_USER + "/quota",
        group="Users",
        summary="Bound what a user may use; for administrators",
        run=set_user_quota,
        replies={200: UserReply},
        example=examples.RIGHTS["set_user_quota"],
        rules=_WHO,
        body=UserQuotaBody,
        codes=("queue_in_use",),
    ),
    Operation(
        name="create_key",
        method="POST",
        path="/v1/keys",
        group="Keys",
        summary="Create an access key; its secret is shown once",
        run=create_key,
        replies={201: NewKeyReply},
        example=examples.RIGHTS["create_key"],
        body=CreateKeyBody,
    ),
    Operation(
        name="list_keys",
        method="GET",
        path="/v1/keys",
        group="Keys",
        summary="All access keys, without secrets",
        run=list_keys,
        replies={200: KeysReply},
        example=examples.RIGHTS["list_keys"],
    ),
    Operation(
        name="set_key",
        method="PATCH",
        path=_KEY,
        group="Keys",
        summary="Change the role, the end or the state of an access key",
        run=set_key,
        replies={200: KeyReply},
        example=examples.RIGHTS["set_key"],
        rules={"key": KEY_RULE},
        body=SetKeyBody,
        codes=("key_not_found", "queue_in_use"),
    ),
    Operation(
        name="rotate_key",
        method="POST",
        path=_KEY + "/rotate",
        group="Keys",
        summary="Give an access key another secret, shown once; a key may do so for itself",
        run=rotate_key,
        replies={200: NewKeyReply},
        example=examples.RIGHTS["rotate_key"],
        rules={"key": KEY_RULE},
        body=RotateKeyBody,
        body_optional=True,
        codes=("key_not_found", "queue_in_use"),
    ),
    Operation(
        name="delete_key",
        method="DELETE",
        path=_KEY,
        group="Keys",
        summary="Delete an access key",
        run=delete_key,
        replies={204: None},
        example=examples.RIGHTS["delete_key"],
        rules={"key": KEY_RULE},
        codes=("key_not_found",),
    ),
)
