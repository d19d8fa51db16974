"""Structs of StatisticsService: quotas, users, alerts, daily statistics."""

from __future__ import annotations

from typing import Annotated

from facade.dialects.emq.wire.kinds import I32, I64, Wire
from facade.dialects.emq.wire.structs.queue import OfQueue, Throughput


class UserQuota(Wire, frozen=True, kw_only=True):
    throughput: Annotated[Throughput | None, 1] = None
    queue_number: Annotated[I64 | None, 2] = None


class SetUserQuotaRequest(Wire, frozen=True, kw_only=True):
    developer_id: Annotated[str, 1]
    user_quota: Annotated[UserQuota, 2]


class GetUserQuotaResponse(Wire, frozen=True, kw_only=True):
    """The answer about what is used too."""

    developer_id: Annotated[str, 1]
    user_quota: Annotated[UserQuota, 2]


class OfDeveloper(Wire, frozen=True, kw_only=True):
    """A question about a developer; None = whoever asks."""

    developer_id: Annotated[str | None, 1] = None


class GetUserQuotaRequest(OfDeveloper, frozen=True, kw_only=True): ...


class GetUserUsedQuotaRequest(OfDeveloper, frozen=True, kw_only=True): ...


class GetUserInfoRequest(OfDeveloper, frozen=True, kw_only=True): ...


class SetUserInfoRequest(OfDeveloper, frozen=True, kw_only=True):
    user_name: Annotated[str | None, 2] = None
    email: Annotated[str | None, 3] = None
    sms: Annotated[str | None, 4] = None


class GetUserInfoResponse(Wire, frozen=True, kw_only=True):
    developer_id: Annotated[str, 1]
    user_name: Annotated[str | None, 2] = None
    email: Annotated[str | None, 3] = None
    sms: Annotated[str | None, 4] = None


class AlertPolicy(Wire, frozen=True, kw_only=True):
    """`type` is an AlertType, `measurement` a Measurement."""

    type: Annotated[I32, 1]
    measurement: Annotated[I32, 2]
    threshold: Annotated[float | None, 3] = None


class OfQueueAlert(OfQueue, frozen=True, kw_only=True):
    alert_policy: Annotated[AlertPolicy, 2]


class AddQueueAlertPolicyRequest(OfQueueAlert, frozen=True, kw_only=True): ...


class DeleteQueueAlertPolicyRequest(OfQueueAlert, frozen=True, kw_only=True): ...


class OfTagAlert(OfQueue, frozen=True, kw_only=True):
    """Without `tag_name` it is about the default tag."""

    tag_name: Annotated[str | None, 2] = None
    alert_policy: Annotated[AlertPolicy, 3]


class AddTagAlertPolicyRequest(OfTagAlert, frozen=True, kw_only=True): ...


class DeleteTagAlertPolicyRequest(OfTagAlert, frozen=True, kw_only=True): ...


class ListQueueAlertPoliciesRequest(OfQueue, frozen=True, kw_only=True): ...


class ListQueueAlertPoliciesResponse(OfQueue, frozen=True, kw_only=True):
    alert_policies: Annotated[list[AlertPolicy], 2]


class ListTagAlertPoliciesRequest(OfQueue, frozen=True, kw_only=True):
    tag_name: Annotated[str | None, 2] = None


class ListTagAlertPoliciesResponse(OfQueue, frozen=True, kw_only=True):
    tag_name: Annotated[str | None, 2] = None
    alert_policies: Annotated[list[AlertPolicy], 3]


class DailyStatisticsState(OfQueue, frozen=True, kw_only=True):
    enabled: Annotated[bool, 2]


class SetQueueDailyStatisticsStateRequest(DailyStatisticsState, frozen=True, kw_only=True): ...


class GetQueueDailyStatisticsStateRequest(OfQueue, frozen=True, kw_only=True): ...


class GetQueueDailyStatisticsStateResponse(DailyStatisticsState, frozen=True, kw_only=True): ...
