"""Error codes of EMQ, and one table from engine errors to codes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from engine import errors


class ErrorCode(IntEnum):
    """What GalaxyEmqServiceException.errorCode says, by the names of the newest IDL. Older clients
    name 9, 11 and 34 otherwise and do not know 35.
    """

    INVALID_ACTION = 1  # the method is not for this queue, or not now
    INVALID_ATTRIBUTE = 2  # a value is out of its range, or names what is not there
    QUEUE_DELETED_RECENTLY = 3  # a queue of that name was deleted a moment ago
    QUEUE_EXIST = 4  # there is a queue of that name
    QUEUE_NAME_MISSING = 5  # the request names no queue
    QUEUE_NOT_EXIST = 6  # there is no queue of that name
    QUEUE_INUSE = 7  # another change of the queue is under way
    QUEUE_URI_CONFLICT = 8  # of the original service alone
    INVALID_INDEX_ID = 9  # an invalid handle to clients before 2017
    MESSAGE_BODY_MISSING = 10  # a message has no body
    INVALID_RECEIPT_HANDLE = 11  # no handle of this queue, or of a message that is there
    INDEX_NOT_UNIQUE = 12  # two entries of a batch have the same id or handle
    PERMISSION_DENIED = 13  # who asks is unknown, or may not do that
    INTERNAL_ERROR = 14  # what was done is unknown
    PARTITION_NOT_EXIST = 15  # of the original service alone
    PARTITION_NOT_RUNNING = 16  # of the original service alone
    QUEUE_NOT_CACHED = 17  # the state of the queue is being rebuilt
    PARTITION_NOT_SERVING = 18  # too many requests are waiting
    TTRANSPORT_ERROR = 19  # clients make it of a broken connection
    QUOTA_EXCEEDED = 20  # as many as there may be
    QUOTA_NOT_EXIST = 21  # of the original service alone
    QUOTA_LOCK_FAILED = 22  # of the original service alone
    UNKNOWN = 30  # of the original service alone
    REQUEST_LENGTH_EXCEEDED = 34  # a message or a request is too long; BAD_REQUEST to older clients
    BAD_REQUEST = 35  # the request can't be understood


# Clients repeat a call that has failed so by themselves: at most three times, after a second or
# more each. Of 19 they do so for deletes and changes only.
REPEATED: Final = frozenset(
    {
        ErrorCode.QUEUE_INUSE,
        ErrorCode.PARTITION_NOT_EXIST,
        ErrorCode.PARTITION_NOT_RUNNING,
        ErrorCode.QUEUE_NOT_CACHED,
        ErrorCode.PARTITION_NOT_SERVING,
        ErrorCode.TTRANSPORT_ERROR,
    }
)

# Engine error -> code. A class without a row gets that of its nearest base; the unit test wants a
# row for each. EMQ has no code for tags: one that is there or not is a bad value.
ERRORS: Final[Mapping[type[errors.EngineError], ErrorCode]] = {
    errors.EngineError: ErrorCode.INTERNAL_ERROR,
    errors.NotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.QueueNotFound: ErrorCode.QUEUE_NOT_EXIST,
    errors.TagNotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.MessageNotFound: ErrorCode.INVALID_RECEIPT_HANDLE,  # a message id stands where a handle does
    errors.TaskNotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.KeyNotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.TransactionNotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.ProducerGroupNotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.AlertNotFound: ErrorCode.INVALID_ATTRIBUTE,
    errors.Conflict: ErrorCode.INVALID_ACTION,
    errors.QueueExists: ErrorCode.QUEUE_EXIST,
    errors.TagExists: ErrorCode.INVALID_ATTRIBUTE,
    errors.QueueInUse: ErrorCode.QUEUE_INUSE,  # the one conflict that ends by itself, and a change may be made twice
    errors.TooManyDelayed: ErrorCode.QUOTA_EXCEEDED,
    errors.MessageLeased: ErrorCode.INVALID_ACTION,
    errors.MessageDue: ErrorCode.INVALID_ACTION,
    errors.TaskEnded: ErrorCode.INVALID_ACTION,
    errors.TransactionDecided: ErrorCode.INVALID_ACTION,
    errors.TransactionGone: ErrorCode.INVALID_ACTION,
    errors.TooManyTransactions: ErrorCode.QUOTA_EXCEEDED,
    errors.TooManyInFlight: ErrorCode.QUOTA_EXCEEDED,
    errors.Refused: ErrorCode.BAD_REQUEST,
    errors.InvalidValue: ErrorCode.INVALID_ATTRIBUTE,
    errors.MessageTooLarge: ErrorCode.REQUEST_LENGTH_EXCEEDED,
    errors.DelayTooLong: ErrorCode.INVALID_ATTRIBUTE,
    errors.InvalidHandle: ErrorCode.INVALID_RECEIPT_HANDLE,
    errors.NotAllowedOnQueue: ErrorCode.INVALID_ACTION,
    errors.Denied: ErrorCode.PERMISSION_DENIED,
    errors.NotAuthenticated: ErrorCode.PERMISSION_DENIED,
    errors.NotAuthorised: ErrorCode.PERMISSION_DENIED,
    errors.Unavailable: ErrorCode.INTERNAL_ERROR,
    # A send may be in Kafka, a call may have run in Redis: repeated by itself, it would be done
    # twice.
    errors.LogUnavailable: ErrorCode.INTERNAL_ERROR,
    errors.StoreUnavailable: ErrorCode.INTERNAL_ERROR,
    # No send that was stored ends so, and what else does may be done twice.
    errors.Rebuilding: ErrorCode.QUEUE_NOT_CACHED,
    errors.QueueRenewed: ErrorCode.QUEUE_NOT_CACHED,
    # A send that ends in one of these two was not stored.
    errors.NotStored: ErrorCode.PARTITION_NOT_SERVING,
    errors.Overloaded: ErrorCode.PARTITION_NOT_SERVING,
    errors.QuotaExceeded: ErrorCode.QUOTA_EXCEEDED,
    errors.TooManyAttempts: ErrorCode.QUOTA_EXCEEDED,
}


def code_of(error: type[errors.EngineError]) -> ErrorCode:
    """The code of an engine error: that of the most specific class that has a row."""
    return next(ERRORS[base] for base in error.__mro__ if base in ERRORS)
