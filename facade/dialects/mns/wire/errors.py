"""Error codes of MNS with their statuses, and one table from engine errors to codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine import errors
from facade.dialect import Refusal


class Code(NamedTuple):
    """A code and the status that it is answered with."""

    word: str
    status: int


INVALID_ARGUMENT: Final = Code("InvalidArgument", 400)
INVALID_AUTHORIZATION: Final = Code("InvalidAuthorizationHeader", 400)
MISSING_AUTHORIZATION: Final = Code("MissingAuthorizationHeader", 400)
INVALID_DATE: Final = Code("InvalidDateHeader", 400)
MISSING_DATE: Final = Code("MissingDateHeader", 400)
INVALID_DIGEST: Final = Code("InvalidDegist", 400)  # spelled so by the service
INVALID_URL: Final = Code("InvalidRequestURL", 400)
INVALID_QUERY: Final = Code("InvalidQueryString", 400)
MALFORMED_XML: Final = Code("MalformedXML", 400)
MISSING_HANDLE: Final = Code("MissingReceiptHandle", 400)
MISSING_VISIBILITY: Final = Code("MissingVisibilityTimeout", 400)
MISSING_VERSION: Final = Code("MissingVersionHeader", 400)
INVALID_VERSION: Final = Code("InvalidVersionHeader", 400)
HANDLE_ERROR: Final = Code("ReceiptHandleError", 400)
INVALID_NAME: Final = Code("InvalidQueueName", 400)
NAME_LENGTH: Final = Code("QueueNameLengthError", 400)
ACCESS_DENIED: Final = Code("AccessDenied", 403)
INVALID_KEY: Final = Code("InvalidAccessKeyId", 403)
SIGNATURE_MISMATCH: Final = Code("SignatureDoesNotMatch", 403)
NO_QUEUE: Final = Code("QueueNotExist", 404)
NO_MESSAGE: Final = Code("MessageNotExist", 404)
TIME_EXPIRED: Final = Code("TimeExpired", 408)
QUEUE_EXISTS: Final = Code("QueueAlreadyExist", 409)
TOO_MANY: Final = Code("TooManyRequests", 429)
INTERNAL: Final = Code("InternalError", 500)
# The service has one word for all that is its own fault. What may be asked again has another
# status, which SDKs repeat too.
NOT_NOW: Final = Code("InternalError", 503)

# Engine error -> code. A class without a row gets that of its nearest base; the unit test wants a
# row for each.
ERRORS: Final[Mapping[type[errors.EngineError], Code]] = {
    errors.EngineError: INTERNAL,
    errors.NotFound: INVALID_ARGUMENT,
    errors.QueueNotFound: NO_QUEUE,
    errors.TagNotFound: NO_QUEUE,
    errors.MessageNotFound: NO_MESSAGE,
    errors.TaskNotFound: INVALID_ARGUMENT,
    errors.TransactionNotFound: INVALID_ARGUMENT,
    errors.ProducerGroupNotFound: INVALID_ARGUMENT,
    errors.KeyNotFound: INVALID_ARGUMENT,
    errors.AlertNotFound: INVALID_ARGUMENT,
    errors.Conflict: INVALID_ARGUMENT,
    errors.QueueExists: QUEUE_EXISTS,
    errors.TagExists: QUEUE_EXISTS,
    errors.QueueInUse: TOO_MANY,  # ends by itself, as the next two do
    errors.TooManyDelayed: TOO_MANY,
    errors.TooManyInFlight: TOO_MANY,
    errors.MessageLeased: NO_MESSAGE,
    errors.MessageDue: NO_MESSAGE,
    errors.TaskEnded: INVALID_ARGUMENT,
    errors.TransactionDecided: INVALID_ARGUMENT,
    errors.TransactionGone: INVALID_ARGUMENT,
    errors.TooManyTransactions: TOO_MANY,
    errors.Refused: INVALID_ARGUMENT,
    errors.InvalidValue: INVALID_ARGUMENT,
    errors.MessageTooLarge: INVALID_ARGUMENT,
    errors.DelayTooLong: INVALID_ARGUMENT,
    errors.InvalidHandle: HANDLE_ERROR,
    errors.NotAllowedOnQueue: INVALID_ARGUMENT,
    errors.Denied: ACCESS_DENIED,
    errors.NotAuthenticated: INVALID_KEY,
    errors.NotAuthorised: ACCESS_DENIED,
    errors.Unavailable: NOT_NOW,
    errors.LogUnavailable: NOT_NOW,
    errors.NotStored: NOT_NOW,
    errors.StoreUnavailable: NOT_NOW,
    errors.Rebuilding: NOT_NOW,
    errors.QueueRenewed: NOT_NOW,
    errors.Overloaded: TOO_MANY,
    errors.QuotaExceeded: TOO_MANY,
    errors.TooManyAttempts: TOO_MANY,
}


class MnsError(Refusal):
    """A request, or an entry of a batch, that is refused with `code`."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def code_of(error: type[errors.EngineError]) -> Code:
    """The code of an engine error: that of the most specific class that has a row."""
    return next(ERRORS[base] for base in error.__mro__ if base in ERRORS)


def mns_error(error: errors.EngineError) -> MnsError:
    """An engine error in this dialect. Of an abstract one nothing is told."""
    code = code_of(type(error))
    return MnsError(code, "something went wrong in the service" if code is INTERNAL else error.detail)
