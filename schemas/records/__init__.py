"""What is written to Kafka, as frozen structs; `wire.py` turns them into Avro and back."""

from __future__ import annotations

from msgspec import Struct, field

from schemas.filters import Filter
from schemas.records.settings import EffectiveSettings, RedrivePolicy
from schemas.vocabulary import DEFAULT_PRIORITY


class Attribute(Struct, frozen=True):
    """A user attribute: `type` is string[.sub], number[.sub] or binary[.sub] (case kept); `value`
    its bytes (UTF-8 but for binary).
    """

    type: str
    value: bytes


class Origin(Struct, frozen=True):
    """Where a moved message came from. `from_*` is the step that made this record, `original_*` the
    first send; `note` is what the consumer said who killed it.
    """

    from_id: str
    from_tag: str
    original_id: str
    original_queue: str
    original_tag: str
    reason: str
    receive_count: int
    first_received_at_ms: int
    original_sent_at_ms: int
    moved_at_ms: int
    note: str = ""


class BatchMark(Struct, frozen=True):
    """Record `index` (from 0) of the `size` records of atomic batch `id`; all of one partition."""

    id: str
    index: int
    size: int


class Message(Struct, frozen=True):
    """The value of a record in `lw.q.<queue>`. Optional fields: None = the queue's setting
    holds.
    """

    body: bytes
    attributes: dict[str, Attribute] = {}
    delay_ms: int = 0
    lease_ms: int | None = None
    sender: str = ""
    origin: Origin | None = None
    batch: BatchMark | None = None
    group: str | None = None
    dedup_id: str | None = None
    priority: int = DEFAULT_PRIORITY
    body_is_text: bool = True


class JournalEntry(Struct, frozen=True):
    """One thing that happened to `offsets` of a unit under tag `tag`. `times` is empty or one
    epoch-ms per offset.
    """

    seq: int
    at_ms: int
    kind: str
    tag: int
    offsets: list[int]
    times: list[int] = []
    reason: str = ""


class JournalRecord(Struct, frozen=True):
    """The value of a record in `lw.journal`: entries of one unit in seq order. A reader drops seqs
    it has seen.
    """

    queue: str
    incarnation: str
    partition: int
    entries: list[JournalEntry]


class Pause(Struct, frozen=True):
    """That nobody receives: who said so, when (epoch ms), and why; empty = they did not say."""

    by: str
    at_ms: int
    reason: str = ""


class TagRecord(Struct, frozen=True):
    """A tag of a queue. `start_offsets[p]` is the first offset of partition p it sees. `paused`:
    the tag by itself; None = it is not.

    `redrive_policy` None = that of the queue holds.
    """

    id: int
    name: str
    created_at_ms: int
    start_at_ms: int
    start_offsets: list[int]
    filter: Filter | None = None
    user_attributes: dict[str, str] = {}
    read_qps: int = 0
    redrive_policy: RedrivePolicy | None = None
    paused: Pause | None = None


class QueueRecord(EffectiveSettings, frozen=True):
    """The value of a control record with key `queue/<name>`: all that is known of a queue. Times in
    ms. `former_incarnations`: what it was called before it was renewed, newest last. `paused`: the
    queue with all its tags; None = it is not.
    """

    name: str
    incarnation: str
    owner: str
    created_at_ms: int
    modified_at_ms: int
    tags: list[TagRecord]
    next_tag_id: int
    deleting: bool = False
    purged_at_ms: int = 0
    topic_id: str = ""
    former_incarnations: list[str] = field(default_factory=list)
    paused: Pause | None = None


class KeyRecord(Struct, frozen=True):
    """The value of a control record with key `key/<key id>`. `role` empty = written before there
    were roles: `admin` says it. The previous secret counts until `previous_until_ms`; of
    `expires_at_ms` 0 = never.
    """

    key_id: str
    secret: str
    principal: str
    admin: bool
    created_at_ms: int
    role: str = ""
    expires_at_ms: int = 0
    disabled: bool = False
    previous_secret: str = ""
    previous_until_ms: int = 0


class UserRecord(Struct, frozen=True):
    """The value of a control record with key `user/<name>`: a principal's contacts and quotas, 0 =
    no bound.
    """

    name: str
    modified_at_ms: int
    display_name: str = ""
    email: str = ""
    phone: str = ""
    read_qps: int = 0
    write_qps: int = 0
    queues: int = 0
    webhook: str = ""
    partitions: int = 0
    daily_bytes: int = 0
    waits: int = 0


class Choice(Struct, frozen=True):
    """Which dead letters a redrive task may move, beside those with attributes: those that came in
    [from_ms, to_ms), died of `reason` in queue `source`, and have `text` in their bodies. Empty, or
    0, = all.
    """

    from_ms: int = 0
    to_ms: int = 0
    reason: str = ""
    source: str = ""
    text: str = ""
    any_case: bool = False


class TaskRecord(Struct, frozen=True):
    """The value of a control record with key `task/<id>`: a redrive task. `rate` is messages a
    second, 0 = no bound.

    `chosen`: the offsets that it may still move, by partition; None = all.
    `destination_incarnation`: the life of the destination that is meant, empty = not noted.
    `outcome_pages`, `outcomes`: what came of each letter so far (engine/move/tasks/outcomes.py).
    """

    id: str
    status: str
    source: str
    source_incarnation: str
    destination: str
    filter: Filter | None
    rate: int
    created_at_ms: int
    modified_at_ms: int
    end_offsets: list[int]
    next_offsets: list[int]
    moved: int = 0
    failed: int = 0
    total: int = 0
    principal: str = ""
    failure: str = ""
    expected: int = 0
    chosen: list[list[int]] | None = None
    destination_incarnation: str = ""
    choice: Choice | None = None
    outcome_pages: list[str] = []
    outcomes: bytes = b""


class OutcomesRecord(Struct, frozen=True):
    """The value of a control record with key `outcomes/<id of a task>/<page>`: what came of some of
    its letters, if the record of the task names the page.
    """

    task: str
    at_ms: int
    rows: bytes


class OpenDelivery(Struct, frozen=True, gc=False):
    """An open message in a snapshot; nonce 0 = not leased; flag 0 none, 1 killed, 2 exhausted, 3
    claimed.
    """

    offset: int
    nonce: int
    count: int
    first_received_at_ms: int
    flag: int
    time_ms: int


class Totals(Struct, frozen=True):
    """What was ever done under a tag of a unit; each only grows. Of the deliveries `leased`, those
    that no answer carried were `returned`; `leased_again` and `returned_again` are those of them
    that were not the first of their message.
    """

    leased: int = 0
    leased_again: int = 0
    returned: int = 0
    returned_again: int = 0
    acked: int = 0
    released: int = 0
    dead: int = 0


class TagSnapshot(Struct, frozen=True):
    """One tag in a snapshot: all below `floor` is settled or deferred, and the runs (first, count)
    above it are settled. What `bound` begins is of deferred messages; see its schema.
    """

    tag: int
    floor: int
    settled_first: list[int]
    settled_count: list[int]
    deliveries: list[OpenDelivery]
    bound: int = 0
    mark_ms: int = 0
    mark_offset: int = -1
    deferred: list[int] = []
    deferred_due: list[int] = []
    slots: list[int] = []
    slot_counts: list[int] = []
    excepted: list[int] = []
    excepted_slots: list[int] = []
    totals: Totals = Totals()


class SnapshotRecord(Struct, frozen=True):
    """The value of a record in `lw.snapshot` with key `<incarnation>/<partition>`: the journal of a
    unit up to `seq`.
    """

    queue: str
    incarnation: str
    partition: int
    seq: int
    at_ms: int
    tags: list[TagSnapshot]
    move_keys: list[str] = []
    move_offsets: list[int] = []


class DelayRecord(Struct, frozen=True):
    """The value of a record in `lw.delay`: deferred messages of a unit that are due in one slot."""

    incarnation: str
    partition: int
    slot: int
    offsets: list[int]
    due_ms: list[int]


class PositionRecord(Struct, frozen=True):
    """The value of the record `position` of a snapshot partition: every entry before
    `journal_offset` is in a snapshot.
    """

    journal_offset: int
    at_ms: int


class ProducerGroupRecord(Struct, frozen=True):
    """The value of a control record with key `producers/<name>`: where a producer group is asked
    about transactions.
    """

    name: str
    owner: str
    url: str
    secret: str
    modified_at_ms: int


class TransactionRecord(Struct, frozen=True):
    """The value of a record in `lw.half`: a step of transaction `id`. `messages` of a half are
    encoded as they will be in the queue's topic; `partitions` and `offsets` say where they went.
    """

    id: str
    step: str
    at_ms: int
    queue: str = ""
    incarnation: str = ""
    producer_group: str = ""
    principal: str = ""
    immunity_ms: int = 0
    messages: list[bytes] = []
    count: int = 0
    prepared_at_ms: int = 0
    check: int = 0
    decided_by: str = ""
    reason: str = ""
    partitions: list[int] = []
    offsets: list[int] = []


class GenerationRecord(Struct, frozen=True):
    """The value of the control record `generation`: which state in Redis is the true one.

    `promotion` and `evicted`: as the server said when it was named. Units of a generation before
    `adopt_from` are rebuilt, whatever they have. `earlier`: run ids that were named before.
    """

    generation: int
    redis_run_id: str
    at_ms: int
    promotion: str = ""
    evicted: int = 0
    adopt_from: int = 0
    earlier: list[str] = []


class ClaimRecord(Struct, frozen=True):
    """The value of the control record `claim`: a worker that reached a Redis which was named before
    asks whether anybody has the one that is named now; or the answer that somebody has (`held`).
    """

    token: str
    generation: int
    held: bool
    at_ms: int
