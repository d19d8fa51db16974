"""The inputs of the actions as structs, named as the wire names them. What is absent or null is
None.
"""

from __future__ import annotations

from msgspec import Struct, field


def wire(name: str) -> str:
    """The wire's spelling of a field: MessageBody, MD5OfBody."""
    return "".join("MD5" if part == "md5" else part.capitalize() for part in name.split("_"))


class Input(Struct, frozen=True, rename=wire, gc=False):
    """Of every action."""


class OfQueue(Input, frozen=True):
    """Of every action on a queue."""

    queue_url: str | None = None


class CreateQueue(Input, frozen=True):
    queue_name: str | None = None
    attributes: dict[str, str] | None = None
    tags: dict[str, str] | None = field(name="tags", default=None)


class GetQueueUrl(Input, frozen=True):
    queue_name: str | None = None
    queue_owner_aws_account_id: str | None = field(name="QueueOwnerAWSAccountId", default=None)


class ListQueues(Input, frozen=True):
    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class GetQueueAttributes(OfQueue, frozen=True):
    attribute_names: list[str] | None = None


class SetQueueAttributes(OfQueue, frozen=True):
    attributes: dict[str, str] | None = None


class AttributeValue(Struct, frozen=True, rename=wire, gc=False):
    """A message attribute. The list values are reserved by SQS."""

    data_type: str | None = None
    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: list[str] | None = None
    binary_list_values: list[bytes] | None = None


Attributes = dict[str, AttributeValue]


class Outgoing(Struct, frozen=True, rename=wire, gc=False):
    """A message to send, alone or in a batch."""

    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: Attributes | None = None
    message_system_attributes: Attributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessage(Outgoing, frozen=True):
    queue_url: str | None = None


class OutgoingEntry(Outgoing, frozen=True):
    """An entry of a batch of messages to send."""

    id: str | None = None


class SendMessageBatch(OfQueue, frozen=True):
    entries: list[OutgoingEntry] | None = None


class ReceiveMessage(OfQueue, frozen=True):
    attribute_names: list[str] | None = None
    message_system_attribute_names: list[str] | None = None
    message_attribute_names: list[str] | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class DeleteEntry(Struct, frozen=True, rename=wire, gc=False):
    """An entry of a batch of deletes."""

    id: str | None = None
    receipt_handle: str | None = None


class VisibilityEntry(DeleteEntry, frozen=True):
    """An entry of a batch of visibility changes."""

    visibility_timeout: int | None = None


class DeleteMessage(OfQueue, frozen=True):
    receipt_handle: str | None = None


class ChangeMessageVisibility(DeleteMessage, frozen=True):
    visibility_timeout: int | None = None


class DeleteMessageBatch(OfQueue, frozen=True):
    entries: list[DeleteEntry] | None = None


class ChangeMessageVisibilityBatch(OfQueue, frozen=True):
    entries: list[VisibilityEntry] | None = None


class AddPermission(OfQueue, frozen=True):
    label: str | None = None
    account_ids: list[str] | None = field(name="AWSAccountIds", default=None)
    actions: list[str] | None = None


class RemovePermission(OfQueue, frozen=True):
    label: str | None = None


class TagQueue(OfQueue, frozen=True):
    tags: dict[str, str] | None = None


class UntagQueue(OfQueue, frozen=True):
    tag_keys: list[str] | None = None


class ListSources(OfQueue, frozen=True):
    next_token: str | None = None
    max_results: int | None = None


class StartMove(Input, frozen=True):
    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class CancelMove(Input, frozen=True):
    task_handle: str | None = None


class ListMoves(Input, frozen=True):
    source_arn: str | None = None
    max_results: int | None = None
