"""Bodies of the native dialect's replies, as structs.

A field that does not apply is left out (UNSET) where that's said, else null. Words come from the
engine's vocabulary.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from facade.dialects.native.wire.units import Moment, one_of
from schemas.vocabulary import DEATHS, MessageState, PolicyFault, Reason, StaleReason, TaskStatus

Span = Annotated[float, Meta(ge=0, description="Seconds.")]
Count = Annotated[int, Meta(ge=0)]
ResultStatus = Literal["ok", "stale", "lapsed"]


Cut = Annotated[str, one_of(("records", "bytes", "time"), "A bound on what a request reads.")]


class Reply(Struct, frozen=True, kw_only=True):
    """Base of all replies."""


def about(text: str) -> Meta:
    return Meta(description=text)


class RedrivePolicyReply(Reply, frozen=True, kw_only=True):
    """After `max_receive_count` deliveries without an ack, a message goes to queue
    `dead_letter_queue`.
    """

    dead_letter_queue: Annotated[str, about("The queue for what died.")]
    max_receive_count: Annotated[Count, about("Deliveries of a message before it goes there.")]
    stopped: Annotated[str, one_of((*PolicyFault, ""), "Why nothing is moved until it is set again; empty = it is.")]


ValueText = Annotated[str, about("The value, if it is text.")]
ValueBytes = Annotated[bytes, about("The value in base64, if it is not.")]


class ConditionReply(Reply, frozen=True, kw_only=True):
    """A condition of a filter; type `empty` has neither value."""

    name: Annotated[str, about("The name of an attribute.")]
    type: Annotated[str, about("Its type, or empty: it must exist.")]
    value: ValueText | UnsetType = UNSET
    value_base64: ValueBytes | UnsetType = UNSET


class FilterReply(Reply, frozen=True, kw_only=True):
    """A filter of a tag or a task."""

    operator: Annotated[Literal["AND", "OR"], about("All conditions must hold, or one.")]
    conditions: Annotated[list[ConditionReply], about("What the attributes must be.")]


class PauseReply(Reply, frozen=True, kw_only=True):
    """That nobody receives."""

    by: Annotated[str, about("The principal that said so.")]
    at_ms: Annotated[Moment, about("When (epoch ms).")]
    reason: Annotated[str, about("Why; empty = they did not say.")]


Made = Annotated[Moment, about("When it was made (epoch ms).")]
Changed = Annotated[Moment, about("When it was changed last (epoch ms).")]
Notes = Annotated[dict[str, str], about("Free texts of the owner's.")]


class TagReply(Reply, frozen=True, kw_only=True):
    """A tag. `backlog` = stored + ready + delayed + leased + parked; an upper bound where there is
    a filter.
    """

    name: Annotated[str, about("The tag's name.")]
    created_at_ms: Made
    start_at_ms: Annotated[Moment, about("It has messages sent since then; 0 = all, negative = since it was made.")]
    filter: Annotated[FilterReply | None, about("Which messages it has; null = all.")]
    user_attributes: Notes
    backlog: Annotated[Count, about("Messages that are not settled.")]
    ready: Annotated[Count, about("Receivable now.")]
    delayed: Annotated[Count, about("Receivable later.")]
    leased: Annotated[Count, about("With consumers.")]
    parked: Annotated[
        Count, about("FIFO: received too often, each the first of a group that waits for somebody to unpark it.")
    ]
    stored: Annotated[Count, about("In Kafka, beyond what is in hand: will be ready.")]
    read_qps: Annotated[Count, about("Receives a second under it; 0 = no bound.")]
    redrive_policy: Annotated[
        RedrivePolicyReply | None, about("Where messages go that die under it; null = as in the queue.")
    ]
    paused: Annotated[PauseReply | None, about("That nobody receives under it; null = it is not paused by itself.")]


class DoneReply(Reply, frozen=True, kw_only=True):
    """What was done under a tag since its queue was made: numbers that only grow."""

    name: Annotated[str, about("The tag's name.")]
    received: Annotated[Count, about("Deliveries. Those that no answer carried are none.")]
    redelivered: Annotated[Count, about("Of these, deliveries of messages that had been delivered before.")]
    acked: Annotated[Count, about("Messages that were acknowledged.")]
    released: Annotated[Count, about("Deliveries that consumers gave back.")]
    dead: Annotated[Count, about("Messages moved to a dead-letter queue.")]


class QueueCountsReply(Reply, frozen=True, kw_only=True):
    """What is in a queue, added up over its tags: a message that two tags have counts twice.
    `backlog` = ready + delayed + leased + parked + stored.
    """

    name: Annotated[str, about("The queue's name.")]
    backlog: Annotated[Count, about("Messages that are not settled.")]
    ready: Annotated[Count, about("Receivable now.")]
    delayed: Annotated[Count, about("Receivable later.")]
    leased: Annotated[Count, about("With consumers.")]
    parked: Annotated[Count, about("FIFO: each the first of a group that waits for somebody to unpark it.")]
    stored: Annotated[Count, about("In Kafka, beyond what is in hand: will be ready.")]
    oldest_at_ms: Annotated[
        int | None, about("When the oldest one was sent that is not settled (epoch ms); null = none, or not known.")
    ]
    as_of_ms: Annotated[int | None, about("When that was counted (epoch ms); null = it was not yet.")]
    paused: Annotated[bool, about("Whether it is paused, or a tag of it.")]
    sent: Annotated[Count, about("Records that were ever written to it; only grows.")]
    tags: Annotated[list[DoneReply], about("What was done under each tag.")]


class QueuesReply(Reply, frozen=True, kw_only=True):
    """A page of queues; `next` = null at the end."""

    queues: Annotated[list[str], about("Names, in order.")]
    counts: (
        Annotated[list[QueueCountsReply], about("Asked with `counts`: what is in them, in the same order.")] | UnsetType
    ) = UNSET
    next: Annotated[str | None, about("The `after`, or with `counts` the `cursor`, of the next page; null at the end.")]


class SharedQueueReply(Reply, frozen=True, kw_only=True):
    """A queue of somebody else, and its counts under the default tag."""

    name: Annotated[str, about("Its name.")]
    owner: Annotated[str, about("The principal that has created it.")]
    backlog: Annotated[int, about("Messages that are not settled.")]
    ready: Annotated[int, about("Of these, those that can be received now.")]
    leased: Annotated[int, about("Of these, those that are in flight.")]


class SharedQueuesReply(Reply, frozen=True, kw_only=True):
    """A page of queues; `next` = null at the end, else the `after` of the next page."""

    queues: Annotated[list[SharedQueueReply], about("The queues, in order of their names.")]
    next: Annotated[str | None, about("The `after` of the next page; null at the end.")]


class TagsReply(Reply, frozen=True, kw_only=True):
    """All tags of a queue."""

    tags: Annotated[list[TagReply], about("The tags, the default one first.")]


MessageId = Annotated[str, about("The message's id.")]
SentAt = Annotated[Moment, about("When it was sent (epoch ms).")]
SequenceNumber = Annotated[str, about("FIFO: 20 digits, growing within a group.")]


class SentReply(Reply, frozen=True, kw_only=True):
    """A message that Kafka has. `body_md5` is over the body's bytes. FIFO: one that repeats an
    earlier one has that one's id.
    """

    id: MessageId
    body_md5: Annotated[str, about("The MD5 of the body's bytes, in hex.")]
    sent_at_ms: SentAt
    sequence_number: SequenceNumber | UnsetType = UNSET


class SendReply(Reply, frozen=True, kw_only=True):
    """One entry per message, in the order sent."""

    messages: Annotated[list[SentReply], about("What became of each, in the order given.")]


class AttributeReply(Reply, frozen=True, kw_only=True):
    """An attribute: `value`, or `value_base64` of what is not text."""

    type: Annotated[str, about("string, number or binary, with .subtype if there is one.")]
    value: ValueText | UnsetType = UNSET
    value_base64: ValueBytes | UnsetType = UNSET


FirstReceived = Annotated[Moment, about("When it was received first (epoch ms).")]


class OriginReply(Reply, frozen=True, kw_only=True):
    """Where a moved message came from: `from_*` is the last move, `original_*` the first send."""

    from_id: Annotated[str, about("Its id before the last move.")]
    from_tag: Annotated[str, about("The tag under which it was moved.")]
    original_id: Annotated[str, about("Its id when it was sent.")]
    original_queue: Annotated[str, about("The queue that it was sent to.")]
    original_tag: Annotated[str, about("The tag under which it was moved first.")]
    reason: Annotated[str, one_of((*Reason, ""), "Why it died; empty for one that a task moved.")]
    receive_count: Annotated[Count, about("Deliveries before the last move.")]
    first_received_at_ms: FirstReceived
    original_sent_at_ms: Annotated[Moment, about("When it was sent first (epoch ms).")]
    moved_at_ms: Annotated[Moment, about("When it was moved (epoch ms).")]
    note: Annotated[str, about("What the consumer said who killed it; empty = nothing.")]


BodyText = Annotated[str, about("The body, if it is text.")]
BodyBytes = Annotated[bytes, about("The body in base64, if it is not.")]
Attributes = Annotated[dict[str, AttributeReply], about("Attributes by name.")]
Received = Annotated[Count, about("How often it was received.")]
Partition = Annotated[Count, about("The partition of the queue's topic that it is in.")]
Offset = Annotated[Count, about("Its offset there.")]
Group = Annotated[str, about("The group that it was sent with.")]
DedupId = Annotated[str, about("FIFO: the id that makes later ones repeats of it.")]
Priority = Annotated[Count, about("Its priority, 1 to 16; left out for 8.")]
Sender = Annotated[str, about("The principal that sent it.")]
Moved = Annotated[OriginReply, about("Where it came from, if it was moved here.")]


class DeliveryReply(Reply, frozen=True, kw_only=True):
    """A message leased until `next_visible_at_ms`. It has `body` (text) or `body_base64`; `origin`
    if it was moved here.
    """

    id: MessageId
    handle: Annotated[str, about("What ack, extend, release and kill ask for.")]
    body: BodyText | UnsetType = UNSET
    body_base64: BodyBytes | UnsetType = UNSET
    attributes: Attributes
    sent_at_ms: SentAt
    receive_count: Received
    first_received_at_ms: FirstReceived
    next_visible_at_ms: Annotated[Moment, about("When the lease ends (epoch ms).")]
    partition: Partition
    offset: Offset
    group: Group | UnsetType = UNSET
    dedup_id: DedupId | UnsetType = UNSET
    sequence_number: SequenceNumber | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sender: Sender | UnsetType = UNSET
    origin: Moved | UnsetType = UNSET


class ReceiveReply(Reply, frozen=True, kw_only=True):
    """The leased messages; none if there were none within the wait."""

    messages: Annotated[list[DeliveryReply], about("What was leased.")]


class PeekedReply(Reply, frozen=True, kw_only=True):
    """A message looked at; nothing was counted. `state`, counts and times are those under the tag
    asked for.
    """

    id: MessageId
    state: Annotated[str, one_of(MessageState, "Where it stands under the tag.")]
    body: BodyText | UnsetType = UNSET
    body_base64: BodyBytes | UnsetType = UNSET
    attributes: Attributes
    sent_at_ms: SentAt
    receive_count: Received
    first_received_at_ms: Annotated[Moment | None, about("When it was received first (epoch ms); null = it was not.")]
    next_visible_at_ms: Annotated[
        Moment | None, about("When it is receivable (epoch ms); null = it is, or never again.")
    ]
    partition: Partition
    offset: Offset
    group: Group | UnsetType = UNSET
    dedup_id: DedupId | UnsetType = UNSET
    sequence_number: SequenceNumber | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sender: Sender | UnsetType = UNSET
    origin: Moved | UnsetType = UNSET
    masked: (
        Annotated[bool, about("true = body and attributes are what the queue's mask leaves of them for who asks.")]
        | UnsetType
    ) = UNSET


class ParkedGroupReply(Reply, frozen=True, kw_only=True):
    """A group that is held back under the tag asked for, and the message that has parked it."""

    group: Annotated[str | None, about("The group; null = the message has none, or Kafka has it no more.")]
    message_id: MessageId
    partition: Partition
    offset: Offset
    receive_count: Received
    first_received_at_ms: Annotated[Moment, about("When it was received first (epoch ms).")]
    expires_at_ms: Annotated[
        Moment | None, about("When its retention ends (epoch ms), and the group goes on; null = never.")
    ]
    held: Annotated[Count, about("Messages of the group behind it, of those in hand.")]


class ParkedReply(Reply, frozen=True, kw_only=True):
    """A page of parked groups; `next` continues it, null = the end."""

    groups: Annotated[list[ParkedGroupReply], about("Groups, by partition, the first to expire first.")]
    next: Annotated[str | None, about("The `next` of the next page; null at the end.")]


class UnparkReply(Reply, frozen=True, kw_only=True):
    """Whether the group was parked until now."""

    unparked: Annotated[bool, about("false = it was not parked; nothing was changed.")]


class PageReply(Reply, frozen=True, kw_only=True):
    """A page of messages; `next` continues it, null = the end."""

    messages: Annotated[list[PeekedReply], about("The messages that were asked for.")]
    next: Annotated[str | None, about("The `next` of the next page; null = the end.")]
    scanned: Annotated[Count, about("Records that were read for this page.")]
    cut: Annotated[Cut | None, about("The bound that has ended the page before it was full; null = none.")]


class ResultReply(Reply, frozen=True, kw_only=True):
    """What became of one handle: ok, stale (its delivery is over) or lapsed (its lease is)."""

    handle: Annotated[str, about("The handle that was given.")]
    status: Annotated[ResultStatus, about("ok = done; stale, lapsed = nothing was changed.")]
    reason: Annotated[str, one_of(StaleReason, "Why it is stale or lapsed.")] | UnsetType = UNSET
    next_visible_at_ms: Annotated[Moment, about("When the message is receivable (epoch ms).")] | UnsetType = UNSET


class ResultsReply(Reply, frozen=True, kw_only=True):
    """One result per handle, in the order given."""

    results: Annotated[list[ResultReply], about("What became of each handle.")]


class ChoiceReply(Reply, frozen=True, kw_only=True):
    """Which dead letters a task moves, beside its filter; what is left out does not bound it."""

    from_ms: Annotated[Moment, about("Only what came at or after (epoch ms).")] | UnsetType = UNSET
    to_ms: Annotated[Moment, about("Only what came before (epoch ms).")] | UnsetType = UNSET
    reason: Annotated[str, one_of(DEATHS, "Only what died of this.")] | UnsetType = UNSET
    source: Annotated[str, about("Only what died in this queue.")] | UnsetType = UNSET
    text: Annotated[str, about("Only text bodies that have this in them.")] | UnsetType = UNSET
    ignore_case: Annotated[bool, about("With `text`: in capitals or not.")] | UnsetType = UNSET


class TaskReply(Reply, frozen=True, kw_only=True):
    """A redrive task. `total` counts the messages found so far."""

    id: Annotated[str, about("The task's id.")]
    status: Annotated[str, one_of(TaskStatus, "Where it stands.")]
    source: Annotated[str, about("The queue that it empties.")]
    destination: Annotated[str | None, about("Where it sends messages; null = each to where it came from.")]
    filter: Annotated[FilterReply | None, about("Which messages it moves; null = all.")]
    choice: Annotated[ChoiceReply | None, about("And which of these; null = all.")]
    rate: Annotated[Count, about("Messages a second; 0 = no bound.")]
    moved: Annotated[Count, about("Messages moved so far.")]
    failed: Annotated[Count, about("Messages that could not be moved: leased, or their queue is gone.")]
    total: Annotated[Count, about("Messages found so far.")]
    created_at_ms: Made
    modified_at_ms: Changed
    failure: Annotated[str, about("Why it failed; empty = it did not.")]
