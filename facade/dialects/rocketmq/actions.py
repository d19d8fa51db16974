"""Which function does which method of the service."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from msgspec import Struct

from facade.dialects.rocketmq.clients import presence
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.messages import handles, recall, send, transactions
from facade.dialects.rocketmq.queues import routes
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb


class Action(Struct, frozen=True):
    """What does a method of one request and one answer; `request` and `response` are their
    classes.
    """

    request: Any
    response: Any
    run: Callable[[Call, Clients], Coroutine[Any, Any, Any]]


async def _query_route(call: Call, clients: Clients) -> pb.QueryRouteResponse:
    return await routes.query_route(call)


async def _query_assignment(call: Call, clients: Clients) -> pb.QueryAssignmentResponse:
    return await routes.query_assignment(call)


ACTIONS: Final[dict[str, Action]] = {
    "QueryRoute": Action(pb.QueryRouteRequest, pb.QueryRouteResponse, _query_route),
    "Heartbeat": Action(pb.HeartbeatRequest, pb.HeartbeatResponse, presence.heartbeat),
    "SendMessage": Action(pb.SendMessageRequest, pb.SendMessageResponse, send.send_message),
    "QueryAssignment": Action(pb.QueryAssignmentRequest, pb.QueryAssignmentResponse, _query_assignment),
    "AckMessage": Action(pb.AckMessageRequest, pb.AckMessageResponse, handles.ack_message),
    "ChangeInvisibleDuration": Action(
        pb.ChangeInvisibleDurationRequest, pb.ChangeInvisibleDurationResponse, handles.change_invisible_duration
    ),
    "ForwardMessageToDeadLetterQueue": Action(
        pb.ForwardMessageToDeadLetterQueueRequest,
        pb.ForwardMessageToDeadLetterQueueResponse,
        handles.forward_to_dead_letter_queue,
    ),
    "EndTransaction": Action(pb.EndTransactionRequest, pb.EndTransactionResponse, transactions.end_transaction),
    "NotifyClientTermination": Action(
        pb.NotifyClientTerminationRequest, pb.NotifyClientTerminationResponse, presence.notify_client_termination
    ),
    "RecallMessage": Action(pb.RecallMessageRequest, pb.RecallMessageResponse, recall.recall_message),
}
RECEIVE: Final = "ReceiveMessage"
TELEMETRY: Final = "Telemetry"
