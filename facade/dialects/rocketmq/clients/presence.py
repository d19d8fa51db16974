"""Heartbeat and NotifyClientTermination: clients say that they live, and that they go.

Nothing is asked of a client before: after a restart of this worker it goes on as it was.
"""

from __future__ import annotations

import logging
from typing import Final

from engine.errors import EngineError
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.names import group_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import ok

_BATCH: Final = 100

log = logging.getLogger("leaseway.rocketmq")


async def heartbeat(call: Call, clients: Clients) -> pb.HeartbeatResponse:
    """Notes that the client lives: its leases are renewed."""
    given: pb.HeartbeatRequest = call.body
    if given.HasField("group") and given.group.name:
        group_of(given.group)
    clients.renewals.heard(call.by, call.client_id)
    return pb.HeartbeatResponse(status=ok())


async def notify_client_termination(call: Call, clients: Clients) -> pb.NotifyClientTerminationResponse:
    """Gives back what the client still holds of the leases that were renewed for it: others receive
    it at once. What fails comes back when the leases run out.
    """
    for queue, handles in clients.renewals.leave(call.by, call.client_id).items():
        for first in range(0, len(handles), _BATCH):
            try:
                await call.engine.messages.release(call.by, queue, handles[first : first + _BATCH])
            except EngineError as error:
                log.warning("action=leave queue=%s leases=%d error=%s", queue, len(handles), error)
    return pb.NotifyClientTerminationResponse(status=ok())
