"""Methods on permissions: EMQ's numbers and the engine's levels.

Clients before 2017-09 number FULL_CONTROL as 9, which is PEEK_MESSAGE to newer ones; nothing in a
request tells which it is, so a setting does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import QueueNotFound
from facade.dialects.emq.queues.call import Call, EmqError
from facade.dialects.emq.queues.names import is_own, record_of
from facade.dialects.emq.wire.enums import Permission
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs import access as wire
from schemas.vocabulary import Level

if TYPE_CHECKING:
    from engine.engine import Engine

_LEVELS: Final[dict[Permission, Level]] = {
    Permission.NONE: Level.NONE,
    Permission.SEND_MESSAGE: Level.SEND,
    Permission.RECEIVE_MESSAGE: Level.RECEIVE,
    Permission.SEND_RECEIVE_MESSAGE: Level.SEND_RECEIVE,
    Permission.HANDLE_MESSAGE: Level.HANDLE,
    Permission.SEND_HANDLE_MESSAGE: Level.SEND_HANDLE,
    Permission.GET_QUEUE_INFO: Level.GET_INFO,
    Permission.USE_QUEUE: Level.USE,
    Permission.ADMIN_QUEUE: Level.ADMIN,
    Permission.PEEK_MESSAGE: Level.PEEK,
    Permission.DELETE_PEEK_MESSAGE: Level.DELETE_PEEK,
    Permission.FULL_CONTROL: Level.FULL_CONTROL,
}
_PERMISSIONS: Final = {level: permission for permission, level in _LEVELS.items()}
OLD_FULL_CONTROL: Final = 9


def level_of(number: int, *, old: bool) -> Level:
    """The level that a client means by a number. Raises EmqError."""
    if old and number == OLD_FULL_CONTROL:
        return Level.FULL_CONTROL
    if number not in _LEVELS:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, f"permission must be one of 0 to {max(_LEVELS)}, given {number}")
    return _LEVELS[Permission(number)]


def number_of(level: Level, *, old: bool) -> int:
    """The number by which a client knows a level. Old clients do not know PEEK_MESSAGE, whose
    number is FULL_CONTROL to them: they are shown NONE. EMQ has no word for UNMASK: it is shown as
    PEEK.
    """
    level = Level.PEEK if level == Level.UNMASK else level
    if old and level in (Level.FULL_CONTROL, Level.PEEK):
        return OLD_FULL_CONTROL if level == Level.FULL_CONTROL else int(Permission.NONE)
    return int(_PERMISSIONS[level])


async def set_permission(engine: Engine, call: Call) -> None:
    """Give a developer a permission, in place of the one it had."""
    given: wire.SetPermissionRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    await engine.callers.grant(
        call.by, record.name, given.developer_id, level_of(given.permission, old=call.old_permissions)
    )


async def revoke_permission(engine: Engine, call: Call) -> None:
    """Take a developer's permission away."""
    given: wire.RevokePermissionRequest = call.body
    await engine.callers.grant(
        call.by, (await record_of(engine, given.queue_name, call.by)).name, given.developer_id, Level.NONE
    )


async def query_permission(engine: Engine, call: Call) -> wire.QueryPermissionResponse:
    """The permission of who asks: NONE where they have none, which is the same answer whether there
    is such a queue or not, but for who would know.
    """
    try:
        record = await record_of(engine, call.body.queue_name, call.by)
    except QueueNotFound:
        is_service_admin = not call.by.account and engine.callers.is_admin(call.by, call.by.id)
        if is_service_admin or is_own(call.body.queue_name, call.by):
            raise
        return wire.QueryPermissionResponse(permission=int(Permission.NONE))
    level = await engine.callers.get_grant(call.by, record.name, call.by.id)
    return wire.QueryPermissionResponse(permission=number_of(level, old=call.old_permissions))


async def query_permission_for_id(engine: Engine, call: Call) -> wire.QueryPermissionForIdResponse:
    """The permission of a developer."""
    given: wire.QueryPermissionForIdRequest = call.body
    record = await record_of(engine, given.queue_name, call.by)
    level = await engine.callers.get_grant(call.by, record.name, given.developer_id)
    return wire.QueryPermissionForIdResponse(permission=number_of(level, old=call.old_permissions))


async def list_permissions(engine: Engine, call: Call) -> wire.ListPermissionsResponse:
    """Who has which permission, the owner among them."""
    record = await record_of(engine, call.body.queue_name, call.by)
    levels = {record.owner: Level.FULL_CONTROL, **await engine.callers.list_grants(call.by, record.name)}
    return wire.ListPermissionsResponse(
        permission_list={who: number_of(level, old=call.old_permissions) for who, level in levels.items()}
    )
