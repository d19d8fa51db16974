"""Bodies of the native dialect's requests, as structs; their names and types are the wire's, fixed by the product.

Neighbours: `translate` makes the engine's shapes of them, `openapi` the document. This module must not know the engine.
Unknown fields are refused. Ranges of values are the engine's; what is here is form.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from facade.native.units import (
    ATTRIBUTE_NAME_PATTERN,
    ATTRIBUTE_TYPE_PATTERN,
    CONDITION_TYPE_PATTERN,
    HandleText,
    Millis,
    Name,
    Seconds,
    Whole,
)


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests."""


class RedrivePolicyBody(Body, frozen=True, kw_only=True):
    """After `max_receive_count` deliveries without an ack, a message goes to queue `dead_letter_queue`."""

    dead_letter_queue: Name
    max_receive_count: Whole


UserAttributes = Annotated[dict[str, str], Meta(description="Free texts of the owner's; the service does not read them.")]


class CreateQueueBody(Body, frozen=True, kw_only=True):
    """A queue to create. What is not given, or null, has its default."""

    name: Name
    partitions: Annotated[Whole | None, Meta(description="1-64; can't be changed later.")] = None
    delay_seconds: Annotated[Seconds | None, Meta(description="From send to the first receive; 0 to 30 days, default 0.")] = None
    lease_seconds: Annotated[Seconds | None, Meta(description="How long a delivery is lent; 0 to 12 hours, default 30 s.")] = None
    retention_seconds: Annotated[Seconds | None, Meta(description="60 s to 14 days, default 4 days.")] = None
    max_message_bytes: Annotated[Whole | None, Meta(description="Body and attributes; 1-1048576, default 262144.")] = None
    receive_wait_seconds: Annotated[Seconds | None, Meta(description="Wait of a receive that names none; 0 to 60, default 0.")] = None
    max_receive_messages: Annotated[Whole | None, Meta(description="Most messages of one receive; 1-100, default 100.")] = None
    durable_acks: Annotated[bool | None, Meta(description="Answer an ack only when Kafka has it; default false.")] = None
    fifo: Annotated[bool | None, Meta(description="A group's messages are received in order, one after the other; default false.")] = None
    content_dedup: Annotated[
        bool | None, Meta(description="FIFO: a message without a dedup_id has the SHA-256 of its body as one; default false.")
    ] = None
    dedup_scope: Annotated[
        str | None, Meta(description="FIFO: within what a dedup_id is unique for five minutes; queue (default) or group.")
    ] = None
    user_attributes: UserAttributes | None = None
    redrive_policy: RedrivePolicyBody | None = None


class SetQueueBody(Body, frozen=True, kw_only=True):
    """Settings to change; what is not given stays as it is. A redrive policy is removed by DELETE .../redrive-policy."""

    delay_seconds: Seconds | UnsetType = UNSET
    lease_seconds: Seconds | UnsetType = UNSET
    retention_seconds: Seconds | UnsetType = UNSET
    max_message_bytes: Whole | UnsetType = UNSET
    receive_wait_seconds: Seconds | UnsetType = UNSET
    max_receive_messages: Whole | UnsetType = UNSET
    durable_acks: bool | UnsetType = UNSET
    content_dedup: bool | UnsetType = UNSET
    dedup_scope: Annotated[str, Meta(description="queue or group; only while the queue is empty.")] | UnsetType = UNSET
    user_attributes: UserAttributes | UnsetType = UNSET
    redrive_policy: RedrivePolicyBody | UnsetType = UNSET


class CopyBody(Body, frozen=True, kw_only=True):
    """Name of the new queue: same settings, tags and policy, no messages."""

    target: Name


class ConditionBody(Body, frozen=True, kw_only=True):
    """An attribute must have this type and value; of type `empty`, or with neither value, it must exist."""

    name: Annotated[str, Meta(pattern=ATTRIBUTE_NAME_PATTERN)]
    type: Annotated[str, Meta(pattern=CONDITION_TYPE_PATTERN)] | None = None
    value: str | None = None
    value_base64: bytes | None = None


class FilterBody(Body, frozen=True, kw_only=True):
    """Conditions on a message's attributes, all of which (AND) or one of which (OR) must hold."""

    operator: Literal["AND", "OR"] = "AND"
    conditions: Annotated[list[ConditionBody], Meta(min_length=1, max_length=20)]


class CreateTagBody(Body, frozen=True, kw_only=True):
    """A tag: a subscription of the queue with its own leases and counts."""

    name: Name
    start_at_ms: Annotated[Millis, Meta(description="0 = the oldest message kept, negative = from now, else messages since then.")] = -1
    filter: FilterBody | None = None
    user_attributes: UserAttributes | None = None


class AttributeBody(Body, frozen=True, kw_only=True):
    """An attribute: `value` for string and number, `value_base64` for binary. A plain string is short for type string."""

    type: Annotated[str, Meta(pattern=ATTRIBUTE_TYPE_PATTERN, description="string, number or binary, with .subtype if wanted.")]
    value: str | None = None
    value_base64: bytes | None = None


class SendMessage(Body, frozen=True, kw_only=True):
    """A message: `body` (text) or `body_base64` (bytes). Delay and lease of its own, else the queue's."""

    body: str | None = None
    body_base64: bytes | None = None
    attributes: dict[Annotated[str, Meta(pattern=ATTRIBUTE_NAME_PATTERN)], str | AttributeBody] | None = None
    delay_seconds: Seconds | None = None
    lease_seconds: Seconds | None = None
    group: Annotated[str | None, Meta(description="Needed in a FIFO queue; 1-128 characters.")] = None
    dedup_id: Annotated[str | None, Meta(description="FIFO: a message with an id of the last five minutes is not delivered.")] = None


class SendBody(Body, frozen=True, kw_only=True):
    """Messages to send; more than one are an atomic batch: all or none. FIFO with dedup_scope group: of one group."""

    messages: Annotated[list[SendMessage], Meta(min_length=1, max_length=100)]


class ReceiveBody(Body, frozen=True, kw_only=True):
    """What to receive; all may be left out. What is not given is the queue's setting."""

    tag: Annotated[Name | None, Meta(description="Default: the default tag.")] = None
    max: Annotated[Whole | None, Meta(description="1-100.")] = None
    wait_seconds: Annotated[Seconds | None, Meta(description="0 to 60; 0 = answer at once.")] = None
    lease_seconds: Annotated[Seconds | None, Meta(description="0 to 12 hours.")] = None


Handles = Annotated[list[HandleText], Meta(min_length=1, max_length=100, extra_json_schema={"uniqueItems": True})]


class HandlesBody(Body, frozen=True, kw_only=True):
    """1 to 100 different handles."""

    handles: Handles


class ReleaseBody(Body, frozen=True, kw_only=True):
    """1 to 100 different handles; their messages are receivable again after the delay."""

    handles: Handles
    delay_seconds: Seconds = 0.0


class ExtendEntryBody(Body, frozen=True, kw_only=True):
    """A handle and its new lease, counted from now; 0 = receivable at once."""

    handle: HandleText
    lease_seconds: Seconds


class ExtendBody(Body, frozen=True, kw_only=True):
    """1 to 100 entries with different handles."""

    entries: Annotated[list[ExtendEntryBody], Meta(min_length=1, max_length=100)]


class RedriveBody(Body, frozen=True, kw_only=True):
    """Which messages go where: without `destination` each to where it came from; without `filter` and `ids` all."""

    destination: Name | None = None
    filter: FilterBody | None = None
    rate: Annotated[Whole, Meta(description="Messages a second; 0 = no bound.")] = 0
    ids: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64)]] | None,
        Meta(description="1-10000 message ids, or addresses incarnation/partition/offset: only these are moved."),
    ] = None


class CreateKeyBody(Body, frozen=True, kw_only=True):
    """An access key for a principal; its secret is shown once."""

    key_id: Name
    principal: Name
    admin: bool = False


class ListQueuesQuery(Body, frozen=True, kw_only=True):
    """Names in order, `limit` a page; `after` continues behind a name."""

    prefix: Annotated[str, Meta(max_length=80)] = ""
    limit: Annotated[Whole, Meta(description="1-1000.")] = 100
    after: Annotated[str, Meta(max_length=80)] | UnsetType = UNSET


class PeekQuery(Body, frozen=True, kw_only=True):
    """The tag under which state and counts are told."""

    tag: Name | UnsetType = UNSET


class QueryMessages(Body, frozen=True, kw_only=True):
    """Which messages: sent between `from` and `to`, in `state` under `tag`, with the attributes named."""

    from_: Annotated[Millis, Meta(description="Sent at or after, epoch ms.")] | UnsetType = field(name="from", default=UNSET)
    to: Annotated[Millis, Meta(description="Sent before, epoch ms.")] | UnsetType = UNSET
    state: Annotated[str, Meta(min_length=1, max_length=32)] | UnsetType = UNSET
    attribute: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=2048)]],
        Meta(max_length=20, description="`name`: it exists; `name=value`: it's the string `value`. Repeated: all must hold."),
    ] = []
    tag: Name | UnsetType = UNSET
    limit: Annotated[Whole, Meta(description="1-100.")] = 50
    next: Annotated[str, Meta(min_length=1, max_length=1024, description="From the page before.")] | UnsetType = UNSET
