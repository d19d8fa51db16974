"""What an engine error is called in SQS: AWS's own texts where clients and their tests match on
them, and never the engine's words.

The engine speaks of `delay_ms` and 2000, a client of SQS of DelaySeconds and 2. So no text of the
engine is passed on: a text is made of an error's class, and of its field, limit and value in SQS's
names and units.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from engine import errors

GIVEN_CHARACTERS: Final = 1024  # of what was given are repeated: a receipt handle or a redrive policy is whole

# The engine's field -> the parameter or attribute of SQS, and how many of the engine's units one of
# SQS's is.
PARAMETERS: Final[dict[str, tuple[str, int]]] = {
    "allowed_sources": ("RedriveAllowPolicy", 1),
    "attributes": ("MessageAttributes", 1),
    "body": ("MessageBody", 1),
    "content_dedup": ("ContentBasedDeduplication", 1),
    "dead_letter_queue": ("RedrivePolicy", 1),
    "dedup_id": ("MessageDeduplicationId", 1),
    "dedup_scope": ("DeduplicationScope", 1),
    "delay_ms": ("DelaySeconds", 1000),
    "destination": ("DestinationArn", 1),
    "fifo": ("FifoQueue", 1),
    "filter": ("FilterPolicy", 1),
    "filter.conditions": ("FilterPolicy", 1),
    "grants": ("Policy", 1),
    "group": ("MessageGroupId", 1),
    "handles": ("ReceiptHandle", 1),
    "id": ("TaskHandle", 1),
    "labels": ("Tags", 1),
    "lease_ms": ("VisibilityTimeout", 1000),
    "limit": ("MaxResults", 1),
    "max": ("MaxNumberOfMessages", 1),
    "max_message_bytes": ("MaximumMessageSize", 1),
    "max_receive_count": ("RedrivePolicy", 1),
    "messages": ("Entries", 1),
    "name": ("QueueName", 1),
    "policy": ("Policy", 1),
    "queue": ("QueueName", 1),
    "rate": ("MaxNumberOfMessagesPerSecond", 1),
    "receive_wait_ms": ("ReceiveMessageWaitTimeSeconds", 1000),
    "redrive_policy": ("RedrivePolicy", 1),
    "retention_ms": ("MessageRetentionPeriod", 1000),
    "source": ("SourceArn", 1),
    "tag": ("QueueName", 1),
    "tags": ("QueueName", 1),
    "wait_ms": ("WaitTimeSeconds", 1000),
}
NO_QUEUE: Final = "The specified queue does not exist."
OTHER_QUEUE_TYPE: Final = "The request include parameter that is not valid for this queue type."
NO_DEDUPLICATION: Final = (
    "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
)
INTERNAL: Final = "An internal error occurred."
THROTTLED: Final = "Request is throttled."

# What the decoder of JSON says of a value of another kind than its place has, and what AWS calls
# those kinds. It does not say which of the two a boolean is.
_MISFIT: Final = re.compile(r"Expected `(?P<wanted>\w+)[^`]*`(?: [<>]=? -?\d+)?, got `(?P<given>\w+)`")
_UNREADABLE: Final = {UnicodeError: "it is not UTF-8.", RecursionError: "it is nested too deeply."}
_STARTS: Final = {
    "array": "Start of list found where not expected",
    "object": "Start of structure or map found where not expected.",
}
_TOKENS: Final = {"str": "STRING_VALUE", "int": "NUMBER_VALUE", "float": "NUMBER_VALUE", "bool": "BOOLEAN_VALUE"}
_KINDS: Final = {"int": "an Integer", "float": "a Number", "bool": "a Boolean", "str": "a String"}

_TEXTS: Final[dict[type[errors.EngineError], str]] = {
    errors.EngineError: INTERNAL,
    errors.NotFound: "The specified resource does not exist.",
    errors.QueueNotFound: NO_QUEUE,
    errors.TagNotFound: NO_QUEUE,
    errors.TaskNotFound: "Task does not exist.",
    errors.Conflict: "The request conflicts with the state of the queue.",
    errors.TaskEnded: "Value for parameter TaskHandle is invalid. Reason: Only active tasks can be cancelled.",
    errors.TooManyDelayed: (
        "Too many messages of the queue are delayed. Please send with a shorter delay, or wait until some are due."
    ),
    errors.TooManyInFlight: (
        "Too many messages have been received without being deleted. Please delete your received messages or let them "
        "timeout before receiving more."
    ),
    errors.QueueInUse: f"{THROTTLED} Another change of the queue is under way.",
    errors.Overloaded: THROTTLED,
    errors.QuotaExceeded: THROTTLED,
    errors.TooManyAttempts: THROTTLED,
    errors.Denied: "Access to the resource is denied.",
    errors.NotAuthenticated: "The security token included in the request is invalid.",
    errors.Refused: "One or more parameters are invalid.",
    errors.Unavailable: "The request has failed due to a temporary failure of the server.",
    errors.LogUnavailable: (
        "The request has failed due to a temporary failure of the server. What was sent may have been stored."
    ),
    errors.NotStored: (
        "The request has failed due to a temporary failure of the server. Nothing was stored: it may be sent again."
    ),
}


def value_text(parameter: str, given: object, reason: str) -> str:
    """That a value is none of its parameter; None = it is not repeated."""
    value = "" if given is None else f"{str(given)[:GIVEN_CHARACTERS]} "
    return f"Value {value}for parameter {parameter} is invalid." + (f" Reason: {reason}" if reason else "")


def handle_text(handle: object) -> str:
    """That a text is no receipt handle."""
    return f'The input receipt handle "{str(handle)[:GIVEN_CHARACTERS]}" is not a valid receipt handle.'


def size_text(limit: object) -> str:
    """That a message is too large."""
    return f"One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."


def range_text(low: object, high: object) -> str:
    """Between what a value must be."""
    return f"Must be >= {low} and <= {high}, if provided."


def unreadable_text(error: Exception) -> str:
    """Why a body of JSON can't be read, of the decoder's error: in AWS's words where there are
    some.
    """
    found = _MISFIT.match(str(error))
    if found is None:
        why = next((words for kind, words in _UNREADABLE.items() if isinstance(error, kind)), error)
        return f"The body can't be read: {why}"
    wanted, given = found["wanted"], found["given"]
    if wanted == "array" and given not in _STARTS:
        return "Expected list or null"
    if given in _STARTS:
        return _STARTS[given]
    if wanted == "object":
        return "Expected null"
    return f"{_TOKENS.get(given, 'NULL_VALUE')} can not be converted to {_KINDS.get(wanted, 'a String')}"


def text_of(error: errors.EngineError, action: str = "") -> str:
    """The text of an engine error; `action`: what was asked for, where that is known."""
    if isinstance(error, errors.NotAuthorised) and action:
        return f"User: {str(error.given)[:GIVEN_CHARACTERS]} is not authorized to perform: sqs:{action.lower()}"
    makes = next((_MADE[base] for base in type(error).__mro__ if base in _MADE), None)
    return next(_TEXTS[base] for base in type(error).__mro__ if base in _TEXTS) if makes is None else makes(error)


def _value(error: errors.EngineError) -> str:
    parameter, factor = PARAMETERS.get(error.field or "", ("", 1))
    if not parameter:
        return _TEXTS[errors.Refused]
    if error.field == "dedup_id" and error.given is None:
        return NO_DEDUPLICATION
    given = error.given if isinstance(error.given, int | str) else None
    return value_text(parameter, _in_units(given, factor), _reason(error, parameter, factor))


def _reason(error: errors.EngineError, parameter: str, factor: int) -> str:
    field, limit = error.field, error.limit
    if field in ("group", "dedup_id") and isinstance(limit, int):
        return f"{parameter} can only include alphanumeric and punctuation characters. 1 to {limit} in length."
    if field == "dedup_id" or (field == "delay_ms" and limit is None):
        return OTHER_QUEUE_TYPE
    if field == "lease_ms" and isinstance(limit, int):  # in seconds, counted from the receive
        return f"Total VisibilityTimeout for the message is beyond the limit [{limit} seconds]"
    if isinstance(limit, list) and len(limit) == 2 and all(isinstance(part, int) for part in limit):
        low, high = (_in_units(part, factor) for part in limit)
        return f"{parameter} must be >= {low} and <= {high}." if field == "delay_ms" else range_text(low, high)
    return ""


def _in_units(value: Any, factor: int) -> Any:
    """A value of the engine in SQS's units; what is no whole number of them has a fraction."""
    if not isinstance(value, int) or isinstance(value, bool) or factor == 1:
        return value
    return value // factor if value % factor == 0 else value / factor


def _exists(error: errors.EngineError) -> str:
    if error.field == "name":
        return "A queue already exists whose name differs from this one in '.' and '_' alone"
    parameter, _ = PARAMETERS.get(error.field or "", ("", 1))
    same = "A queue already exists with the same name"
    return f"{same} and a different value for attribute {parameter}" if parameter else f"{same} and other settings"


def _not_allowed(error: errors.EngineError) -> str:
    if error.field == "dedup_scope":
        return "DeduplicationScope can only be changed while the queue is empty."
    if error.field == "fifo":
        return "Modifying queue type is not supported."
    return "The operation is not supported on this queue."


# Texts that say what was wrong with which value.
_MADE: Final[dict[type[errors.EngineError], Callable[[errors.EngineError], str]]] = {
    errors.MessageTooLarge: lambda error: size_text(error.limit),
    errors.InvalidHandle: lambda error: handle_text(error.given),
    errors.InvalidValue: _value,
    errors.QueueExists: _exists,
    errors.TagExists: _exists,
    errors.NotAllowedOnQueue: _not_allowed,
}
