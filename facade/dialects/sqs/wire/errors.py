"""What goes wrong, as SQS says it: shapes with their legacy codes and statuses, and one table from
engine errors to shapes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine import errors
from facade.dialect import Refusal
from facade.dialects.sqs.wire.words import INTERNAL, range_text, text_of, value_text
from schemas.vocabulary import EntryStatus

_SQS = "com.amazonaws.sqs#"
_CORAL = "com.amazon.coral.service#"
_OLD = "AWS.SimpleQueueService."


class Shape(NamedTuple):
    """An error of the service model: `type` is its qualified name, `code` the word of the older
    query protocol.
    """

    type: str
    code: str
    status: int = 400

    @property
    def sender_fault(self) -> bool:
        return self.status < 500


INTERNAL_FAILURE: Final = Shape(_CORAL + "InternalFailure", "InternalFailure", 500)
SERVICE_UNAVAILABLE: Final = Shape(_CORAL + "ServiceUnavailable", "ServiceUnavailable", 503)
UNKNOWN_OPERATION: Final = Shape(_CORAL + "UnknownOperationException", "UnknownOperationException", 404)
SERIALIZATION: Final = Shape(_CORAL + "SerializationException", "SerializationException")
INVALID_ACTION: Final = Shape(_CORAL + "InvalidAction", "InvalidAction")
MISSING_ACTION: Final = Shape(_CORAL + "MissingAction", "MissingAction")
MALFORMED_QUERY: Final = Shape(_CORAL + "MalformedQueryString", "MalformedQueryString", 404)
MALFORMED_INPUT: Final = Shape(_CORAL + "MalformedInput", "MalformedInput")
ACCESS_DENIED: Final = Shape(_CORAL + "AccessDeniedException", "AccessDenied", 403)
INVALID_CLIENT_TOKEN: Final = Shape(_CORAL + "InvalidClientTokenId", "InvalidClientTokenId", 403)
MISSING_TOKEN: Final = Shape(_CORAL + "MissingAuthenticationToken", "MissingAuthenticationToken", 403)
INCOMPLETE_SIGNATURE: Final = Shape(_CORAL + "IncompleteSignature", "IncompleteSignature")
SIGNATURE_DOES_NOT_MATCH: Final = Shape(_CORAL + "SignatureDoesNotMatch", "SignatureDoesNotMatch", 403)
REQUEST_EXPIRED: Final = Shape(_CORAL + "RequestExpired", "RequestExpired")

QUEUE_DOES_NOT_EXIST: Final = Shape(_SQS + "QueueDoesNotExist", _OLD + "NonExistentQueue")
QUEUE_NAME_EXISTS: Final = Shape(_SQS + "QueueNameExists", "QueueAlreadyExists")
RESOURCE_NOT_FOUND: Final = Shape(_SQS + "ResourceNotFoundException", "ResourceNotFoundException", 404)
INVALID_ATTRIBUTE_NAME: Final = Shape(_SQS + "InvalidAttributeName", "InvalidAttributeName")
INVALID_ATTRIBUTE_VALUE: Final = Shape(_SQS + "InvalidAttributeValue", "InvalidAttributeValue")
INVALID_CONTENTS: Final = Shape(_SQS + "InvalidMessageContents", "InvalidMessageContents")
INVALID_HANDLE: Final = Shape(_SQS + "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 404)
INVALID_ADDRESS: Final = Shape(_SQS + "InvalidAddress", "InvalidAddress", 404)
INVALID_PARAMETER: Final = Shape(_SQS + "InvalidParameterValueException", "InvalidParameterValue")
MISSING_PARAMETER: Final = Shape(_SQS + "MissingRequiredParameterException", "MissingParameter")
OVER_LIMIT: Final = Shape(_SQS + "OverLimit", "OverLimit", 403)
QUEUE_DELETED_RECENTLY: Final = Shape(_SQS + "QueueDeletedRecently", _OLD + "QueueDeletedRecently")
PURGE_IN_PROGRESS: Final = Shape(_SQS + "PurgeQueueInProgress", _OLD + "PurgeQueueInProgress", 403)
REQUEST_THROTTLED: Final = Shape(_SQS + "RequestThrottled", "RequestThrottled", 403)
MESSAGE_NOT_INFLIGHT: Final = Shape(_SQS + "MessageNotInflight", _OLD + "MessageNotInflight")
UNSUPPORTED_OPERATION: Final = Shape(_SQS + "UnsupportedOperation", _OLD + "UnsupportedOperation")
TOO_MANY_ENTRIES: Final = Shape(_SQS + "TooManyEntriesInBatchRequest", _OLD + "TooManyEntriesInBatchRequest")
EMPTY_BATCH: Final = Shape(_SQS + "EmptyBatchRequest", _OLD + "EmptyBatchRequest")
BATCH_TOO_LONG: Final = Shape(_SQS + "BatchRequestTooLong", _OLD + "BatchRequestTooLong")
INVALID_ENTRY_ID: Final = Shape(_SQS + "InvalidBatchEntryId", _OLD + "InvalidBatchEntryId")
IDS_NOT_DISTINCT: Final = Shape(_SQS + "BatchEntryIdsNotDistinct", _OLD + "BatchEntryIdsNotDistinct")

# Engine error -> shape. A class without a row gets that of its nearest base; the unit test wants a
# row for each.
ERRORS: Final[dict[type[errors.EngineError], Shape]] = {
    errors.EngineError: INTERNAL_FAILURE,
    errors.NotFound: RESOURCE_NOT_FOUND,
    errors.QueueNotFound: QUEUE_DOES_NOT_EXIST,
    errors.TagNotFound: QUEUE_DOES_NOT_EXIST,
    errors.MessageNotFound: RESOURCE_NOT_FOUND,
    errors.TaskNotFound: RESOURCE_NOT_FOUND,
    errors.KeyNotFound: RESOURCE_NOT_FOUND,
    errors.TransactionNotFound: RESOURCE_NOT_FOUND,
    errors.ProducerGroupNotFound: RESOURCE_NOT_FOUND,
    errors.AlertNotFound: RESOURCE_NOT_FOUND,
    errors.Conflict: UNSUPPORTED_OPERATION,
    errors.QueueExists: QUEUE_NAME_EXISTS,
    errors.TagExists: QUEUE_NAME_EXISTS,
    errors.QueueInUse: REQUEST_THROTTLED,  # the one conflict that ends by itself: SDKs repeat what is throttled
    errors.TooManyDelayed: OVER_LIMIT,
    errors.MessageLeased: INVALID_PARAMETER,
    errors.MessageDue: INVALID_PARAMETER,
    errors.TaskEnded: INVALID_PARAMETER,
    errors.TransactionDecided: INVALID_PARAMETER,
    errors.TransactionGone: INVALID_PARAMETER,
    errors.TooManyTransactions: OVER_LIMIT,
    errors.TooManyInFlight: OVER_LIMIT,
    errors.Refused: INVALID_PARAMETER,
    errors.InvalidValue: INVALID_PARAMETER,
    errors.MessageTooLarge: INVALID_PARAMETER,
    errors.DelayTooLong: INVALID_PARAMETER,
    errors.InvalidHandle: INVALID_HANDLE,
    errors.NotAllowedOnQueue: UNSUPPORTED_OPERATION,
    errors.Denied: ACCESS_DENIED,
    errors.NotAuthenticated: INVALID_CLIENT_TOKEN,
    errors.NotAuthorised: ACCESS_DENIED,
    errors.Unavailable: SERVICE_UNAVAILABLE,
    errors.LogUnavailable: SERVICE_UNAVAILABLE,
    errors.NotStored: SERVICE_UNAVAILABLE,
    errors.StoreUnavailable: SERVICE_UNAVAILABLE,
    errors.Rebuilding: SERVICE_UNAVAILABLE,
    errors.QueueRenewed: SERVICE_UNAVAILABLE,
    errors.Overloaded: REQUEST_THROTTLED,
    errors.QuotaExceeded: REQUEST_THROTTLED,
    errors.TooManyAttempts: REQUEST_THROTTLED,
}

# What became of a handle -> shape, None = success. A delete with a stale handle is silence, a
# visibility change is one only while the message is open. Only of FIFO queues a lapsed handle does
# not count.
DELETED: Final[dict[str, Shape | None]] = {
    EntryStatus.OK: None,
    EntryStatus.SUPERSEDED: None,
    EntryStatus.STALE: None,
    EntryStatus.LAPSED: INVALID_PARAMETER,
    EntryStatus.INVALID: INVALID_HANDLE,
}
CHANGED: Final[dict[str, Shape | None]] = {
    EntryStatus.OK: None,
    EntryStatus.SUPERSEDED: None,
    EntryStatus.STALE: INVALID_PARAMETER,
    EntryStatus.LAPSED: MESSAGE_NOT_INFLIGHT,
    EntryStatus.INVALID: INVALID_HANDLE,
}


class SqsError(Refusal):
    """A request, or an entry of a batch, that is refused with `shape`."""

    def __init__(self, shape: Shape, message: str) -> None:
        super().__init__(message)
        self.shape = shape
        self.message = message


def missing(parameter: str) -> SqsError:
    """The request lacks `parameter`."""
    return SqsError(MISSING_PARAMETER, f"The request must contain the parameter {parameter}.")


def invalid(parameter: str, given: object, reason: str) -> SqsError:
    """`given` is no value of `parameter`; None = it is not repeated."""
    return SqsError(INVALID_PARAMETER, value_text(parameter, given, reason))


def between(parameter: str, given: int, low: int, high: int) -> SqsError:
    """`given` is not within the range of `parameter`."""
    return invalid(parameter, given, range_text(low, high))


def shape_of(error: type[errors.EngineError]) -> Shape:
    """The shape of an engine error: that of the most specific class that has a row."""
    return next(ERRORS[base] for base in error.__mro__ if base in ERRORS)


def sqs_error(error: errors.EngineError, action: str = "") -> SqsError:
    """An engine error in this dialect. Of an abstract one nothing is told."""
    shape = shape_of(type(error))
    return SqsError(shape, INTERNAL if shape is INTERNAL_FAILURE else text_of(error, action))
