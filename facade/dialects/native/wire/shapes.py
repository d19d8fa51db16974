"""Bodies of the native dialect's requests, as structs; their names and types are the wire's, fixed
by the product.

Unknown fields are refused. Ranges and words are the engine's: the document shows them (`within`,
`setting`, `one_of`), what is decoded here is form.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from engine.rules.limits import ASKED, MAX_ATTRIBUTES, MAX_CONTACT, MAX_QUEUE_NAME, MAX_REASON, MAX_URL, SORTS
from facade.dialects.native.wire.units import (
    ATTRIBUTE_NAME_PATTERN,
    ATTRIBUTE_TYPE_PATTERN,
    CONDITION_TYPE_PATTERN,
    ID_PATTERN,
    HandleText,
    Millis,
    Name,
    QueueName,
    Seconds,
    Whole,
    entries,
    items,
    length,
    like,
    one_of,
    within,
)
from schemas.vocabulary import Level, MessageState, TransactionStatus


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests."""


class RedrivePolicyBody(Body, frozen=True, kw_only=True):
    """After `max_receive_count` deliveries without an ack, a message goes to queue
    `dead_letter_queue`.
    """

    dead_letter_queue: Annotated[QueueName, Meta(description="The queue for what died.")]
    max_receive_count: Annotated[Whole, within("max_receive_count", "Deliveries of a message before it goes there.")]


UserAttributes = Annotated[
    dict[str, str], entries(ASKED["user_attributes"][1], "Free texts of the owner's; the service does not read them.")
]
TagName = Annotated[Name, Meta(description="A tag of the queue. Default: the default tag.")]
DeliverAt = Annotated[
    Whole, within("deliver_at_ms", "When it is due (ms since 1970), up to max_delay_seconds from now; past = now.")
]
OwnLease = Annotated[Seconds, within("lease_ms", "Seconds for which its deliveries are leased. Default: the queue's.")]
OwnDelay = Annotated[Seconds, within("delay_ms", "Seconds until the first receive. Default: the queue's.")]


class CopyBody(Body, frozen=True, kw_only=True):
    """A queue with the settings, tags and policy of another, and no messages."""

    target: Annotated[QueueName, Meta(description="The name of the new queue.")]


class PauseBody(Body, frozen=True, kw_only=True):
    """Why nobody is to receive."""

    reason: Annotated[
        str, Meta(max_length=MAX_REASON, description="Why, for whoever looks; up to 200 printable characters.")
    ] = ""


AttributeText = Annotated[str, Meta(description="The value of a string or number.")]
AttributeBytes = Annotated[bytes, Meta(description="The value of a binary, in base64.")]


class ConditionBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """An attribute must have this type and value; of type `empty`, or with neither value, it must
    exist.
    """

    name: Annotated[str, Meta(pattern=ATTRIBUTE_NAME_PATTERN, description="The name of an attribute.")]
    type: (
        Annotated[
            str, Meta(pattern=CONDITION_TYPE_PATTERN, description="Its type, or empty. Default: that of the value.")
        ]
        | None
    ) = None
    value: AttributeText | None = None
    value_base64: AttributeBytes | None = None


class FilterBody(Body, frozen=True, kw_only=True):
    """Conditions on a message's attributes, all of which (AND) or one of which (OR) must hold."""

    operator: Annotated[Literal["AND", "OR"], Meta(description="All must hold, or one.")] = "AND"
    conditions: Annotated[list[ConditionBody], items("filter.conditions", "What the attributes must be.")]


class CreateTagBody(Body, frozen=True, kw_only=True):
    """A tag: a subscription of the queue with its own leases and counts."""

    name: Annotated[Name, Meta(description="The name of the new tag.")]
    start_at_ms: Annotated[
        Millis,
        within("start_at_ms", "0 = the oldest message kept, negative = from now, else messages since then (epoch ms)."),
    ] = -1
    filter: Annotated[FilterBody, Meta(description="Which messages the tag wants. Without one: all.")] | None = None
    user_attributes: UserAttributes | None = None
    read_qps: Annotated[Whole, within("read_qps", "Receives a second under the tag; 0 = no bound.")] = 0
    redrive_policy: (
        Annotated[
            RedrivePolicyBody,
            Meta(description="Where messages go that die under the tag. Without one as in the queue."),
        ]
        | None
    ) = None


class SeekBody(Body, frozen=True, kw_only=True):
    """Where a tag begins anew: `to` or `to_ms`."""

    to: (
        Annotated[
            Literal["earliest", "latest"], Meta(description="The oldest message kept, or what is sent from now on.")
        ]
        | None
    ) = None
    to_ms: (
        Annotated[Millis, within("from", "Messages sent at that time (epoch ms) or later; not in the future.")] | None
    ) = None


class AttributeBody(Body, frozen=True, kw_only=True):
    """An attribute: `value` for string and number, `value_base64` for binary. A plain string is
    short for type string.
    """

    type: Annotated[
        str, Meta(pattern=ATTRIBUTE_TYPE_PATTERN, description="string, number or binary, with .subtype if wanted.")
    ]
    value: AttributeText | None = None
    value_base64: AttributeBytes | None = None


class SendMessage(Body, frozen=True, kw_only=True):
    """A message: `body` (text) or `body_base64` (bytes). Delay and lease of its own, else the
    queue's.
    """

    body: Annotated[str, Meta(description="The body, if it is text.")] | None = None
    body_base64: Annotated[bytes, Meta(description="The body in base64, if it is not.")] | None = None
    attributes: (
        Annotated[
            dict[Annotated[str, Meta(pattern=ATTRIBUTE_NAME_PATTERN)], str | AttributeBody],
            entries(MAX_ATTRIBUTES, "Attributes by name; a plain string is one of type string."),
        ]
        | None
    ) = None
    delay_seconds: OwnDelay | None = None
    deliver_at_ms: DeliverAt | None = None
    lease_seconds: OwnLease | None = None
    group: (
        Annotated[str, like(ID_PATTERN, "Needed in a FIFO queue, which keeps its order; 1-128 characters.")] | None
    ) = None
    dedup_id: (
        Annotated[str, like(ID_PATTERN, "FIFO: a message with an id of the last five minutes is not delivered.")] | None
    ) = None
    priority: (
        Annotated[Whole, within("priority", "1 is received first, in a queue with priority. Default: 8.")] | None
    ) = None


class SendBody(Body, frozen=True, kw_only=True):
    """Messages to send; more than one are an atomic batch: all or none. FIFO with dedup_scope
    group: of one group. In a queue with priority those of one priority are.
    """

    messages: Annotated[list[SendMessage], items("messages", "What to send, in this order.")]


class PrepareBody(Body, frozen=True, kw_only=True):
    """Messages to send when the transaction is committed, all or none, by a producer of
    `producer_group`.
    """

    producer_group: Annotated[Name, Meta(description="Whom the service asks when it is not told the outcome.")]
    messages: Annotated[
        list[SendMessage], items("messages", "What to send, in this order; without delays of their own.")
    ]
    check_immunity_seconds: (
        Annotated[Seconds, within("check_immunity_ms", "Seconds in which nobody is asked. Default: the service's.")]
        | None
    ) = None


class ChecksBody(Body, frozen=True, kw_only=True):
    """How many questions to take, and how long to wait for one."""

    max: Annotated[Whole, within("max", "Most questions to take.")] = 10
    wait_seconds: Annotated[Seconds, within("wait_ms", "Seconds to wait for the first; 0 = answer at once.")] = 0.0


class WebhookBody(Body, frozen=True, kw_only=True):
    """Where a producer group is asked; without a secret the service makes one."""

    url: Annotated[str, Meta(max_length=MAX_URL, description="http or https; a public address.")]
    secret: (
        Annotated[
            str,
            Meta(
                max_length=200,
                description="What signs the requests; 16 to 200 characters.",
                extra_json_schema={"minLength": 16},
            ),
        ]
        | None
    ) = None


class ListTransactionsQuery(Body, frozen=True, kw_only=True):
    """Which transactions, at most `limit` of them."""

    status: (
        Annotated[str, Meta(min_length=1, max_length=32), one_of(TransactionStatus, "Only those that stand there.")]
        | UnsetType
    ) = UNSET
    limit: Annotated[Whole, within("limit", "Most transactions.")] = 100


class ReceiveBody(Body, frozen=True, kw_only=True):
    """What to receive; all may be left out. What is not given is the queue's setting."""

    tag: TagName | None = None
    max: Annotated[Whole, within("max", "Most messages to receive.")] | None = None
    wait_seconds: (
        Annotated[Seconds, within("wait_ms", "Seconds to wait for the first message; 0 = answer at once.")] | None
    ) = None
    lease_seconds: Annotated[Seconds, within("lease_ms", "Seconds for which the messages are leased.")] | None = None
    filter: FilterBody | None = None


_DISTINCT = Meta(extra_json_schema={"uniqueItems": True})
Handles = Annotated[list[HandleText], items("handles", "Handles of deliveries, each once."), _DISTINCT]


class HandlesBody(Body, frozen=True, kw_only=True):
    """1 to 100 different handles."""

    handles: Handles


Why = Annotated[str, Meta(max_length=MAX_REASON)]


class KillBody(Body, frozen=True, kw_only=True):
    """1 to 100 different handles; their dead letters tell why."""

    handles: Handles
    reason: Annotated[Why, Meta(description="Why, of all of them; up to 200 printable characters.")] = ""
    reasons: (
        Annotated[list[Why], items("handles", "In place of reason: one for each handle, in their order.")] | None
    ) = None


class ReleaseBody(Body, frozen=True, kw_only=True):
    """1 to 100 different handles; their messages are receivable again after the delay."""

    handles: Handles
    delay_seconds: Annotated[Seconds, within("delay_ms", "Seconds until they are receivable.")] = 0.0


class RescheduleBody(Body, frozen=True, kw_only=True):
    """When a delayed message is to be due."""

    deliver_at_ms: DeliverAt


class ExtendEntryBody(Body, frozen=True, kw_only=True):
    """A handle and its new lease, counted from now; 0 = receivable at once."""

    handle: HandleText
    lease_seconds: Annotated[Seconds, within("lease_ms", "Seconds of the lease, from now.")]


class ExtendBody(Body, frozen=True, kw_only=True):
    """1 to 100 entries with different handles."""

    entries: Annotated[list[ExtendEntryBody], items("handles", "Leases to extend, each handle once.")]


class GrantBody(Body, frozen=True, kw_only=True):
    """What a principal may do with a queue."""

    level: Annotated[str, Meta(max_length=32), one_of(Level, "What it may do; none takes it away.")]


class ContactsBody(Body, frozen=True, kw_only=True):
    """How to reach a user; alerts go to the address."""

    display_name: Annotated[str, Meta(max_length=MAX_CONTACT, description="What people call the user.")] = ""
    email: Annotated[str, Meta(max_length=MAX_CONTACT, description="Where alerts go.")] = ""
    phone: Annotated[str, Meta(max_length=MAX_CONTACT, description="A number; the service does not use it.")] = ""
    webhook: Annotated[str, Meta(max_length=1000, description="A URL to which alerts are posted.")] = ""


class UserQuotaBody(Body, frozen=True, kw_only=True):
    """How much a user may use, over all their queues; 0 = no bound."""

    read_qps: Annotated[Whole, within("read_qps", "Receives a second.")] = 0
    write_qps: Annotated[Whole, within("write_qps", "Sends a second.")] = 0
    queues: Annotated[Whole, within("queues", "Queues.")] = 0
    partitions: Annotated[Whole, within("partitions", "Partitions of all queues. Default: as it was.")] | UnsetType = (
        UNSET
    )
    daily_bytes: Annotated[Whole, within("daily_bytes", "Bytes sent on a UTC day. Default: as it was.")] | UnsetType = (
        UNSET
    )
    waits: Annotated[Whole, within("waits", "Receives that wait at a worker. Default: as it was.")] | UnsetType = UNSET


class ListQueuesQuery(Body, frozen=True, kw_only=True):
    """Names in order, `limit` a page; `after` continues behind a name. With `counts`: what is in
    each queue, in the order of `sort`; `cursor` continues a page.
    """

    prefix: Annotated[str, Meta(max_length=MAX_QUEUE_NAME, description="Only names that begin so.")] = ""
    limit: Annotated[Whole, within("limit", "Names of a page.")] = 100
    after: Annotated[str, Meta(max_length=MAX_QUEUE_NAME, description="Only names behind this one.")] | UnsetType = (
        UNSET
    )
    counts: Annotated[bool, Meta(description="Also count what is in each queue.")] = False
    dead_letters: Annotated[
        bool, Meta(description="With `counts`: only queues for dead letters, of others or made so.")
    ] = False
    sort: (
        Annotated[str, one_of(SORTS, "By the name; else the greatest number or the oldest message first.")] | UnsetType
    ) = UNSET
    cursor: (
        Annotated[str, Meta(max_length=512, description="With `counts`: the `next` of the page before.")] | UnsetType
    ) = UNSET


class ParkedQuery(Body, frozen=True, kw_only=True):
    """Which parked groups: those under `tag`, `limit` a page."""

    tag: TagName | UnsetType = UNSET
    limit: Annotated[Whole, within("limit", "Groups of a page.")] = 50
    next: Annotated[str, Meta(min_length=1, max_length=1024, description="From the page before.")] | UnsetType = UNSET


class UnparkBody(Body, frozen=True, kw_only=True):
    """A parked group to go on with, under `tag`."""

    group: Annotated[str, Meta(max_length=128, description="The group; empty = the messages that have none.")]
    tag: TagName | None = None
    kill: Annotated[
        bool, Meta(description="Send its first message to the dead-letter queue. Default: it is received again.")
    ] = False


class PeekQuery(Body, frozen=True, kw_only=True):
    """The tag under which state and counts are told."""

    tag: TagName | UnsetType = UNSET


class QueryMessages(Body, frozen=True, kw_only=True):
    """Which messages: sent between `from` and `to`, in `state` under `tag`, with the attributes
    named and the text.
    """

    from_: Annotated[Millis, within("from", "Sent at or after, epoch ms.")] | UnsetType = field(
        name="from", default=UNSET
    )
    to: Annotated[Millis, within("to", "Sent before, epoch ms.")] | UnsetType = UNSET
    state: (
        Annotated[str, Meta(min_length=1, max_length=32), one_of(MessageState, "In this state under the tag.")]
        | UnsetType
    ) = UNSET
    attribute: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=2048)]],
        Meta(
            max_length=20,
            description="`name`: it exists; `name=value`: it's the string `value`. Repeated: all must hold.",
        ),
    ] = []
    text: Annotated[str, length("text", "Only text bodies that have this in them.")] | UnsetType = UNSET
    ignore_case: Annotated[bool, Meta(description="With `text`: in capitals or not.")] = False
    tag: TagName | UnsetType = UNSET
    limit: Annotated[Whole, within("limit", "Messages of a page.")] = 50
    next: Annotated[str, Meta(min_length=1, max_length=1024, description="From the page before.")] | UnsetType = UNSET
    partition: (
        Annotated[Whole, within("partition", "Only of this partition; each message says of which it is.")] | UnsetType
    ) = UNSET
