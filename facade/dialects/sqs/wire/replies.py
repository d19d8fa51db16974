"""The outputs of the actions as structs. What is empty is absent, as SQS does it."""

from __future__ import annotations

from msgspec import Struct, field

from facade.dialects.sqs.wire.shapes import wire


class Output(Struct, frozen=True, rename=wire, omit_defaults=True, gc=False):
    """Of every action; by itself the reply that says no more than that it is done."""


DONE = Output()


class UrlReply(Output, frozen=True):
    queue_url: str


class ListReply(Output, frozen=True):
    queue_urls: list[str] | None = None
    next_token: str | None = None


class SourcesReply(Output, frozen=True):
    queue_urls: list[str] = field(name="queueUrls")
    next_token: str | None = None


class TagsReply(Output, frozen=True):
    tags: dict[str, str] | None = None


class TaskReply(Output, frozen=True):
    task_handle: str


class MovedReply(Output, frozen=True):
    approximate_number_of_messages_moved: int


class MoveReply(Output, frozen=True):
    status: str
    source_arn: str
    approximate_number_of_messages_moved: int
    approximate_number_of_messages_to_move: int
    started_timestamp: int
    task_handle: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    failure_reason: str | None = None


class MovesReply(Output, frozen=True):
    results: list[MoveReply] | None = None


class AttributesReply(Output, frozen=True):
    attributes: dict[str, str] | None = None


class AttributeReply(Output, frozen=True):
    data_type: str
    string_value: str | None = None
    binary_value: bytes | None = None


class SentReply(Output, frozen=True):
    message_id: str
    md5_of_message_body: str
    md5_of_message_attributes: str | None = None
    md5_of_message_system_attributes: str | None = None
    sequence_number: str | None = None
    id: str | None = None


class MessageReply(Output, frozen=True):
    message_id: str
    receipt_handle: str
    md5_of_body: str
    body: str
    attributes: dict[str, str] | None = None
    md5_of_message_attributes: str | None = None
    message_attributes: dict[str, AttributeReply] | None = None


class ReceiveReply(Output, frozen=True):
    messages: list[MessageReply] | None = None


class DoneReply(Output, frozen=True):
    id: str


class FailedReply(Output, frozen=True):
    id: str
    sender_fault: bool
    code: str
    message: str


class SentBatchReply(Output, frozen=True):
    successful: list[SentReply] | None = None
    failed: list[FailedReply] | None = None


class DoneBatchReply(Output, frozen=True):
    successful: list[DoneReply] | None = None
    failed: list[FailedReply] | None = None
