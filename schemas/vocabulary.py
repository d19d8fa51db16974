"""The words of Leaseway: each state, event, status and reason is defined here, once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

NATIVE_SENDER: Final = "native"  # Who sent a record that a Kafka-native producer wrote: the record itself names nobody.
ANONYMOUS: Final = "anonymous"  # The principal of who names nobody, in open mode.
SOURCE_QUEUE_ATTRIBUTE: Final = "DLQ.sourceQueue"  # The engine gives it to each dead letter: the queue where it died.
NO_INCARNATION: Final = "none"  # In place of an incarnation: that of no queue.
BOOLEAN_TYPE: Final = "string.boolean"  # The type of an attribute that is a BOOLEAN of MNS.
TRACE_ATTRIBUTE: Final = "AWS.TraceHeader"  # What SQS calls the system attribute AWSTraceHeader.
DEFAULT_TAG: Final = "default"  # The name of tag 0: every queue has it, and it wants every message.

# Numbers that more than one package or language counts with; the contract test of the scripts
# compares the copies in Lua.

# An atomic batch is torn when its last record is so much later than its first
# (docs/decisions/0002).
BATCH_SPAN_MS: Final = 30_000
BATCH_CLOCK_MARGIN_MS: Final = 10_000  # An unfinished batch is waited for so much longer than its span.
# The broker's clock may differ so much from ours and Redis' when we look for a time in the log.
LOG_TIME_MARGIN_MS: Final = 60_000
# So far beyond a batch or a transaction of Kafka that is not whole yet a window takes what follows.
EARLY_OFFSETS: Final = 10_000
# A committed message counts if it was appended so soon after its attempt began
# (docs/decisions/0022).
COMMIT_SPAN_MS: Final = 30_000
# FIFO: a message repeats one with the same id that was appended at most so long before.
DEDUP_WINDOW_MS: Final = 300_000
REMEMBERED_MOVES: Final = 20_000  # Of a unit: the newest moves whose second copies are known.
# Journal entries that a unit may have which Kafka does not have: then its consumers are refused.
OUTBOX_LIMIT: Final = 20_000
# A message with a delay of so much or more is deferred, not kept in the window
# (docs/decisions/0021).
FAR_DELAY_MS: Final = 300_000
SLOT_MS: Final = 3_600_000  # A slot of the wheel has the pointers of what is due within so long.
POINTERS_LIMIT: Final = 20_000  # Pointers of a unit that the wheel does not have yet: then nothing more is deferred.
# What is parked has as its time in Redis when its retention ends, and so much more.
PARKED_MS: Final = 4_000_000_000_000_000
# The last second of the year 9999: what comes later is no time for whoever reads a journal.
LAST_MS: Final = 253_402_300_799_000
# Levels of a queue with priority, 1 is received first; each has a partition of its own
# (docs/decisions/0018).
PRIORITIES: Final = 16
DEFAULT_PRIORITY: Final = 8  # Of a message that names none.
MINUTE_MS: Final = 60_000
# Of the meters: times are counted by these upper bounds, each 1.122 times the one before, from 0.1
# ms to 126 s; the place of a time above all of them is behind the last. In whole microseconds, so
# that a sum is the same in whatever order it is made.
BOUNDS_US: Final = tuple(round(10 ** (step / 20)) for step in range(40, 163))
P999: Final = 999  # Of a thousand.
# A worker keeps so many minutes of meters that Kafka does not take, and writes them later: a record
# is appended so long after its minute, and no later. Two minutes are for clocks.
KEPT_MINUTES: Final = 60
LATE_MS: Final = (KEPT_MINUTES + 2) * MINUTE_MS
DAYS_FOLDER: Final = "days"  # Below a folder of reports: statistics of whole days, which the service tells.
# A longer header name of a native record is cut: dialects put names into HTTP headers and forms.
HEADER_NAME_CHARS: Final = 256


class MessageState(StrEnum):
    """Where a message stands under one tag."""

    DELAYED = "delayed"  # Not receivable before its time. Entered by a send or a release with a delay.
    READY = "ready"  # Receivable now. Entered by a send, a release, a lapse or a due delay; left by a receive.
    LEASED = "leased"  # With one consumer until its deadline. Left by ack, release, kill, lapse or return.
    PARKED = "parked"  # First of a group that is held back, because it was received too often.
    SETTLED = "settled"  # Acked, dead, expired, purged, deleted or moved: never received again. The journal says which.
    STORED = "stored"  # In Kafka beyond the window of the tag: will be ready when the window gets there.


class EventKind(StrEnum):
    """What a journal entry says of its offsets under its tag."""

    LEASED = "leased"  # Delivered; times = the deadlines; the entry's seq is the nonce.
    LAPSED = "lapsed"  # Deadline passed without an ack; written when the next delivery (or death) notices.
    EXTENDED = "extended"  # Deadline moved; times = the new deadlines.
    RELEASED = "released"  # Given back by the consumer; times = when receivable again.
    ACKED = "acked"  # Settled by the consumer.
    DYING = "dying"  # To be moved to the dead-letter queue (killed or exhausted); not received again meanwhile.
    DEAD = "dead"  # Settled: the dead-letter queue has it; reason = the address of the copy.
    EXPIRED = "expired"  # Settled: older than the retention of its queue, or Kafka no longer has it.
    PURGED = "purged"  # Settled by a purge: all offsets below offsets[0].
    DELETED = "deleted"  # Settled by id, without a receive.
    CLAIMED = "claimed"  # Held by a redrive task; times = until when. No delivery, counts nothing.
    MOVED = "moved"  # Settled: a redrive task has sent it on; reason = the id of the task, and the address of the copy.
    SKIPPED = "skipped"  # Settled unseen: undecodable, torn batch, or the second copy of a move; reason says which.
    COPIED = "copied"  # The first copy of a move, whichever the window took first; reason = its key. Settles nothing.
    FLOOR = "floor"  # All offsets below offsets[0] are settled, each for a reason told before, or unwanted by the tag.
    RETURNED = "returned"  # No answer carried the delivery, so it counts nothing; times = when receivable again.
    DEFERRED = "deferred"  # Due much later: the window has passed it, the wheel points to it; times = when it is due.
    BROUGHT = "brought"  # Was deferred, is in the window now; times = when it is due, reason = the mark, `ms:offset`.
    CANCELLED = "cancelled"  # Settled by its sender before it was due; times = when it was due, if it was deferred.
    RESCHEDULED = "rescheduled"  # Due at another time; times = that. If it was deferred, reason = when it was due.
    PARKED = "parked"  # Received as often as its queue allows: its group is held back; times = when its retention ends.
    UNPARKED = "unparked"  # Parked no longer, and as if it had never been received; times = when receivable again.


# What each kind does to a message, for whoever reads the journal; every kind is in one of these at
# least (a test says so).
SETTLES: Final = frozenset((
    EventKind.ACKED, EventKind.DEAD, EventKind.EXPIRED, EventKind.DELETED, EventKind.MOVED, EventKind.SKIPPED,
    EventKind.CANCELLED,
))  # Each of its offsets, for good.  # fmt: skip
BOUNDS: Final = frozenset((EventKind.PURGED, EventKind.FLOOR))  # Settles all offsets below offsets[0].
LEASES: Final = frozenset((EventKind.LEASED,))  # Begins a delivery.
PROLONGS: Final = frozenset((EventKind.EXTENDED,))  # Moves the deadline of the delivery.
ENDS: Final = frozenset((
    EventKind.RELEASED, EventKind.LAPSED, EventKind.ACKED, EventKind.DYING, EventKind.DEAD, EventKind.EXPIRED,
    EventKind.DELETED, EventKind.CLAIMED, EventKind.MOVED, EventKind.PARKED, EventKind.UNPARKED,
))  # Ends the delivery, or notices that it has ended.  # fmt: skip
# Given back by the worker, since no answer carried it: the delivery was none.
UNDOES: Final = frozenset((EventKind.RETURNED,))
# Bookkeeping: nothing happened to a message when it was written.
NOTES: Final = frozenset((
    EventKind.COPIED, EventKind.FLOOR, EventKind.DEFERRED, EventKind.BROUGHT, EventKind.RESCHEDULED,
))  # fmt: skip


class RetentionFrom(StrEnum):
    """From when the retention of a queue's messages counts."""

    DUE = "due"  # From when a message was due.
    SEND = "send"  # From when it was stored: its delay is part of it.


class EntryStatus(StrEnum):
    """What became of one handle in an ack, extend, release or kill."""

    OK = "ok"  # Done.
    SUPERSEDED = "superseded"  # Stale, where the caller tells it apart: the message was delivered again and is open.
    STALE = "stale"  # The handle's delivery is over: settled, released, or delivered again since. Nothing was changed.
    LAPSED = "lapsed"  # The lease has run out and the caller asked not to count that; nothing was changed.
    INVALID = "invalid"  # Not a handle that this queue has given out. Nothing was changed.


class StaleReason(StrEnum):
    """Why a handle is good for nothing: what has become of its delivery."""

    SUPERSEDED = "superseded"  # The message was leased again: by another receive, or by the worker ahead of one.
    RELEASED = "released"  # Nobody holds the message: given back, or unparked, or the delivery was lost with Redis.
    SETTLED = "settled"  # The message is not open: acked, dead, moved, deleted, purged, or older than the retention.
    EXPIRED = "expired"  # The lease has run out and nobody has leased the message since; the caller did not want that.
    CLAIMED = "claimed"  # A redrive task holds the message, or has held it last.
    DYING = "dying"  # The message is on its way to the dead-letter queue.
    PARKED = "parked"  # The message is the first of a parked group.
    USED = "used"  # The handle is for one use, and something has changed the lease since.
    TAG_GONE = "tag_gone"  # The tag of the handle was deleted.
    PARTITION_GONE = "partition_gone"  # The queue has no such partition.
    QUEUE_REMADE = "queue_remade"  # The handle is of a queue that was deleted, whether or not one has that name again.


# What an answer calls each.
STATUS_OF: Final[Mapping[StaleReason, EntryStatus]] = MappingProxyType(
    {reason: EntryStatus.LAPSED if reason is StaleReason.EXPIRED else EntryStatus.STALE for reason in StaleReason}
)
# The message is open no more under the tag of the handle, as far as anybody can say.
GONE: Final = frozenset(
    (StaleReason.SETTLED, StaleReason.TAG_GONE, StaleReason.PARTITION_GONE, StaleReason.QUEUE_REMADE)
)
# What a script does not say, for it is not called then.
UNCALLED: Final = GONE - {StaleReason.SETTLED}


class Reason(StrEnum):
    """Why a message died or was skipped; why an entry is there that says nothing of messages."""

    EXHAUSTED = "exhausted"  # Received as often as the redrive policy allows.
    KILLED = "killed"  # A consumer said so.
    UNDECODABLE = "undecodable"  # The record claims one of our schemas and can't be read.
    TORN_BATCH = "torn_batch"  # Part of an atomic batch that never became whole.
    DUPLICATE = "duplicate"  # Repeats a message that was sent to a FIFO queue at most five minutes before.
    DUPLICATE_MOVE = "duplicate_move"  # A second copy of the same move.
    COMMITTED = "committed"  # Of an origin: it came here by the commit of a transaction, whose id is its original id.
    LATE_COMMIT = "late_commit"  # A copy of a commit that came so late that another may have taken its place.
    NOT_LOADED = "not_loaded"  # Of a far message that was deleted or cancelled: the window had not come to it.
    REBUILT = "rebuilt"  # Of a floor at 0: the unit begins a new life; later entries with a lower seq do not count.


class TaskStatus(StrEnum):
    """Life of a redrive task."""

    RUNNING = "running"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"


class PolicyFault(StrEnum):
    """Why a redrive policy moves nothing: what would die is received on until it is set again."""

    MISSING = "missing"  # There is no queue of the name of its dead-letter queue.
    ANOTHER = "another"  # A queue of that name was created after the one that the policy means.
    FORBIDDEN = "forbidden"  # Neither who set it nor the owner of the queue may send to the dead-letter queue.


class TransactionStep(StrEnum):
    """What a record in the topic of half messages says."""

    HALF = "half"  # Messages are stored, nobody sees them.
    CHECK = "check"  # The producers may be asked once more.
    ATTEMPT = "attempt"  # Somebody begins to write committed messages to their queue, after another may have tried.
    COMMIT = "commit"  # It is decided: they are sent. Of several decisions the first in the log counts.
    ROLLBACK = "rollback"  # It is decided: they are dropped.
    DONE = "done"  # What was decided is carried out; nothing more happens.


class TransactionStatus(StrEnum):
    """Where a transaction stands."""

    OPEN = "open"  # Prepared, not decided.
    COMMITTED = "committed"  # Its messages are sent, or will be.
    ROLLED_BACK = "rolled_back"  # Its messages are never sent.


class DecisionReason(StrEnum):
    """Why a transaction was decided as it was."""

    ANSWERED = "answered"  # A producer said so, by itself or when it was asked.
    CHECKS_EXHAUSTED = "checks_exhausted"  # Nobody knew, as often as producers are asked.
    TOO_OLD = "too_old"  # It was open for longer than a transaction may be.
    QUEUE_GONE = "queue_gone"  # Its queue was deleted.


class Verb(StrEnum):
    """What a principal asks; the authoriser sees these names."""

    CREATE_QUEUE = "create_queue"
    LIST_QUEUES = "list_queues"
    GET_QUEUE = "get_queue"
    SET_QUEUE = "set_queue"
    DELETE_QUEUE = "delete_queue"
    PURGE = "purge"
    PAUSE = "pause"
    RESUME = "resume"
    SEEK = "seek"
    COPY_QUEUE = "copy_queue"
    GET_REDRIVE_POLICY = "get_redrive_policy"
    SET_REDRIVE_POLICY = "set_redrive_policy"
    CREATE_TAG = "create_tag"
    LIST_TAGS = "list_tags"
    DELETE_TAG = "delete_tag"
    SEND = "send"
    RECEIVE = "receive"
    ACK = "ack"
    EXTEND = "extend"
    RELEASE = "release"
    KILL = "kill"
    PEEK = "peek"
    QUERY = "query"
    UNMASK = "unmask"
    DELETE_MESSAGE = "delete_message"
    CANCEL = "cancel"
    RESCHEDULE = "reschedule"
    UNPARK = "unpark"
    REDRIVE = "redrive"
    LIST_GRANTS = "list_grants"
    GRANT = "grant"
    ADD_ALERT = "add_alert"
    DELETE_ALERT = "delete_alert"
    LIST_ALERTS = "list_alerts"
    SET_DAILY_STATISTICS = "set_daily_statistics"
    GET_STATISTICS = "get_statistics"
    QUERY_METRIC = "query_metric"
    MANAGE_KEYS = "manage_keys"
    MANAGE_USERS = "manage_users"
    SET_PRODUCER_GROUP = "set_producer_group"
    LIST_AUDIT = "list_audit"


DEATHS: Final = (Reason.EXHAUSTED, Reason.KILLED)  # Why a message is a dead letter.
# Verbs that change what is managed: the audit has each that was asked for.
CHANGES: Final = frozenset((
    Verb.CREATE_QUEUE, Verb.SET_QUEUE, Verb.DELETE_QUEUE, Verb.PURGE, Verb.PAUSE, Verb.RESUME, Verb.COPY_QUEUE,
    Verb.SET_REDRIVE_POLICY, Verb.CREATE_TAG, Verb.DELETE_TAG, Verb.SEEK, Verb.REDRIVE, Verb.GRANT, Verb.ADD_ALERT,
    Verb.DELETE_ALERT, Verb.SET_DAILY_STATISTICS, Verb.MANAGE_KEYS, Verb.MANAGE_USERS, Verb.SET_PRODUCER_GROUP,
))  # fmt: skip


# What came of a request that is no error; else it is the word of the error.
OK: Final = "ok"
CLIENT_GONE: Final = "gone"  # did not wait for the answer


class Outcome(StrEnum):
    """What came of a request, as the audit tells."""

    DONE = "done"
    REFUSED = "refused"  # For who asked, or for from where.
    FAILED = "failed"  # For another reason.


class Level(StrEnum):
    """What a principal that does not own a queue may do with it; `engine/rules/grants.py` has the
    verbs.
    """

    NONE = "none"  # Nothing.
    SEND = "send"  # Send.
    RECEIVE = "receive"  # Receive, and nothing with what was received.
    SEND_RECEIVE = "send_receive"  # Both.
    HANDLE = "handle"  # Receive, ack, extend, release, kill.
    SEND_HANDLE = "send_handle"  # Send, and handle.
    GET_INFO = "get_info"  # Look at the queue and its counts.
    USE = "use"  # Send, handle, and look at the queue.
    ADMIN = "admin"  # All that the owner may, except giving rights to others.
    PEEK = "peek"  # Look at messages without receiving them.
    DELETE_PEEK = "delete_peek"  # Delete messages by their ids.
    FULL_CONTROL = "full_control"  # All that the owner may.
    UNMASK = "unmask"  # Look at messages, also at what the mask of the queue hides.


class Role(StrEnum):
    """What an access key may do on every queue of its account, beside what its principal may;
    `engine/rules/grants.py` has the verbs.
    """

    MEMBER = "member"  # Nothing more: its principal's own queues, and those with which it was given a right.
    READER = "reader"  # Look at every queue of the account, and at no message; change nothing.
    OPERATOR = "operator"  # All that level `admin` allows, but for `unmask`, and metrics, on each queue of the account.
    ADMIN = "admin"  # Everything; of an account, all with its queues, keys and users.


class Operation(StrEnum):
    """What a request to a queue did, as the meters count it. A batch of one message is single."""

    SINGLE_SEND = "single_send"
    BATCH_SEND = "batch_send"
    SHORT_RECEIVE = "short_receive"  # It did not wait.
    LONG_RECEIVE = "long_receive"  # It might wait for messages, whether or not it had to.
    CHANGE = "change"  # Extend and release.
    DELETE = "delete"  # Ack.


class Subject(StrEnum):
    """What an alert policy watches (EMQ: ALERT_TYPE), and what a metric is about."""

    SEND_REQUEST = "send_request"
    RECEIVE_REQUEST = "receive_request"
    CHANGE_REQUEST = "change_request"
    DELETE_REQUEST = "delete_request"
    SINGLE_SEND_REQUEST = "single_send_request"
    BATCH_SEND_REQUEST = "batch_send_request"
    SHORT_RECEIVE_REQUEST = "short_receive_request"
    LONG_RECEIVE_REQUEST = "long_receive_request"
    QUEUE_MESSAGE_NUMBER = "queue_message_number"


# The operations that add up to a subject; the number of messages is no request.
OPERATIONS: Final[Mapping[Subject, frozenset[Operation]]] = MappingProxyType({
    Subject.SEND_REQUEST: frozenset((Operation.SINGLE_SEND, Operation.BATCH_SEND)),
    Subject.RECEIVE_REQUEST: frozenset((Operation.SHORT_RECEIVE, Operation.LONG_RECEIVE)),
    Subject.CHANGE_REQUEST: frozenset((Operation.CHANGE,)),
    Subject.DELETE_REQUEST: frozenset((Operation.DELETE,)),
    Subject.SINGLE_SEND_REQUEST: frozenset((Operation.SINGLE_SEND,)),
    Subject.BATCH_SEND_REQUEST: frozenset((Operation.BATCH_SEND,)),
    Subject.SHORT_RECEIVE_REQUEST: frozenset((Operation.SHORT_RECEIVE,)),
    Subject.LONG_RECEIVE_REQUEST: frozenset((Operation.LONG_RECEIVE,)),
    Subject.QUEUE_MESSAGE_NUMBER: frozenset(),
})  # fmt: skip


class Measurement(StrEnum):
    """What of a subject an alert policy compares with its threshold."""

    LATENCY = "latency"  # Mean, in ms.
    LATENCY_P999 = "latency_p999"  # 99.9 % of the requests took no longer, in ms.
    COUNT = "count"  # Requests in a minute, or messages that are not settled.


class AlertChange(StrEnum):
    """What a look at a policy has changed."""

    FIRED = "fired"
    GOES_ON = "goes_on"  # It has fired for so long that its owner is told again.
    CLEARED = "cleared"


class Telling(StrEnum):
    """Whether somebody was told of a change."""

    SILENT = "silent"  # Not to be told: the last message about the policy is too young.
    PENDING = "pending"  # To be told, or being told.
    TOLD = "told"  # A webhook or a mail server has taken it.
    FAILED = "failed"  # Nothing has taken it, after all tries.
    NOBODY = "nobody"  # The owner has neither a webhook nor an address that mail could go to.
