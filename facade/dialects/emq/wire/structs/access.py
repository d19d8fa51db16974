"""Structs of QueueService: permissions, tags, metrics, administration."""

from __future__ import annotations

from typing import Annotated

from facade.dialects.emq.wire.kinds import I32, I64, Wire
from facade.dialects.emq.wire.structs.message import MessageAttribute
from facade.dialects.emq.wire.structs.queue import OfQueue, QueueAttribute, QueueQuota, QueueState, RedrivePolicy


class SetPermissionRequest(OfQueue, frozen=True, kw_only=True):
    """`permission` is a Permission, and so it is in the structs below."""

    developer_id: Annotated[str, 2]
    permission: Annotated[I32, 3]


class RevokePermissionRequest(OfQueue, frozen=True, kw_only=True):
    developer_id: Annotated[str, 2]


class QueryPermissionForIdRequest(OfQueue, frozen=True, kw_only=True):
    developer_id: Annotated[str, 2]


class QueryPermissionRequest(OfQueue, frozen=True, kw_only=True): ...


class QueryPermissionResponse(Wire, frozen=True, kw_only=True):
    permission: Annotated[I32, 1]


class QueryPermissionForIdResponse(Wire, frozen=True, kw_only=True):
    permission: Annotated[I32, 1]


class ListPermissionsRequest(OfQueue, frozen=True, kw_only=True): ...


class ListPermissionsResponse(Wire, frozen=True, kw_only=True):
    """Developer id -> Permission."""

    permission_list: Annotated[dict[str, I32] | None, 1] = None


class AttributesFilter(Wire, frozen=True, kw_only=True):
    """`logical_operator` is a LogicalOperator."""

    attributes: Annotated[dict[str, MessageAttribute], 1]
    logical_operator: Annotated[I32, 2]


class CreateTagRequest(OfQueue, frozen=True, kw_only=True):
    tag_name: Annotated[str, 2]
    start_timestamp: Annotated[I64 | None, 3] = None
    read_qps_quota: Annotated[I64 | None, 4] = None
    attribute_name: Annotated[str | None, 5] = None
    attribute_value: Annotated[MessageAttribute | None, 6] = None
    user_attributes: Annotated[dict[str, str] | None, 7] = None
    attributes_filter: Annotated[AttributesFilter | None, 8] = None


class CreateTagResponse(OfQueue, frozen=True, kw_only=True):
    """`start_timestamp` is that of the first message that the tag sees."""

    tag_name: Annotated[str, 2]
    start_timestamp: Annotated[I64, 3]
    read_qps_quota: Annotated[I64 | None, 4] = None


class DeleteTagRequest(OfQueue, frozen=True, kw_only=True):
    tag_name: Annotated[str, 2]


class GetTagInfoRequest(OfQueue, frozen=True, kw_only=True):
    tag_name: Annotated[str | None, 2] = None


class GetTagInfoResponse(OfQueue, frozen=True, kw_only=True):
    tag_name: Annotated[str | None, 2] = None
    tag_state: Annotated[QueueState, 3]
    start_timestamp: Annotated[I64, 4]
    read_qps_quota: Annotated[I64 | None, 5] = None
    attribute_name: Annotated[str | None, 6] = None
    attribute_value: Annotated[MessageAttribute | None, 7] = None
    user_attributes: Annotated[dict[str, str] | None, 8] = None
    attributes_filter: Annotated[AttributesFilter | None, 9] = None


class ListTagRequest(OfQueue, frozen=True, kw_only=True): ...


class ListTagResponse(OfQueue, frozen=True, kw_only=True):
    """The names of the tags, in a field that is called as if it were one."""

    tag_name: Annotated[list[str], 2]


class QueryMetricRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str | None, 1] = None
    start_time: Annotated[I64 | None, 2] = None
    end_time: Annotated[I64 | None, 3] = None
    metrics: Annotated[str | None, 4] = None
    tags: Annotated[dict[str, str] | None, 5] = None
    aggregator: Annotated[str | None, 6] = None
    downsample_aggregator: Annotated[str | None, 7] = None
    downsample_interval: Annotated[I32 | None, 8] = None
    downsample_time_unit: Annotated[str | None, 9] = None
    cal_rate: Annotated[bool | None, 10] = None
    tag_name: Annotated[str | None, 11] = None


class TimeSeriesData(Wire, frozen=True, kw_only=True):
    metric: Annotated[str | None, 1] = None
    tags: Annotated[dict[str, str] | None, 2] = None
    data: Annotated[dict[I64, float] | None, 3] = None


class VerifyEMQAdminResponse(Wire, frozen=True, kw_only=True):
    prefix: Annotated[str, 1]


class VerifyEMQAdminRoleRequest(Wire, frozen=True, kw_only=True):
    grantee_id: Annotated[str | None, 1] = None


class VerifyEMQAdminRoleResponse(Wire, frozen=True, kw_only=True):
    is_admin_role: Annotated[bool, 1]


class QueueTag(OfQueue, frozen=True, kw_only=True):
    """Fields 9 and 10 are ours: EMQ's struct has no room for what a tag may have."""

    tag_name: Annotated[str, 2]
    tag_id: Annotated[I32, 3]
    start_timestamp: Annotated[I64 | None, 4] = None
    create_timestamp: Annotated[I64 | None, 5] = None
    attribute_name: Annotated[str | None, 6] = None
    attribute_value: Annotated[MessageAttribute | None, 7] = None
    user_attributes: Annotated[dict[str, str] | None, 8] = None
    attributes_filter: Annotated[AttributesFilter | None, 9] = None
    read_qps_quota: Annotated[I64 | None, 10] = None


class QueueMeta(OfQueue, frozen=True, kw_only=True):
    """All that makes a queue but its messages."""

    queue_attribute: Annotated[QueueAttribute, 2]
    queue_quota: Annotated[QueueQuota | None, 3] = None
    enable_priority: Annotated[bool | None, 4] = None
    topic_queue: Annotated[bool | None, 5] = None
    delete_message_force: Annotated[bool | None, 6] = True
    default_tag_name: Annotated[str | None, 7] = None
    permission_list: Annotated[dict[str, I32] | None, 8] = None
    redrive_policy: Annotated[RedrivePolicy | None, 9] = None
    source_queues: Annotated[list[str] | None, 10] = None
    create_timestamp: Annotated[I64 | None, 11] = None
    last_modified_timestamp: Annotated[I64 | None, 12] = None
    queue_tag_map: Annotated[dict[str, QueueTag] | None, 13] = None


class GetQueueMetaResponse(Wire, frozen=True, kw_only=True):
    queue_meta: Annotated[QueueMeta, 1]


class CopyQueueRequest(Wire, frozen=True, kw_only=True):
    queue_meta: Annotated[QueueMeta, 1]
