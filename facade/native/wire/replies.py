"""Bodies of the native dialect's replies, as structs.

Neighbours: `translate` makes them of the engine's shapes, `openapi` the document. A field that does
not apply is left out (UNSET) where that's said, else null. Words come from the engine's vocabulary.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from engine.rules.fifo import SCOPES
from facade.native.wire.units import Moment, one_of
from schemas.vocabulary import DecisionReason, Level, MessageState, Reason, TaskStatus, TransactionStatus

Span = Annotated[float, Meta(ge=0, description="Seconds.")]
Count = Annotated[int, Meta(ge=0)]
ResultStatus = Literal["ok", "stale", "lapsed"]


class Reply(Struct, frozen=True, kw_only=True):
    """Base of all replies."""


def _about(text: str) -> Meta:
    return Meta(description=text)


class RedrivePolicyReply(Reply, frozen=True, kw_only=True):
    """After `max_receive_count` deliveries without an ack, a message goes to queue
    `dead_letter_queue`.
    """

    dead_letter_queue: Annotated[str, _about("The queue for what died.")]
    max_receive_count: Annotated[Count, _about("Deliveries of a message before it goes there.")]


ValueText = Annotated[str, _about("The value, if it is text.")]
ValueBytes = Annotated[bytes, _about("The value in base64, if it is not.")]


class ConditionReply(Reply, frozen=True, kw_only=True):
    """A condition of a filter; type `empty` has neither value."""

    name: Annotated[str, _about("The name of an attribute.")]
    type: Annotated[str, _about("Its type, or empty: it must exist.")]
    value: ValueText | UnsetType = UNSET
    value_base64: ValueBytes | UnsetType = UNSET


class FilterReply(Reply, frozen=True, kw_only=True):
    """A filter of a tag or a task."""

    operator: Annotated[Literal["AND", "OR"], _about("All conditions must hold, or one.")]
    conditions: Annotated[list[ConditionReply], _about("What the attributes must be.")]


Made = Annotated[Moment, _about("When it was made (epoch ms).")]
Changed = Annotated[Moment, _about("When it was changed last (epoch ms).")]
Notes = Annotated[dict[str, str], _about("Free texts of the owner's.")]


class TagReply(Reply, frozen=True, kw_only=True):
    """A tag. `backlog` = stored + ready + delayed + leased; an upper bound where there is a
    filter.
    """

    name: Annotated[str, _about("The tag's name.")]
    created_at_ms: Made
    start_at_ms: Annotated[Moment, _about("It has messages sent since then; 0 = all, negative = since it was made.")]
    filter: Annotated[FilterReply | None, _about("Which messages it has; null = all.")]
    user_attributes: Notes
    backlog: Annotated[Count, _about("Messages that are not settled.")]
    ready: Annotated[Count, _about("Receivable now.")]
    delayed: Annotated[Count, _about("Receivable later.")]
    leased: Annotated[Count, _about("With consumers.")]
    stored: Annotated[Count, _about("In Kafka, beyond what is in hand: will be ready.")]
    read_qps: Annotated[Count, _about("Receives a second under it; 0 = no bound.")]


class QueueReply(Reply, frozen=True, kw_only=True):
    """A queue: settings, who uses it for dead letters, tags with counts."""

    name: Annotated[str, _about("The queue's name.")]
    owner: Annotated[str, _about("The principal that made it.")]
    created_at_ms: Made
    modified_at_ms: Changed
    partitions: Annotated[Count, _about("Partitions of its topic.")]
    delay_seconds: Annotated[Span, _about("Seconds from send to the first receive.")]
    lease_seconds: Annotated[Span, _about("Seconds for which a delivery is leased.")]
    retention_seconds: Annotated[Span, _about("Seconds after which a message that nobody acked is dropped.")]
    max_message_bytes: Annotated[Count, _about("Bytes that a message may have: body and attributes.")]
    receive_wait_seconds: Annotated[Span, _about("Seconds that a receive waits which names none.")]
    max_receive_messages: Annotated[Count, _about("Most messages of one receive.")]
    durable_acks: Annotated[bool, _about("Whether an ack is answered only when Kafka has it.")]
    fifo: Annotated[bool, _about("Whether a group's messages are received in order.")]
    content_dedup: Annotated[bool, _about("FIFO: whether a message without a dedup_id has the SHA-256 of its body as one.")]
    dedup_scope: Annotated[str, one_of(SCOPES, "FIFO: within what a dedup_id is unique for five minutes.")]
    read_qps: Annotated[Count, _about("Receives a second; 0 = no bound.")]
    write_qps: Annotated[Count, _about("Sends a second; 0 = no bound.")]
    dead_letter: Annotated[bool, _about("Whether it was made as a dead-letter queue.")]
    default_tag_name: Annotated[str, _about("Another name of the default tag; empty = none.")]
    one_per_group: Annotated[bool, _about("FIFO: whether one message of a group is in flight at most.")]
    priority: Annotated[bool, _about("Whether messages with a lower priority number are received first.")]
    user_attributes: Notes
    redrive_policy: Annotated[RedrivePolicyReply | None, _about("Where messages go that die, and when; null = none does.")]
    source_queues: Annotated[list[str], _about("The queues whose dead letters come here.")]
    tags: Annotated[list[TagReply], _about("Its tags, the default one first.")]


class QueuesReply(Reply, frozen=True, kw_only=True):
    """A page of names; `next` = null at the end, else the `after` of the next page."""

    queues: Annotated[list[str], _about("Names, in order.")]
    next: Annotated[str | None, _about("The `after` of the next page; null at the end.")]


class SharedQueueReply(Reply, frozen=True, kw_only=True):
    """A queue of somebody else, and its counts under the default tag."""

    name: Annotated[str, _about("Its name.")]
    owner: Annotated[str, _about("The principal that has created it.")]
    backlog: Annotated[int, _about("Messages that are not settled.")]
    ready: Annotated[int, _about("Of these, those that can be received now.")]
    leased: Annotated[int, _about("Of these, those that are in flight.")]


class SharedQueuesReply(Reply, frozen=True, kw_only=True):
    """A page of queues; `next` = null at the end, else the `after` of the next page."""

    queues: Annotated[list[SharedQueueReply], _about("The queues, in order of their names.")]
    next: Annotated[str | None, _about("The `after` of the next page; null at the end.")]


class TagsReply(Reply, frozen=True, kw_only=True):
    """All tags of a queue."""

    tags: Annotated[list[TagReply], _about("The tags, the default one first.")]


MessageId = Annotated[str, _about("The message's id.")]
SentAt = Annotated[Moment, _about("When it was sent (epoch ms).")]
SequenceNumber = Annotated[str, _about("FIFO: 20 digits, growing within a group.")]


class SentReply(Reply, frozen=True, kw_only=True):
    """A message that Kafka has. `body_md5` is over the body's bytes. FIFO: one that repeats an
    earlier one has that one's id.
    """

    id: MessageId
    body_md5: Annotated[str, _about("The MD5 of the body's bytes, in hex.")]
    sent_at_ms: SentAt
    sequence_number: SequenceNumber | UnsetType = UNSET


class SendReply(Reply, frozen=True, kw_only=True):
    """One entry per message, in the order sent."""

    messages: Annotated[list[SentReply], _about("What became of each, in the order given.")]


class AttributeReply(Reply, frozen=True, kw_only=True):
    """An attribute: `value`, or `value_base64` of what is not text."""

    type: Annotated[str, _about("string, number or binary, with .subtype if there is one.")]
    value: ValueText | UnsetType = UNSET
    value_base64: ValueBytes | UnsetType = UNSET


FirstReceived = Annotated[Moment, _about("When it was received first (epoch ms).")]


class OriginReply(Reply, frozen=True, kw_only=True):
    """Where a moved message came from: `from_*` is the last move, `original_*` the first send."""

    from_id: Annotated[str, _about("Its id before the last move.")]
    from_tag: Annotated[str, _about("The tag under which it was moved.")]
    original_id: Annotated[str, _about("Its id when it was sent.")]
    original_queue: Annotated[str, _about("The queue that it was sent to.")]
    original_tag: Annotated[str, _about("The tag under which it was moved first.")]
    reason: Annotated[str, one_of((*Reason, ""), "Why it died; empty for one that a task moved.")]
    receive_count: Annotated[Count, _about("Deliveries before the last move.")]
    first_received_at_ms: FirstReceived
    original_sent_at_ms: Annotated[Moment, _about("When it was sent first (epoch ms).")]
    moved_at_ms: Annotated[Moment, _about("When it was moved (epoch ms).")]


BodyText = Annotated[str, _about("The body, if it is text.")]
BodyBytes = Annotated[bytes, _about("The body in base64, if it is not.")]
Attributes = Annotated[dict[str, AttributeReply], _about("Attributes by name.")]
Received = Annotated[Count, _about("How often it was received.")]
Partition = Annotated[Count, _about("The partition of the queue's topic that it is in.")]
Offset = Annotated[Count, _about("Its offset there.")]
Group = Annotated[str, _about("The group that it was sent with.")]
DedupId = Annotated[str, _about("FIFO: the id that makes later ones repeats of it.")]
Priority = Annotated[Count, _about("Its priority, 1 to 16; left out for 8.")]
Sender = Annotated[str, _about("The principal that sent it.")]
Moved = Annotated[OriginReply, _about("Where it came from, if it was moved here.")]


class DeliveryReply(Reply, frozen=True, kw_only=True):
    """A message leased until `next_visible_at_ms`. It has `body` (text) or `body_base64`; `origin`
    if it was moved here.
    """

    id: MessageId
    handle: Annotated[str, _about("What ack, extend, release and kill ask for.")]
    body: BodyText | UnsetType = UNSET
    body_base64: BodyBytes | UnsetType = UNSET
    attributes: Attributes
    sent_at_ms: SentAt
    receive_count: Received
    first_received_at_ms: FirstReceived
    next_visible_at_ms: Annotated[Moment, _about("When the lease ends (epoch ms).")]
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

    messages: Annotated[list[DeliveryReply], _about("What was leased.")]


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
    first_received_at_ms: Annotated[Moment | None, _about("When it was received first (epoch ms); null = it was not.")]
    next_visible_at_ms: Annotated[Moment | None, _about("When it is receivable (epoch ms); null = it is, or never again.")]
    partition: Partition
    offset: Offset
    group: Group | UnsetType = UNSET
    dedup_id: DedupId | UnsetType = UNSET
    sequence_number: SequenceNumber | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sender: Sender | UnsetType = UNSET
    origin: Moved | UnsetType = UNSET


class PageReply(Reply, frozen=True, kw_only=True):
    """A page of messages; `next` continues it, null = the end."""

    messages: Annotated[list[PeekedReply], _about("The messages that were asked for.")]
    next: Annotated[str | None, _about("The `next` of the next page; null = the end.")]


class ResultReply(Reply, frozen=True, kw_only=True):
    """What became of one handle: ok, stale (its delivery is over) or lapsed (its lease is)."""

    handle: Annotated[str, _about("The handle that was given.")]
    status: Annotated[ResultStatus, _about("ok = done; stale, lapsed = nothing was changed.")]
    next_visible_at_ms: Annotated[Moment, _about("When the message is receivable (epoch ms).")] | UnsetType = UNSET


class ResultsReply(Reply, frozen=True, kw_only=True):
    """One result per handle, in the order given."""

    results: Annotated[list[ResultReply], _about("What became of each handle.")]


class TaskReply(Reply, frozen=True, kw_only=True):
    """A redrive task. `total` counts the messages found so far."""

    id: Annotated[str, _about("The task's id.")]
    status: Annotated[str, one_of(TaskStatus, "Where it stands.")]
    source: Annotated[str, _about("The queue that it empties.")]
    destination: Annotated[str | None, _about("Where it sends messages; null = each to where it came from.")]
    filter: Annotated[FilterReply | None, _about("Which messages it moves; null = all.")]
    rate: Annotated[Count, _about("Messages a second; 0 = no bound.")]
    moved: Annotated[Count, _about("Messages moved so far.")]
    failed: Annotated[Count, _about("Messages that could not be moved: leased, or their queue is gone.")]
    total: Annotated[Count, _about("Messages found so far.")]
    created_at_ms: Made
    modified_at_ms: Changed
    failure: Annotated[str, _about("Why it failed; empty = it did not.")]


class TransactionReply(Reply, frozen=True, kw_only=True):
    """A transaction. `message_ids` are there when it is committed and carried out."""

    id: Annotated[str, _about("The transaction's id.")]
    status: Annotated[str, one_of(TransactionStatus, "Where it stands.")]
    queue: Annotated[str, _about("The queue that its messages are for.")]
    producer_group: Annotated[str, _about("Whom the service asks about it.")]
    principal: Annotated[str, _about("Who prepared it.")]
    messages: Annotated[Count, _about("How many messages it has.")]
    prepared_at_ms: Annotated[Moment, _about("When it was prepared (epoch ms).")]
    checks: Annotated[Count, _about("How often its producers could be asked.")]
    checks_left: Annotated[Count, _about("How often they will be asked at most.")]
    next_check_at_ms: Annotated[Moment | None, _about("When they are asked next (epoch ms); null = no more.")]
    decided_at_ms: Annotated[Moment | None, _about("When it was decided (epoch ms); null = it is open.")]
    decided_by: Annotated[str, _about("Who decided; empty = nobody yet, or the service.")]
    reason: Annotated[str, one_of((*DecisionReason, ""), "Why it was decided so; empty = it is open.")]
    message_ids: Annotated[list[str], _about("The ids of its messages, in the order given.")]


class TransactionsReply(Reply, frozen=True, kw_only=True):
    """Transactions, those prepared last first."""

    transactions: Annotated[list[TransactionReply], _about("The transactions that are known.")]


class HalfMessageReply(Reply, frozen=True, kw_only=True):
    """A message that is not committed: `body` (text) or `body_base64`."""

    body: BodyText | UnsetType = UNSET
    body_base64: BodyBytes | UnsetType = UNSET
    attributes: Attributes


class CheckReply(Reply, frozen=True, kw_only=True):
    """A question: what became of this transaction? Answer with commit, rollback or unknown."""

    id: Annotated[str, _about("The id of the question.")]
    number: Annotated[Count, _about("How often it was asked, this time included.")]
    transaction: TransactionReply
    messages: Annotated[list[HalfMessageReply], _about("What would be sent.")]


class ChecksReply(Reply, frozen=True, kw_only=True):
    """Questions for this producer alone; none if there were none within the wait."""

    checks: Annotated[list[CheckReply], _about("What is asked.")]


class WebhookReply(Reply, frozen=True, kw_only=True):
    """Where a producer group is asked."""

    producer_group: Annotated[str, _about("The group.")]
    owner: Annotated[str, _about("Who registered it.")]
    url: Annotated[str, _about("Where the questions go.")]
    modified_at_ms: Changed
    secret: Annotated[str, _about("What signs the requests; only in the answer to its registration.")] | UnsetType = UNSET


class GrantReply(Reply, frozen=True, kw_only=True):
    """What a principal may do with a queue."""

    principal: Annotated[str, _about("Who it is.")]
    level: Annotated[str, one_of(Level, "What it may do.")]


class GrantsReply(Reply, frozen=True, kw_only=True):
    """Every principal that was given a level; owner and administrators need none."""

    grants: Annotated[list[GrantReply], _about("The levels, by principal.")]


class UseReply(Reply, frozen=True, kw_only=True):
    """What a user has."""

    queues: Annotated[Count, _about("Queues.")]
    read_qps: Annotated[Count, _about("The sum of their quotas of receives.")]
    write_qps: Annotated[Count, _about("The sum of their quotas of sends.")]


class UserReply(Reply, frozen=True, kw_only=True):
    """A user: contacts, quotas over all their queues (0 = no bound), and what they have."""

    name: Annotated[str, _about("Who it is.")]
    display_name: Annotated[str, _about("What people call the user.")]
    email: Annotated[str, _about("Where alerts go.")]
    phone: Annotated[str, _about("A number.")]
    read_qps: Annotated[Count, _about("Receives a second.")]
    write_qps: Annotated[Count, _about("Sends a second.")]
    queues: Annotated[Count, _about("Queues that the user may have.")]
    used: Annotated[UseReply, _about("What the user has.")]


KeyId = Annotated[str, _about("The key's id.")]


class NewKeyReply(Reply, frozen=True, kw_only=True):
    """An access key; the secret is not shown again."""

    key_id: KeyId
    secret: Annotated[str, _about("The key's secret, this once.")]


class KeyReply(Reply, frozen=True, kw_only=True):
    """An access key without its secret."""

    key_id: KeyId
    principal: Annotated[str, _about("Who has it.")]
    admin: Annotated[bool, _about("Whether it may do everything.")]
    created_at_ms: Made


class KeysReply(Reply, frozen=True, kw_only=True):
    """All access keys."""

    keys: Annotated[list[KeyReply], _about("The keys.")]
