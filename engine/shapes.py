"""Shapes that cross the seam between a dialect and the engine. Times are milliseconds; sizes are
encoded bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct

from engine.errors import EngineError
from schemas.filters import Filter
from schemas.records import Attribute, Choice, Message, Pause, QueueRecord
from schemas.records.settings import EffectiveSettings, QueueSettings, RedrivePolicy
from schemas.vocabulary import Role
from state.shared.overview import Done


class NewTag(Struct, frozen=True):
    """A tag that is made with its queue; it sees all messages of the queue."""

    name: str
    filter: Filter | None = None
    user_attributes: dict[str, str] = {}
    read_qps: int = 0


class SharedQueue(Struct, frozen=True):
    """A queue of somebody else, and its counts under the default tag."""

    name: str
    owner: str
    backlog: int
    ready: int
    leased: int


class QueueCounts(Struct, frozen=True):
    """What is in a queue, added up over its tags, as it was at `as_of_ms` (0 = it was not counted
    yet, and all else is 0). `oldest_at_ms`: when its oldest message was sent that is not settled; 0
    = there is none. `paused`: it is paused, or a tag of it. `sent` and `done` (by the name of a
    tag) are since the queue was made. `set_back`, `noisy` and `groups_in_flight`: as in
    state.shared.overview.Counted.
    """

    name: str
    backlog: int = 0
    ready: int = 0
    delayed: int = 0
    leased: int = 0
    parked: int = 0
    stored: int = 0
    oldest_at_ms: int = 0
    as_of_ms: int = 0
    paused: bool = False
    sent: int = 0
    done: dict[str, Done] = {}
    set_back: int = 0
    noisy: int = 0
    groups_in_flight: int = 0


class QueueHistory(Struct, frozen=True):
    """The numbers of a queue at times (epoch ms) that are `step_ms` apart; those after `as_of_ms`
    are not known yet. `numbers` by name, `done` by tag and name, as in QueueCounts; None = nobody
    has noted them then, or there was no queue.
    """

    queue: str
    step_ms: int
    as_of_ms: int
    at_ms: list[int]
    numbers: dict[str, list[int | None]]
    done: dict[str, dict[str, list[int | None]]]


class TagInfo(Struct, frozen=True):
    """A tag and its counts. `backlog` counts stored + ready + delayed + leased + parked (an upper
    bound where a filter is set).
    """

    name: str
    created_at_ms: int
    start_at_ms: int
    filter: Filter | None
    user_attributes: dict[str, str]
    backlog: int
    ready: int
    delayed: int
    leased: int
    stored: int
    read_qps: int = 0
    redrive_policy: RedrivePolicy | None = None  # None = that of the queue
    parked: int = 0  # each is the first of its group
    redrive_fault: str = ""  # why the policy moves nothing: a PolicyFault word
    paused: Pause | None = None  # the tag by itself


class QueueInfo(EffectiveSettings, frozen=True, kw_only=True):
    """A queue as `get_queue` shows it. `tags` holds every tag; counts need Redis."""

    name: str
    owner: str
    created_at_ms: int
    modified_at_ms: int
    source_queues: list[str]
    tags: list[TagInfo]
    purged_at_ms: int = 0
    redrive_fault: str = ""  # why the policy moves nothing: a PolicyFault word
    paused: Pause | None = None  # the queue with all its tags


class SendEntry(Struct, frozen=True, gc=False):
    """One message to send. None = the queue's setting."""

    body: bytes
    attributes: dict[str, Attribute] = {}
    delay_ms: int | None = None  # 0 to the queue's max_delay_ms
    lease_ms: int | None = None  # 0 to 12 h
    body_is_text: bool = True
    group: str | None = None  # needed in a FIFO queue
    dedup_id: str | None = None  # needed in a FIFO queue without content_dedup, refused in others
    priority: int | None = None  # 1 to 16, default 8; means something in a queue with priority only
    deliver_at_ms: int | None = None  # in place of delay_ms: not before; a past time is now


class Sent(Struct, frozen=True, gc=False):
    """A message that Kafka has. FIFO: a repeat has the id and sequence number of the first."""

    id: str
    body_md5: str
    sent_at_ms: int
    sequence_number: str = ""  # FIFO only: 20 digits, growing within a group


class Delivery(Struct, frozen=True, gc=False):
    """A message leased to the caller until `next_visible_at_ms`."""

    id: str
    handle: str
    message: Message
    sent_at_ms: int
    receive_count: int
    first_received_at_ms: int
    next_visible_at_ms: int
    partition: int
    offset: int
    sequence_number: str = ""  # FIFO only
    body_md5: str = ""  # hex; "" = this worker does not know it
    repeated: bool = False  # an answer before this one carried it
    received_at_ms: int = 0  # when it was leased, 0 = not known


class EntryResult(Struct, frozen=True, gc=False):
    """What became of one handle: `status` is an EntryStatus word; `next_visible_at_ms` after extend
    and release; `error` says why one is INVALID; `next_handle` after an extend for one use;
    `reason` is a StaleReason word for one whose delivery is over.
    """

    handle: str
    status: str
    next_visible_at_ms: int | None = None
    error: EngineError | None = None
    next_handle: str = ""
    reason: str = ""


class Late(Enum):
    """Whether a handle counts whose lease has run out, until its message is delivered again."""

    ALWAYS = auto()
    NEVER = auto()  # it is LAPSED; so is one whose message was delivered again and is not settled
    BY_QUEUE = auto()  # not in a FIFO queue; in others an extension of a message that was delivered again is SUPERSEDED


class ExtendEntry(Struct, frozen=True, gc=False):
    """A handle and its new lease, counted from now. 0-43200000 ms; 0 = receivable at once.

    `in_all_s`: the lease may end so many seconds after the delivery began, in whole seconds; None =
    the bound from now is enough. `one_use`: the result has a handle for the next use.
    """

    handle: str
    lease_ms: int
    in_all_s: int | None = None
    one_use: bool = False


class Peeked(Struct, frozen=True):
    """A message looked at, which counts nothing. `state`: a MessageState word, under the tag."""

    id: str
    message: Message
    sent_at_ms: int
    state: str
    receive_count: int
    first_received_at_ms: int | None
    next_visible_at_ms: int | None
    partition: int
    offset: int
    sequence_number: str = ""  # FIFO only
    masked: bool = False  # `message` is what the masks leave of it


class Event(Struct, frozen=True):
    """Something that happened to a message: `kind` is "sent", or an EventKind word. `until_ms`:
    until when it was leased or held then, or when it was receivable again. `queue` and `id`: where
    a moved message came from ("sent") or went.
    """

    kind: str
    at_ms: int
    tag: str = ""
    receive_count: int = 0
    until_ms: int | None = None
    reason: str = ""
    by: str = ""
    task: str = ""
    queue: str | None = None
    id: str | None = None


class Life(Struct, frozen=True):
    """What happened to a message, a page of it. `complete`: that is all; `since_ms`: what happened
    before is not known. `scanned`, `cut`, `next`: as of a page.
    """

    events: list[Event]
    complete: bool
    since_ms: int
    next: str | None
    scanned: int
    cut: str


class ParkedGroup(Struct, frozen=True):
    """A group that is held back under a tag, with the message that has parked it. `group` None =
    the message has none, or Kafka has it no more.
    """

    group: str | None
    message_id: str
    partition: int
    offset: int
    receive_count: int
    first_received_at_ms: int
    expires_at_ms: int | None  # when its retention ends; None = never
    held: int  # those behind it in the window


class ParkedPage(Struct, frozen=True):
    """A page of parked groups; `next` continues it, None = the end."""

    groups: list[ParkedGroup]
    next: str | None


class Page(Struct, frozen=True):
    """A page of a query; `next` continues it, None = the end. `scanned`: how many records were read
    for it; `cut`: the bound that has ended it before it was full ("records", "bytes", "time"),
    empty = none.
    """

    messages: list[Peeked]
    next: str | None
    scanned: int = 0
    cut: str = ""


class Principal(Struct, frozen=True, gc=False):
    """Who asks. `id` is what grants name; `admin` may do everything. `role`: what the key may on
    every queue of its account, "" = the default one. `key_id` empty = nobody asked for a key.
    """

    id: str
    admin: bool = False
    role: Role = Role.MEMBER
    key_id: str = ""
    by_old_secret: bool = False  # it was rotated
    proof: int = 0  # the hash of the secret that fitted, of this process
    account: str = ""


class KeyInfo(Struct, frozen=True):
    """An access key without its secrets. Times in epoch ms, 0 = never; `last_used_at_ms` is known
    within two minutes, and forgotten with what Redis holds.
    """

    key_id: str
    principal: str
    role: Role
    created_at_ms: int
    expires_at_ms: int
    disabled: bool
    previous_until_ms: int
    last_used_at_ms: int


class UserInfo(Struct, frozen=True):
    """What is known of a user: contacts, and quotas over all their queues; 0 = no bound."""

    name: str
    display_name: str
    email: str
    phone: str
    read_qps: int
    write_qps: int
    queues: int
    webhook: str = ""
    webhook_secret: str = ""  # the service signs with it what it sends there; empty without a webhook
    partitions: int = 0
    daily_bytes: int = 0
    waits: int = 0


class UserUse(Struct, frozen=True):
    """How many queues a user has, their partitions, the sums of their quotas, and what was sent to
    them on this UTC day: 0 while nothing bounds it.
    """

    queues: int
    read_qps: int
    write_qps: int
    partitions: int = 0
    bytes_today: int = 0


class TransactionInfo(Struct, frozen=True):
    """A transaction. `status` is a TransactionStatus word, `reason` a DecisionReason word or empty.

    `message_ids` are known when it is committed and carried out; `next_check_at_ms` None = nobody
    is asked any more; `decided_by` empty = the service.
    """

    id: str
    status: str
    queue: str
    producer_group: str
    principal: str
    messages: int
    prepared_at_ms: int
    checks: int
    checks_left: int
    next_check_at_ms: int | None
    decided_at_ms: int | None
    decided_by: str
    reason: str
    message_ids: list[str]


class Check(Struct, frozen=True):
    """A question to a producer: what became of this transaction? `id` names the question."""

    id: str
    number: int  # how often it was asked, this time included
    transaction: TransactionInfo
    messages: list[Message]


class Webhook(Struct, frozen=True):
    """Where a producer group is asked."""

    producer_group: str
    owner: str
    url: str
    modified_at_ms: int


class TaskInfo(Struct, frozen=True):
    """A redrive task; `status` is a TaskStatus word; `total`: messages that it found so far."""

    id: str
    status: str
    source: str
    destination: str | None
    filter: Filter | None
    rate: int
    moved: int
    failed: int
    total: int
    created_at_ms: int
    modified_at_ms: int
    failure: str
    expected: int = 0  # messages that the source had when it began
    choice: Choice | None = None


class Alarm(Struct, frozen=True):
    """Something about a queue that needs somebody's attention."""

    kind: str  # what `number` counts (engine/queues/alarms.py)
    queue: str
    number: float


# What else to change of a queue, given what it is.
Edit = Callable[[QueueRecord], QueueSettings]
