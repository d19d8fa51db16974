"""Bodies of the native dialect's replies, as structs.

Neighbours: `translate` makes them of the engine's shapes, `openapi` the document. This module must not know the engine.
A field that does not apply is left out (UNSET) where that's said, else null.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from facade.native.units import Millis

Span = Annotated[float, Meta(ge=0, description="Seconds.")]
Count = Annotated[int, Meta(ge=0)]
ResultStatus = Literal["ok", "stale", "lapsed"]


class Reply(Struct, frozen=True, kw_only=True):
    """Base of all replies."""


class RedrivePolicyReply(Reply, frozen=True, kw_only=True):
    """After `max_receive_count` deliveries without an ack, a message goes to queue `dead_letter_queue`."""

    dead_letter_queue: str
    max_receive_count: Count


class ConditionReply(Reply, frozen=True, kw_only=True):
    """A condition of a filter; type `empty` has neither value."""

    name: str
    type: str
    value: str | UnsetType = UNSET
    value_base64: bytes | UnsetType = UNSET


class FilterReply(Reply, frozen=True, kw_only=True):
    """A filter of a tag or a task."""

    operator: Literal["AND", "OR"]
    conditions: list[ConditionReply]


class TagReply(Reply, frozen=True, kw_only=True):
    """A tag. `backlog` = stored + ready + delayed + leased; an upper bound where there is a filter."""

    name: str
    created_at_ms: Millis
    start_at_ms: Millis
    filter: FilterReply | None
    user_attributes: dict[str, str]
    backlog: Count
    ready: Count
    delayed: Count
    leased: Count
    stored: Count


class QueueReply(Reply, frozen=True, kw_only=True):
    """A queue: settings, who uses it for dead letters, tags with counts."""

    name: str
    owner: str
    created_at_ms: Millis
    modified_at_ms: Millis
    partitions: Count
    delay_seconds: Span
    lease_seconds: Span
    retention_seconds: Span
    max_message_bytes: Count
    receive_wait_seconds: Span
    max_receive_messages: Count
    durable_acks: bool
    fifo: bool
    content_dedup: bool
    dedup_scope: str
    user_attributes: dict[str, str]
    redrive_policy: RedrivePolicyReply | None
    source_queues: list[str]
    tags: list[TagReply]


class QueuesReply(Reply, frozen=True, kw_only=True):
    """A page of names; `next` = null at the end, else the `after` of the next page."""

    queues: list[str]
    next: str | None


class TagsReply(Reply, frozen=True, kw_only=True):
    """All tags of a queue."""

    tags: list[TagReply]


class SentReply(Reply, frozen=True, kw_only=True):
    """A message that Kafka has. `body_md5` is over the body's bytes. FIFO: one that repeats an earlier one has that one's id."""

    id: str
    body_md5: str
    sent_at_ms: Millis
    sequence_number: str | UnsetType = UNSET


class SendReply(Reply, frozen=True, kw_only=True):
    """One entry per message, in the order sent."""

    messages: list[SentReply]


class AttributeReply(Reply, frozen=True, kw_only=True):
    """An attribute: `value`, or `value_base64` of what is not text."""

    type: str
    value: str | UnsetType = UNSET
    value_base64: bytes | UnsetType = UNSET


class OriginReply(Reply, frozen=True, kw_only=True):
    """Where a moved message came from: `from_*` is the last move, `original_*` the first send."""

    from_id: str
    from_tag: str
    original_id: str
    original_queue: str
    original_tag: str
    reason: str
    receive_count: Count
    first_received_at_ms: Millis
    original_sent_at_ms: Millis
    moved_at_ms: Millis


class DeliveryReply(Reply, frozen=True, kw_only=True):
    """A message lent until `next_visible_at_ms`. It has `body` (text) or `body_base64`; `origin` if it was moved here."""

    id: str
    handle: str
    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET
    attributes: dict[str, AttributeReply]
    sent_at_ms: Millis
    receive_count: Count
    first_received_at_ms: Millis
    next_visible_at_ms: Millis
    partition: Count
    offset: Count
    group: str | UnsetType = UNSET
    dedup_id: str | UnsetType = UNSET
    sequence_number: str | UnsetType = UNSET
    sender: str | UnsetType = UNSET
    origin: OriginReply | UnsetType = UNSET


class ReceiveReply(Reply, frozen=True, kw_only=True):
    """The messages lent; none if there were none within the wait."""

    messages: list[DeliveryReply]


class PeekedReply(Reply, frozen=True, kw_only=True):
    """A message looked at; nothing was counted. `state`, counts and times are those under the tag asked for."""

    id: str
    state: str
    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET
    attributes: dict[str, AttributeReply]
    sent_at_ms: Millis
    receive_count: Count
    first_received_at_ms: Millis | None
    next_visible_at_ms: Millis | None
    partition: Count
    offset: Count
    group: str | UnsetType = UNSET
    dedup_id: str | UnsetType = UNSET
    sequence_number: str | UnsetType = UNSET
    sender: str | UnsetType = UNSET
    origin: OriginReply | UnsetType = UNSET


class PageReply(Reply, frozen=True, kw_only=True):
    """A page of messages; `next` continues it, null = the end."""

    messages: list[PeekedReply]
    next: str | None


class ResultReply(Reply, frozen=True, kw_only=True):
    """What became of one handle: ok, stale (its delivery is over), lapsed (its lease is) or invalid."""

    handle: str
    status: ResultStatus
    next_visible_at_ms: Millis | UnsetType = UNSET


class ResultsReply(Reply, frozen=True, kw_only=True):
    """One result per handle, in the order given."""

    results: list[ResultReply]


class TaskReply(Reply, frozen=True, kw_only=True):
    """A redrive task. `total` counts the messages found so far."""

    id: str
    status: str
    source: str
    destination: str | None
    filter: FilterReply | None
    rate: Count
    moved: Count
    failed: Count
    total: Count
    created_at_ms: Millis
    modified_at_ms: Millis
    failure: str


class NewKeyReply(Reply, frozen=True, kw_only=True):
    """An access key; the secret is not shown again."""

    key_id: str
    secret: str


class KeyReply(Reply, frozen=True, kw_only=True):
    """An access key without its secret."""

    key_id: str
    principal: str
    admin: bool
    created_at_ms: Millis


class KeysReply(Reply, frozen=True, kw_only=True):
    """All access keys."""

    keys: list[KeyReply]
