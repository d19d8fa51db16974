"""Codes of RocketMQ, and one table from engine errors to codes."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Final

from engine import errors
from engine.rules.limits import MAX_BATCH
from facade.dialect import Refusal
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code

# Engine error -> code. A class without a row gets that of its nearest base; the unit test wants a
# row for each. Clients send a message up to three times whatever the code is, except for 42900.
ERRORS: Final[Mapping[type[errors.EngineError], Code]] = {
    errors.EngineError: Code.INTERNAL_ERROR,
    errors.NotFound: Code.NOT_FOUND,
    errors.QueueNotFound: Code.TOPIC_NOT_FOUND,
    errors.TagNotFound: Code.CONSUMER_GROUP_NOT_FOUND,
    errors.MessageNotFound: Code.MESSAGE_NOT_FOUND,
    errors.TaskNotFound: Code.NOT_FOUND,
    errors.KeyNotFound: Code.NOT_FOUND,
    errors.AlertNotFound: Code.NOT_FOUND,
    errors.TransactionNotFound: Code.INVALID_TRANSACTION_ID,
    errors.ProducerGroupNotFound: Code.NOT_FOUND,
    errors.Conflict: Code.PRECONDITION_FAILED,
    errors.QueueExists: Code.PRECONDITION_FAILED,
    errors.TagExists: Code.ILLEGAL_FILTER_EXPRESSION,  # all that a group may have otherwise is its expression
    errors.QueueInUse: Code.TOO_MANY_REQUESTS,
    errors.TooManyDelayed: Code.TOO_MANY_REQUESTS,
    errors.MessageLeased: Code.PRECONDITION_FAILED,
    errors.MessageDue: Code.BAD_REQUEST,  # a recall that comes too late; clients know no closer code
    errors.TaskEnded: Code.PRECONDITION_FAILED,
    errors.MessageDue: Code.PRECONDITION_FAILED,
    errors.TransactionDecided: Code.INVALID_TRANSACTION_ID,
    errors.TransactionGone: Code.TOPIC_NOT_FOUND,
    errors.TooManyTransactions: Code.TOO_MANY_REQUESTS,
    errors.TooManyInFlight: Code.TOO_MANY_REQUESTS,
    errors.Refused: Code.BAD_REQUEST,
    errors.InvalidValue: Code.BAD_REQUEST,
    errors.MessageTooLarge: Code.MESSAGE_BODY_TOO_LARGE,
    errors.DelayTooLong: Code.ILLEGAL_DELIVERY_TIME,
    errors.InvalidHandle: Code.INVALID_RECEIPT_HANDLE,
    errors.NotAllowedOnQueue: Code.FORBIDDEN,
    errors.Denied: Code.FORBIDDEN,
    errors.NotAuthenticated: Code.UNAUTHORIZED,
    errors.NotAuthorised: Code.FORBIDDEN,
    errors.Unavailable: Code.INTERNAL_SERVER_ERROR,
    errors.LogUnavailable: Code.INTERNAL_SERVER_ERROR,  # whether a send is in Kafka is not known
    errors.NotStored: Code.TOO_MANY_REQUESTS,  # clients send again, and wait a little before
    errors.StoreUnavailable: Code.INTERNAL_SERVER_ERROR,
    errors.Rebuilding: Code.HA_NOT_AVAILABLE,  # no send ends so
    errors.QueueRenewed: Code.HA_NOT_AVAILABLE,
    errors.Overloaded: Code.TOO_MANY_REQUESTS,
    errors.QuotaExceeded: Code.TOO_MANY_REQUESTS,
    errors.TooManyAttempts: Code.TOO_MANY_REQUESTS,
}

INTERNAL: Final = "something went wrong in the service"


class RocketError(Refusal):
    """What RocketMQ refuses: the client gets `code`, and `text` for people."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def code_of(error: type[errors.EngineError]) -> Code:
    """The code of an engine error: that of the most specific class that has a row."""
    return next(ERRORS[base] for base in error.__mro__ if base in ERRORS)


def status_of(error: Exception) -> pb.Status:
    """What a client hears of an error; nothing of one that nobody has expected."""
    if isinstance(error, RocketError):
        return pb.Status(code=error.code, message=error.text)
    if isinstance(error, errors.EngineError):
        return pb.Status(code=code_of(type(error)), message=error.detail)
    return pb.Status(code=Code.INTERNAL_ERROR, message=INTERNAL)


def check_number(entries: Sized) -> None:
    """Raises RocketError for a request of more entries than any may have, before they are looked
    at: a body may have a million.
    """
    if len(entries) > MAX_BATCH:
        raise RocketError(Code.BAD_REQUEST, f"a request has {MAX_BATCH} entries at most, given {len(entries)}")


def ok() -> pb.Status:
    """That all went well."""
    return pb.Status(code=Code.OK, message="OK")
