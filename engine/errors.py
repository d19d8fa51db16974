"""Errors of the engine. A dialect maps each class to its own code; a test walks the tree and fails
on an unmapped one.

EngineError
    NotFound: QueueNotFound, TagNotFound, MessageNotFound, TaskNotFound, KeyNotFound,
              TransactionNotFound, ProducerGroupNotFound, AlertNotFound
    Conflict: QueueExists, TagExists, QueueInUse, TooManyDelayed, TooManyInFlight, MessageLeased,
              MessageDue, TaskEnded, TransactionDecided, TransactionGone, TooManyTransactions
    Refused:  InvalidValue (MessageTooLarge, DelayTooLong), InvalidHandle, NotAllowedOnQueue
    Denied:   NotAuthenticated, NotAuthorised
    Unavailable: LogUnavailable, NotStored, StoreUnavailable, Rebuilding (QueueRenewed), Overloaded,
                 QuotaExceeded, TooManyAttempts

Unavailable and its children may be repeated by the client after `retry_after_s`; no other error
may.
"""

from __future__ import annotations

from typing import Any, ClassVar


def word_of(error: BaseException) -> str:
    """Returns the word for what went wrong, as the engine or the dialect has it."""
    code = getattr(error, "code", None) or getattr(getattr(error, "shape", None), "code", None)
    return str(getattr(code, "name", code) or type(error).__name__)


class NotOurs(Exception):
    """What Kafka has was written with another secret. At the start only, so no dialect knows it."""


class EngineError(Exception):
    """Something went wrong in the engine."""

    code: ClassVar[str] = "internal"

    def __init__(self, detail: str = "", *, field: str | None = None, limit: Any = None, given: Any = None) -> None:
        super().__init__(detail or (type(self).__doc__ or "").strip())
        self.field = field
        self.limit = limit
        self.given = given

    @property
    def detail(self) -> str:
        return str(self.args[0])

    def place(self, path: str) -> None:
        """It is about what stands at a path of a document."""
        self.args = (f"{path}: {self.detail}",)
        self.field = f"{path}.{self.field}" if self.field else path


class NotFound(EngineError):
    """There is no such thing."""


class QueueNotFound(NotFound):
    """There is no queue of that name."""

    code = "queue_not_found"


class TagNotFound(NotFound):
    """The queue has no tag of that name."""

    code = "tag_not_found"


class MessageNotFound(NotFound):
    """The queue has no message of that id, or no longer."""

    code = "message_not_found"


class TaskNotFound(NotFound):
    """There is no task of that id."""

    code = "task_not_found"


class KeyNotFound(NotFound):
    """There is no access key of that id."""

    code = "key_not_found"


class TransactionNotFound(NotFound):
    """There is no transaction of that id, or it ended long ago."""

    code = "transaction_not_found"


class ProducerGroupNotFound(NotFound):
    """No webhook is registered for that producer group."""

    code = "producer_group_not_found"


class AlertNotFound(NotFound):
    """The queue has no such alert policy."""

    code = "alert_not_found"


class Conflict(EngineError):
    """The state of things forbids it."""


class QueueExists(Conflict):
    """A queue of that name exists and has other settings."""

    code = "queue_exists"


class TagExists(Conflict):
    """A tag of that name exists and has other settings."""

    code = "tag_exists"


class QueueInUse(Conflict):
    """Another change of the same queue is under way."""

    code = "queue_in_use"


class TooManyDelayed(Conflict):
    """As many messages of a partition are delayed as may be: some have to become due first."""

    code = "too_many_delayed"


class MessageLeased(Conflict):
    """The message is leased to a consumer; it can be deleted with its handle only."""

    code = "message_leased"


class MessageDue(Conflict):
    """The message is due, or was delivered: it can be neither cancelled nor rescheduled."""

    code = "message_due"


class TaskEnded(Conflict):
    """The task has ended already."""

    code = "task_ended"


class TransactionDecided(Conflict):
    """The transaction was decided otherwise before."""

    code = "transaction_decided"


class TransactionGone(Conflict):
    """The queue of the transaction was deleted, so its messages can't be sent."""

    code = "transaction_gone"


class TooManyTransactions(Conflict):
    """As many transactions are open as may be: some have to be decided first."""

    code = "too_many_transactions"


class TooManyInFlight(Conflict):
    """As many messages are in flight as may be: one has to be settled or released first."""

    code = "too_many_in_flight"

    def __init__(self, detail: str = "", *, waited: bool = False, fifo: bool = False, **about: Any) -> None:
        """A dialect may tell apart whether the caller has `waited` for messages, and the kind of
        queue.
        """
        super().__init__(detail, **about)
        self.waited = waited
        self.fifo = fifo


class Refused(EngineError):
    """The request can't be carried out as given."""


class InvalidValue(Refused):
    """A value is out of its range or of the wrong form."""

    code = "invalid_value"


class MessageTooLarge(InvalidValue):
    """Body and attributes are larger than the queue allows."""

    code = "message_too_large"


class DelayTooLong(InvalidValue):
    """The delay is longer than the queue allows."""

    def __init__(self, detail: str = "", *, queue: str = "", most_ms: int = 0, delay_ms: int = 0, **about: Any) -> None:
        """A dialect may say it in its own units. `delay_ms` is what was asked for, as a delay or as
        a time.
        """
        super().__init__(detail, **about)
        self.queue = queue
        self.most_ms = most_ms
        self.delay_ms = delay_ms


class InvalidHandle(Refused):
    """Not a receipt handle of this queue."""

    code = "invalid_handle"


class NotAllowedOnQueue(Refused):
    """The verb is not allowed on this kind of queue."""

    code = "not_allowed_on_queue"


class Denied(EngineError):
    """The caller may not do that."""


class NotAuthenticated(Denied):
    """The credentials are missing or wrong."""

    code = "not_authenticated"


class NotAuthorised(Denied):
    """The principal has no right to do that to this queue."""

    code = "not_authorised"


class Unavailable(EngineError):
    """Not now; try again."""

    code = "unavailable"

    def __init__(self, detail: str = "", *, retry_after_s: int = 1, **about: Any) -> None:
        super().__init__(detail, **about)
        self.retry_after_s = retry_after_s


class LogUnavailable(Unavailable):
    """Kafka did not answer in time; the outcome of a send is unknown."""

    # For who starts. `soon`: Kafka answered, and is about to be ready. `away`: it did not answer.
    # Neither: it refused, and will again.

    code = "log_unavailable"

    def __init__(self, detail: str = "", *, soon: bool = False, away: bool = True, **about: Any) -> None:
        super().__init__(detail, **about)
        self.soon = soon
        self.away = away


class NotStored(Unavailable):
    """The send waited for Kafka as long as it may; nothing was stored, so it may be sent again."""

    code = "not_stored"

    @classmethod
    def of(cls, queue: str) -> NotStored:
        """What a send to a queue is told whose time ended before anything of it was given to
        Kafka.
        """
        return cls(
            f"the send to queue {queue!r} waited until its time was over, and nothing of it was stored: "
            "it may be sent again"
        )


class StoreUnavailable(Unavailable):
    """Redis can't be reached."""

    code = "store_unavailable"


class Rebuilding(Unavailable):
    """The state of the queue is being rebuilt from Kafka."""

    code = "rebuilding"


class QueueRenewed(Rebuilding):
    """The queue began a new life meanwhile, by a renewal or because it was created again."""


class QuotaExceeded(Unavailable):
    """More requests, bytes, queues or waiting receives than the quota allows."""

    code = "quota_exceeded"


class Overloaded(Unavailable):
    """Too many requests are waiting."""

    code = "overloaded"


class TooManyAttempts(Unavailable):
    """Too many wrong secrets came from there, or for that key."""

    code = "too_many_attempts"
