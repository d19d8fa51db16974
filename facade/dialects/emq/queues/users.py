"""Methods on users: contacts and quotas. A user that is not named is who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.shapes import UserInfo
from facade.dialects.emq.queues import settings
from facade.dialects.emq.queues.call import Call, checked
from facade.dialects.emq.wire.structs import statistics as wire
from facade.dialects.emq.wire.structs.queue import Throughput

if TYPE_CHECKING:
    from engine.engine import Engine

_QUEUES: Final = (0, 1_000_000)


async def set_user_info(engine: Engine, call: Call) -> None:
    """Note how to reach a user. Alerts and statistics go to the address."""
    given: wire.SetUserInfoRequest = call.body
    who = given.developer_id or call.by.id
    await engine.callers.set_contacts(call.by, who, given.user_name or "", given.email or "", given.sms or "")


async def get_user_info(engine: Engine, call: Call) -> wire.GetUserInfoResponse:
    """How to reach a user."""
    user = await engine.callers.get_user(call.by, call.body.developer_id or call.by.id)
    return wire.GetUserInfoResponse(
        developer_id=user.name, user_name=user.display_name or None, email=user.email or None, sms=user.phone or None
    )


async def set_user_quota(engine: Engine, call: Call) -> None:
    """Bound what a user may use; for administrators. What is not named has no bound."""
    given: wire.SetUserQuotaRequest = call.body
    throughput = given.user_quota.throughput or Throughput()
    read, write = (
        checked("readQps", throughput.read_qps, *settings.QPS),
        checked("writeQps", throughput.write_qps, *settings.QPS),
    )
    queues = checked("queueNumber", given.user_quota.queue_number, *_QUEUES)
    await engine.callers.set_user_quota(call.by, given.developer_id, read or 0, write or 0, queues or 0)


async def get_user_quota(engine: Engine, call: Call) -> wire.GetUserQuotaResponse:
    """What a user may use; 0 = no bound."""
    user: UserInfo = await engine.callers.get_user(call.by, call.body.developer_id or call.by.id)
    return _quota(user.name, user.queues, user.read_qps, user.write_qps)


async def get_user_used_quota(engine: Engine, call: Call) -> wire.GetUserQuotaResponse:
    """What a user has: queues, and the sums of their quotas."""
    who = call.body.developer_id or call.by.id
    use = await engine.callers.get_user_use(call.by, who)
    return _quota(who, use.queues, use.read_qps, use.write_qps)


def _quota(who: str, queues: int, read_qps: int, write_qps: int) -> wire.GetUserQuotaResponse:
    throughput = Throughput(read_qps=read_qps, write_qps=write_qps)
    return wire.GetUserQuotaResponse(
        developer_id=who, user_quota=wire.UserQuota(throughput=throughput, queue_number=queues)
    )
