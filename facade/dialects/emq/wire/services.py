"""The three services as data: what each method takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from facade.dialects.emq.wire.kinds import Field, Shape, kind_of
from facade.dialects.emq.wire.structs import access, message, queue, statistics
from facade.dialects.emq.wire.structs.shared import GalaxyEmqServiceException, Version


class Argument(Struct, frozen=True, gc=False):
    """What a call carries: the one argument of its method."""

    value: Any


class NoArgument(Struct, frozen=True, gc=False):
    """What a call of a method without arguments carries."""

    value: None = None


class Result(Struct, frozen=True, gc=False):
    """What an answer carries: one of both, or neither if the method answers nothing."""

    success: Any = None
    e: GalaxyEmqServiceException | None = None


class Method(Struct, frozen=True, eq=False):
    """A method: how its call and its answer look. `is_void` = it answers nothing."""

    name: str
    call: Shape
    answer: Shape
    is_void: bool


class Service(Struct, frozen=True, eq=False):
    """A service and the path of its URL."""

    name: str
    path: str
    methods: Mapping[str, Method]


def _method(name: str, takes: Any, answers: Any) -> Method:
    call = (Field(1, "value", "request", kind_of(takes), is_required=True),) if takes is not None else ()
    failed = Field(1, "e", "e", kind_of(GalaxyEmqServiceException), is_required=False)
    done = (Field(0, "success", "success", kind_of(answers), is_required=False),) if answers is not None else ()
    return Method(
        name, Shape(name, Argument if call else NoArgument, call), Shape(name, Result, (*done, failed)), answers is None
    )


def _service(name: str, path: str, methods: Mapping[str, tuple[Any, Any]]) -> Service:
    return Service(name, path, {method: _method(method, *types) for method, types in {**_BASE, **methods}.items()})


# Method -> what it takes (None = no argument) and what it answers (None = nothing). Its argument
# has number 1; each may throw, as field 1 of its answer.
_BASE: Final[dict[str, tuple[Any, Any]]] = {
    "getServiceVersion": (None, Version),
    "validClientVersion": (Version, None),
}
_QUEUE: Final[dict[str, tuple[Any, Any]]] = {
    "createQueue": (queue.CreateQueueRequest, queue.CreateQueueResponse),
    "deleteQueue": (queue.DeleteQueueRequest, None),
    "purgeQueue": (queue.PurgeQueueRequest, None),
    "setQueueAttribute": (queue.SetQueueAttributesRequest, queue.SetQueueAttributesResponse),
    "setQueueQuota": (queue.SetQueueQuotaRequest, queue.SetQueueQuotaResponse),
    "getQueueInfo": (queue.GetQueueInfoRequest, queue.GetQueueInfoResponse),
    "listQueue": (queue.ListQueueRequest, queue.ListQueueResponse),
    "setQueueRedrivePolicy": (queue.SetQueueRedrivePolicyRequest, queue.SetQueueRedrivePolicyResponse),
    "removeQueueRedrivePolicy": (queue.RemoveQueueRedrivePolicyRequest, None),
    "setPermission": (access.SetPermissionRequest, None),
    "revokePermission": (access.RevokePermissionRequest, None),
    "queryPermission": (access.QueryPermissionRequest, access.QueryPermissionResponse),
    "queryPermissionForId": (access.QueryPermissionForIdRequest, access.QueryPermissionForIdResponse),
    "listPermissions": (access.ListPermissionsRequest, access.ListPermissionsResponse),
    "createTag": (access.CreateTagRequest, access.CreateTagResponse),
    "deleteTag": (access.DeleteTagRequest, None),
    "getTagInfo": (access.GetTagInfoRequest, access.GetTagInfoResponse),
    "listTag": (access.ListTagRequest, access.ListTagResponse),
    "queryMetric": (access.QueryMetricRequest, access.TimeSeriesData),
    "queryPrivilegedQueue": (queue.QueryPrivilegedQueueRequest, queue.QueryPrivilegedQueueResponse),
    "verifyEMQAdmin": (None, access.VerifyEMQAdminResponse),
    "verifyEMQAdminRole": (access.VerifyEMQAdminRoleRequest, access.VerifyEMQAdminRoleResponse),
    "copyQueue": (access.CopyQueueRequest, None),
    "getQueueMeta": (str, access.GetQueueMetaResponse),  # the bare name of the queue
    "listDeadLetterSourceQueues": (queue.ListDeadLetterSourceQueuesRequest, queue.ListDeadLetterSourceQueuesResponse),
}
_MESSAGE: Final[dict[str, tuple[Any, Any]]] = {
    "sendMessage": (message.SendMessageRequest, message.SendMessageResponse),
    "sendMessageBatch": (message.SendMessageBatchRequest, message.SendMessageBatchResponse),
    "receiveMessage": (message.ReceiveMessageRequest, list[message.ReceiveMessageResponse]),
    "changeMessageVisibilitySeconds": (message.ChangeMessageVisibilityRequest, None),
    "changeMessageVisibilitySecondsBatch": (
        message.ChangeMessageVisibilityBatchRequest,
        message.ChangeMessageVisibilityBatchResponse,
    ),
    "deleteMessage": (message.DeleteMessageRequest, None),
    "deleteMessageBatch": (message.DeleteMessageBatchRequest, message.DeleteMessageBatchResponse),
    "deadMessage": (message.DeadMessageRequest, None),
    "deadMessageBatch": (message.DeadMessageBatchRequest, message.DeadMessageBatchResponse),
    "peekMessage": (message.PeekMessageRequest, list[message.PeekMessageResponse]),
    "deletePeekMessage": (message.DeletePeekMessageRequest, None),
    "deletePeekMessageBatch": (message.DeletePeekMessageBatchRequest, message.DeletePeekMessageBatchResponse),
}
_STATISTICS: Final[dict[str, tuple[Any, Any]]] = {
    "setUserQuota": (statistics.SetUserQuotaRequest, None),
    "getUserQuota": (statistics.GetUserQuotaRequest, statistics.GetUserQuotaResponse),
    "getUserUsedQuota": (statistics.GetUserUsedQuotaRequest, statistics.GetUserQuotaResponse),
    "setUserInfo": (statistics.SetUserInfoRequest, None),
    "getUserInfo": (statistics.GetUserInfoRequest, statistics.GetUserInfoResponse),
    "addQueueAlertPolicy": (statistics.AddQueueAlertPolicyRequest, None),
    "deleteQueueAlertPolicy": (statistics.DeleteQueueAlertPolicyRequest, None),
    "listQueueAlertPolicies": (statistics.ListQueueAlertPoliciesRequest, statistics.ListQueueAlertPoliciesResponse),
    "addTagAlertPolicy": (statistics.AddTagAlertPolicyRequest, None),
    "deleteTagAlertPolicy": (statistics.DeleteTagAlertPolicyRequest, None),
    "listTagAlertPolicies": (statistics.ListTagAlertPoliciesRequest, statistics.ListTagAlertPoliciesResponse),
    "setQueueDailyStatisticsState": (statistics.SetQueueDailyStatisticsStateRequest, None),
    "getQueueDailyStatisticsState": (
        statistics.GetQueueDailyStatisticsStateRequest,
        statistics.GetQueueDailyStatisticsStateResponse,
    ),
}

QUEUE_SERVICE: Final = _service("QueueService", "/v1/api/queue", _QUEUE)
MESSAGE_SERVICE: Final = _service("MessageService", "/v1/api/message", _MESSAGE)
STATISTICS_SERVICE: Final = _service("StatisticsService", "/v1/api/statistics", _STATISTICS)
# By path, as the head of a request names it.
SERVICES: Final[dict[str, Service]] = {
    service.path: service for service in (QUEUE_SERVICE, MESSAGE_SERVICE, STATISTICS_SERVICE)
}
