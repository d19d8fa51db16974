"""Structs of MessageService: send, receive, settle, peek."""

from __future__ import annotations

from typing import Annotated

from facade.dialects.emq.wire.kinds import I32, I64, Wire
from facade.dialects.emq.wire.structs.shared import GalaxyEmqServiceException


class MessageAttribute(Wire, frozen=True, kw_only=True):
    """`type` begins with string, binary or, in filters, empty."""

    type: Annotated[str, 1]
    string_value: Annotated[str | None, 2] = None
    binary_value: Annotated[bytes | None, 3] = None


class SendMessageRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    message_body: Annotated[str, 2]
    delay_seconds: Annotated[I32 | None, 3] = None
    invisibility_seconds: Annotated[I32 | None, 4] = None
    message_attributes: Annotated[dict[str, MessageAttribute] | None, 5] = None
    topic: Annotated[str | None, 6] = None
    priority: Annotated[I32 | None, 7] = None


class SendMessageResponse(Wire, frozen=True, kw_only=True):
    message_id: Annotated[str, 1]
    body_length: Annotated[I32 | None, 2] = None
    body_md5: Annotated[str | None, 3] = None
    send_timestamp: Annotated[I64 | None, 4] = None


class SendMessageBatchRequestEntry(Wire, frozen=True, kw_only=True):
    entry_id: Annotated[str, 1]
    message_body: Annotated[str, 2]
    delay_seconds: Annotated[I32 | None, 3] = None
    invisibility_seconds: Annotated[I32 | None, 4] = None
    message_attributes: Annotated[dict[str, MessageAttribute] | None, 5] = None
    priority: Annotated[I32 | None, 6] = None


class SendMessageBatchRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    send_message_batch_request_entry_list: Annotated[list[SendMessageBatchRequestEntry], 2]
    topic: Annotated[str | None, 3] = None


class SendMessageBatchResponseEntry(Wire, frozen=True, kw_only=True):
    entry_id: Annotated[str, 1]
    message_id: Annotated[str, 2]
    body_length: Annotated[I32 | None, 3] = None
    body_md5: Annotated[str | None, 4] = None
    send_timestamp: Annotated[I64 | None, 5] = None


class MessageBatchErrorEntry(Wire, frozen=True, kw_only=True):
    """`id` is an entry id of a send, else a receipt handle."""

    id: Annotated[str, 1]
    reason: Annotated[GalaxyEmqServiceException, 2]


class SendMessageBatchResponse(Wire, frozen=True, kw_only=True):
    successful: Annotated[list[SendMessageBatchResponseEntry] | None, 1] = None
    failed: Annotated[list[MessageBatchErrorEntry] | None, 2] = None


class ReceiveMessageRequest(Wire, frozen=True, kw_only=True):
    """The IDL has defaults for fields 2 and 3, 100 and 0, which some clients always send. They are
    no defaults here: what is not sent means the queue's setting.
    """

    queue_name: Annotated[str, 1]
    max_receive_message_number: Annotated[I32 | None, 2] = None
    max_receive_message_wait_seconds: Annotated[I32 | None, 3] = None
    attribute_name: Annotated[str | None, 4] = None
    attribute_value: Annotated[MessageAttribute | None, 5] = None
    tag_name: Annotated[str | None, 6] = None


class ReceiveMessageResponse(Wire, frozen=True, kw_only=True):
    message_id: Annotated[str, 1]
    receipt_handle: Annotated[str, 2]
    message_body: Annotated[str, 3]
    attributes: Annotated[dict[str, str] | None, 4] = None
    message_attributes: Annotated[dict[str, MessageAttribute] | None, 5] = None


class HandleRequest(Wire, frozen=True, kw_only=True):
    """Of every method on one handle."""

    queue_name: Annotated[str, 1]
    receipt_handle: Annotated[str, 2]


class ChangeMessageVisibilityRequest(HandleRequest, frozen=True, kw_only=True):
    invisibility_seconds: Annotated[I32, 3]


class DeleteMessageRequest(HandleRequest, frozen=True, kw_only=True): ...


class DeadMessageRequest(HandleRequest, frozen=True, kw_only=True): ...


class DeletePeekMessageRequest(HandleRequest, frozen=True, kw_only=True): ...


class HandleEntry(Wire, frozen=True, kw_only=True):
    """Of every batch of handles."""

    receipt_handle: Annotated[str, 1]


class ChangeMessageVisibilityBatchRequestEntry(HandleEntry, frozen=True, kw_only=True):
    invisibility_seconds: Annotated[I32, 2]


class DeleteMessageBatchRequestEntry(HandleEntry, frozen=True, kw_only=True): ...


class DeadMessageBatchRequestEntry(HandleEntry, frozen=True, kw_only=True): ...


class DeletePeekMessageBatchEntry(HandleEntry, frozen=True, kw_only=True): ...


class ChangeMessageVisibilityBatchRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    change_message_visibility_request_entry_list: Annotated[list[ChangeMessageVisibilityBatchRequestEntry], 2]


class DeleteMessageBatchRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    delete_message_batch_request_entry_list: Annotated[list[DeleteMessageBatchRequestEntry], 2]


class DeadMessageBatchRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    dead_message_batch_request_entry_list: Annotated[list[DeadMessageBatchRequestEntry], 2]


class DeletePeekMessageBatchRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    delete_peek_message_batch_entry_list: Annotated[list[DeletePeekMessageBatchEntry], 2]


class HandleBatchResponse(Wire, frozen=True, kw_only=True):
    """Of every batch of handles; `successful` are the handles."""

    successful: Annotated[list[str] | None, 1] = None
    failed: Annotated[list[MessageBatchErrorEntry] | None, 2] = None


class ChangeMessageVisibilityBatchResponse(HandleBatchResponse, frozen=True, kw_only=True): ...


class DeleteMessageBatchResponse(HandleBatchResponse, frozen=True, kw_only=True): ...


class DeadMessageBatchResponse(HandleBatchResponse, frozen=True, kw_only=True): ...


class DeletePeekMessageBatchResponse(HandleBatchResponse, frozen=True, kw_only=True): ...


class PartitionTimeIntervalAndMaxNum(Wire, frozen=True, kw_only=True):
    start_timestamp: Annotated[I64 | None, 1] = None
    end_timestamp: Annotated[I64 | None, 2] = None
    max_num: Annotated[I32 | None, 3] = None
    partition_id: Annotated[I32 | None, 4] = None


class PeekMessageArg(Wire, frozen=True, kw_only=True):
    """A union: one of them is set. Whoever reads it refuses another number of them."""

    receipt_handle: Annotated[str | None, 1] = None
    receipt_handle_list: Annotated[list[str] | None, 2] = None
    partition_time_interval_and_max_num: Annotated[PartitionTimeIntervalAndMaxNum | None, 3] = None


class PeekMessageRequest(Wire, frozen=True, kw_only=True):
    queue_name: Annotated[str, 1]
    peek_message_arg: Annotated[PeekMessageArg, 2]


class PeekMessageResponse(Wire, frozen=True, kw_only=True):
    """`e` says why this message can't be shown; `message_id` is set all the same."""

    message_id: Annotated[str, 1]
    message_body: Annotated[str | None, 2] = None
    attributes: Annotated[dict[str, str] | None, 3] = None
    message_attributes: Annotated[dict[str, MessageAttribute] | None, 4] = None
    e: Annotated[GalaxyEmqServiceException | None, 5] = None
