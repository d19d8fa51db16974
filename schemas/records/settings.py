"""The table of queue settings: a field of `EffectiveSettings` is a setting, and its annotation says
what is known of it.

Everything else is made of it: what a caller may name (`QueueSettings`), the stored record, the
checks of ranges (engine/rules/limits.py), the bodies, replies and pages of the native dialect. A
dialect of others has a row for each setting that it can name (facade/attributes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

from msgspec import Meta, Struct, defstruct, field
from msgspec.structs import replace

from schemas.vocabulary import RetentionFrom

DAY_MS = 86_400_000
MAX_DELAY_MS = 30 * DAY_MS
MAX_RETENTION_MS = 14 * DAY_MS
MAX_LEASE_MS = 12 * 3_600_000
MAX_WAIT_MS = 60_000
# Messages that may be leased of a queue under a tag at once, about: partitions and workers count
# for themselves.
MAX_IN_FLIGHT = 120_000
# Of one worker; 10,000 of them were seen to cost what benchmarks/README.md says.
MAX_LONG_POLLS = 20_000
# A body of RocketMQ may have 4 MB, and its properties 16 KiB; Kafka takes records of 4 MiB.
MAX_MESSAGE_BYTES = 4_000_000 + 16 * 1024
MAX_RECEIVE_COUNT = 1000
MAX_USER_ATTRIBUTES = 50
MAX_LABELS = 50
MAX_POLICY_BYTES = 8192
MAX_GRANTS = 20
MAX_QPS = 100_000
MAX_DAILY_BYTES = 10**15
MAX_SOURCES = 10
MAX_MASK = 20  # rules
SCOPES = ("queue", "group")
EXHAUSTED = BLOCK, DEAD_LETTER, PARK = "block", "dead_letter", "park"
ANY = "*"  # among principals, verbs or sources: each of them


class RedrivePolicy(Struct, frozen=True):
    """After `max_receive_count` deliveries without an ack a message goes to queue
    `dead_letter_queue`.

    `dead_letter_incarnation` names the life of that queue that is meant, NO_INCARNATION = none that
    is there; `set_by` is who set the policy. Both empty = not noted, as in what a caller asks for.
    """

    dead_letter_queue: str
    max_receive_count: int
    dead_letter_incarnation: str = ""
    set_by: str = ""


class Grant(Struct, frozen=True):
    """What `principals` may do, or must not. "*" among the principals = anybody but owner and
    administrators, who need no grant. With a `level` it is that which they may, and `verbs` is
    empty. With `tags` it is about messages of these alone.
    """

    allow: bool
    principals: list[str]
    verbs: list[str]
    level: str = ""
    tags: list[str] = []


class Setting(Struct, frozen=True):
    """What is known of a setting. `words` are for documents, of which units are left out: a name
    that ends with `_ms` is in milliseconds.
    """

    words: str
    name: str = ""
    default: Any = None  # None = the service's, or one that the words name
    low: int = 0
    high: int = 0  # of a number, or of how many there are; 0 = it has no range
    choices: tuple[str, ...] = ()
    may_change: bool = True
    fifo: bool = False  # for FIFO queues only
    # Whether "" or 0 says that there is none: a reply shows null.
    none: bool = False


def _is(words: str, low: int = 0, high: int = 0, **more: Any) -> Meta:
    return Meta(extra={"setting": Setting(words, low=low, high=high, **more)})


class EffectiveSettings(Struct, frozen=True, kw_only=True):
    """The settings of a queue as they are in force. A record of before a setting was there has its
    default.
    """

    partitions: Annotated[int, _is("Partitions of the topic. Default: the service's.", 1, 64, may_change=False)]
    delay_ms: Annotated[int, _is("From send to the first receive.", 0, MAX_DELAY_MS)] = 0
    max_delay_ms: Annotated[int, _is("The longest delay that a message may ask for.", 0, MAX_DELAY_MS)] = MAX_DELAY_MS
    lease_ms: Annotated[int, _is("How long a delivery is leased.", 0, MAX_LEASE_MS)] = 30_000
    retention_ms: Annotated[
        int, _is("After so long a message that nobody acked is dropped.", 60_000, MAX_RETENTION_MS)
    ] = 4 * DAY_MS
    retention_from: Annotated[
        str,
        _is(
            "From when the retention counts: a message's due time or its send.", choices=tuple(map(str, RetentionFrom))
        ),
    ] = RetentionFrom.DUE
    max_message_bytes: Annotated[
        int, _is("Bytes that a message may have: body and attributes.", 1, MAX_MESSAGE_BYTES)
    ] = 262_144
    receive_wait_ms: Annotated[int, _is("How long a receive waits which names no time.", 0, MAX_WAIT_MS)] = 0
    max_receive_messages: Annotated[int, _is("Most messages of one receive.", 1, 100)] = 100
    durable_acks: Annotated[bool, _is("Whether an ack is answered only when Kafka has it.")] = False
    fifo: Annotated[
        bool, _is("Whether a group's messages are received in order, one after the other.", may_change=False)
    ] = False
    content_dedup: Annotated[
        bool, _is("FIFO: whether a message without a dedup_id has the SHA-256 of its body as one.", fifo=True)
    ] = False
    dedup_scope: Annotated[
        str,
        _is(
            "FIFO: within what a dedup_id is unique for five minutes; can be changed only while the queue is empty.",
            choices=SCOPES,
            fifo=True,
        ),
    ] = "queue"
    one_per_group: Annotated[bool, _is("FIFO: whether one message of a group is in flight at most.", fifo=True)] = False
    on_exhausted: Annotated[
        str,
        _is(
            "FIFO: what becomes of a message received too often; without one as the redrive policy says.",
            choices=EXHAUSTED, fifo=True, none=True,
        ),
    ] = ""  # fmt: skip
    max_receive_count: Annotated[
        int,
        _is(
            "FIFO: where a group parks: deliveries before that, where no redrive policy says it.",
            1,
            MAX_RECEIVE_COUNT,
            fifo=True,
            none=True,
        ),
    ] = 0
    priority: Annotated[
        bool, _is("Whether messages with a lower priority number are received first; 16 partitions.", may_change=False)
    ] = False
    max_in_flight: Annotated[
        int, _is("Messages that may be leased at once under each tag; 0 = no bound of its own.", 0, MAX_IN_FLIGHT)
    ] = 0
    read_qps: Annotated[int, _is("Receives a second; 0 = no bound.", 0, MAX_QPS)] = 0
    write_qps: Annotated[int, _is("Sends a second; 0 = no bound.", 0, MAX_QPS)] = 0
    daily_bytes: Annotated[int, _is("Bytes that may be sent to it on a UTC day; 0 = no bound.", 0, MAX_DAILY_BYTES)] = 0
    waits: Annotated[int, _is("Receives that may wait at a worker; 0 = no bound.", 0, MAX_LONG_POLLS)] = 0
    mask: Annotated[
        list[str],
        _is(
            "What of a message is hidden from who looks at it and may not unmask it: paths in a JSON body "
            "(customer.email, items.*.iban), * (the whole body), attribute:NAME.",
            0,
            MAX_MASK,
        ),
    ] = []
    dead_letter: Annotated[
        bool, _is("Whether it was made as a dead-letter queue, so it has no redrive policy.", may_change=False)
    ] = False
    keep_unacked: Annotated[
        bool, _is("Whether what is beyond its retention stays until every tag has acked it.", may_change=False)
    ] = False
    default_tag_name: Annotated[str, _is("Another name of the default tag; empty = none.", may_change=False)] = ""
    user_attributes: Annotated[dict[str, str], _is("Free texts of the owner's; the service does not read them.")] = {}
    redrive_policy: Annotated[
        RedrivePolicy | None, _is("Where messages go that die, and when; without one none does.")
    ] = None
    labels: Annotated[dict[str, str], _is("Labels for billing and search.")] = {}
    policy: Annotated[str, _is("The words of the grants, which the engine does not read.")] = ""
    grants: Annotated[list[Grant], _is("What others may do; nobody else may do anything.", 0, MAX_GRANTS)] = []
    allowed_sources: Annotated[
        list[str], _is("Queues that may have it as dead-letter queue, * = any.", 0, MAX_SOURCES)
    ] = field(default_factory=lambda: [ANY])


_HINTS: Final = get_type_hints(EffectiveSettings, include_extras=True)
_ABSENT: Final = EffectiveSettings(partitions=0)


def _setting(name: str) -> Setting:
    about: Setting = _HINTS[name].__metadata__[0].extra["setting"]
    return replace(about, name=name, default=None if name == "partitions" else getattr(_ABSENT, name))


# By name, in order.
TABLE: Final[dict[str, Setting]] = {name: _setting(name) for name in EffectiveSettings.__struct_fields__}

if TYPE_CHECKING:

    class QueueSettings(Struct, frozen=True):
        """What a create or set names."""

        def __init__(self, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
else:
    QueueSettings = defstruct(
        "QueueSettings",
        [(name, hint.__origin__ | None, None) for name, hint in _HINTS.items()],
        frozen=True, kw_only=True, module=__name__,
        namespace={"__doc__": "What a create or set names; None = the default (create) or as it was (set)."},
    )  # fmt: skip


def named(settings: QueueSettings) -> dict[str, Any]:
    """The settings that are named, and their values."""
    return {name: value for name in TABLE if (value := getattr(settings, name)) is not None}


def effective(settings: EffectiveSettings) -> dict[str, Any]:
    """All settings that something has."""
    return {name: getattr(settings, name) for name in TABLE}
