"""Structs of QueueService: queues."""

from __future__ import annotations

from typing import Annotated

from facade.dialects.emq.wire.kinds import I32, I64, Wire


class QueueAttribute(Wire, frozen=True, kw_only=True):
    delay_seconds: Annotated[I32 | None, 1] = None
    invisibility_seconds: Annotated[I32 | None, 2] = None
    receive_message_wait_seconds: Annotated[I32 | None, 3] = None
    receive_message_maximum_number: Annotated[I32 | None, 4] = None
    message_retention_seconds: Annotated[I32 | None, 5] = None
    message_maximum_bytes: Annotated[I32 | None, 6] = None
    partition_number: Annotated[I32 | None, 7] = None
    user_attributes: Annotated[dict[str, str] | None, 8] = None
    owner: Annotated[str | None, 9] = None


class QueueState(Wire, frozen=True, kw_only=True):
    """Of a queue or a tag. Timestamps are epoch milliseconds."""

    create_timestamp: Annotated[I64, 1]
    last_modified_timestamp: Annotated[I64, 2]
    approximate_message_number: Annotated[I64, 3]
    approximate_available_message_number: Annotated[I64, 4]
    approximate_invisibility_message_number: Annotated[I64, 5]


class Throughput(Wire, frozen=True, kw_only=True):
    read_qps: Annotated[I64 | None, 1] = None
    write_qps: Annotated[I64 | None, 2] = None


class QueueQuota(Wire, frozen=True, kw_only=True):
    """Field 1 was a quota of space, which is gone."""

    throughput: Annotated[Throughput | None, 2] = None


class RedrivePolicy(Wire, frozen=True, kw_only=True):
    dlq_name: Annotated[str, 1]
    max_receive_time: Annotated[I32, 2]


class OfQueue(Wire, frozen=True, kw_only=True):
    """Of every request on a queue that says no more, and of every answer that begins with it."""

    queue_name: Annotated[str, 1]


class CreateQueueRequest(OfQueue, frozen=True, kw_only=True):
    """`delete_message_force` has the IDL's default; Go sends only False."""

    queue_attribute: Annotated[QueueAttribute | None, 2] = None
    queue_quota: Annotated[QueueQuota | None, 3] = None
    dead_letter_queue: Annotated[bool | None, 4] = None
    enable_priority: Annotated[bool | None, 5] = None
    topic_queue: Annotated[bool | None, 6] = None
    delete_message_force: Annotated[bool | None, 7] = True
    default_tag_name: Annotated[str | None, 8] = None
    redrive_policy: Annotated[RedrivePolicy | None, 9] = None


class CreateQueueResponse(OfQueue, frozen=True, kw_only=True):
    """What was made: `queue_attribute` has all values that are in force."""

    queue_attribute: Annotated[QueueAttribute, 2]
    queue_quota: Annotated[QueueQuota | None, 3] = None
    dead_letter_queue: Annotated[bool | None, 4] = None
    enable_priority: Annotated[bool | None, 5] = None
    topic_queue: Annotated[bool | None, 6] = None
    delete_message_force: Annotated[bool | None, 7] = True
    default_tag_name: Annotated[str | None, 8] = None
    redrive_policy: Annotated[RedrivePolicy | None, 9] = None


class DeleteQueueRequest(OfQueue, frozen=True, kw_only=True): ...


class PurgeQueueRequest(OfQueue, frozen=True, kw_only=True): ...


class GetQueueInfoRequest(OfQueue, frozen=True, kw_only=True): ...


class RemoveQueueRedrivePolicyRequest(OfQueue, frozen=True, kw_only=True): ...


class SetQueueAttributesRequest(OfQueue, frozen=True, kw_only=True):
    queue_attribute: Annotated[QueueAttribute | None, 2] = None


class SetQueueAttributesResponse(OfQueue, frozen=True, kw_only=True):
    queue_attribute: Annotated[QueueAttribute, 2]


class SetQueueQuotaRequest(OfQueue, frozen=True, kw_only=True):
    queue_quota: Annotated[QueueQuota | None, 2] = None


class SetQueueQuotaResponse(SetQueueQuotaRequest, frozen=True, kw_only=True): ...


class SetQueueRedrivePolicyRequest(OfQueue, frozen=True, kw_only=True):
    redrive_policy: Annotated[RedrivePolicy, 2]


class SetQueueRedrivePolicyResponse(SetQueueRedrivePolicyRequest, frozen=True, kw_only=True): ...


class GetQueueInfoResponse(OfQueue, frozen=True, kw_only=True):
    queue_attribute: Annotated[QueueAttribute, 2]
    queue_state: Annotated[QueueState, 3]
    queue_quota: Annotated[QueueQuota | None, 4] = None
    is_dead_letter_queue: Annotated[bool | None, 5] = None
    redrive_policy: Annotated[RedrivePolicy | None, 6] = None
    enable_priority: Annotated[bool | None, 7] = None
    topic_queue: Annotated[bool | None, 8] = None
    delete_message_force: Annotated[bool | None, 9] = None
    default_tag_name: Annotated[str | None, 10] = None
    source_queues: Annotated[list[str] | None, 11] = None


class ListQueueRequest(Wire, frozen=True, kw_only=True):
    queue_name_prefix: Annotated[str | None, 1] = ""


class ListQueueResponse(Wire, frozen=True, kw_only=True):
    """The full names, in a field that is called as if it were one."""

    queue_name: Annotated[list[str], 1]


class QueryPrivilegedQueueRequest(Wire, frozen=True, kw_only=True):
    queue_name_prefix: Annotated[str | None, 1] = ""


class QueryPrivilegedQueueResponseEntry(OfQueue, frozen=True, kw_only=True):
    approximate_message_number: Annotated[I64, 2]
    approximate_available_message_number: Annotated[I64, 3]
    approximate_invisibility_message_number: Annotated[I64, 4]


class QueryPrivilegedQueueResponse(Wire, frozen=True, kw_only=True):
    queue_list: Annotated[list[QueryPrivilegedQueueResponseEntry], 1]


class ListDeadLetterSourceQueuesRequest(Wire, frozen=True, kw_only=True):
    """Of a method that the IDL has dropped and an old client still calls."""

    dlq_name: Annotated[str, 1]


class ListDeadLetterSourceQueuesResponse(Wire, frozen=True, kw_only=True):
    dlq_name: Annotated[str, 1]
    source_queues: Annotated[list[str] | None, 2] = None
