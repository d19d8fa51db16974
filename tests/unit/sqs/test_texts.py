"""Texts of errors that a client causes only where something is away, short or badly signed: to the
letter. The others: tests/conformance/sqs/error_rows.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from engine import errors
from facade.dialects.sqs.signature import Asked, claim_of
from facade.dialects.sqs.wire.errors import SqsError, sqs_error
from facade.dialects.sqs.wire.forms import parse
from facade.dialects.sqs.wire.limits import FORM_FIELDS
from facade.dialects.sqs.wire.words import unreadable_text
from tests.unit.facade.double import RecordingEngine
from tests.unit.sqs.test_dialect import post
from tests.unit.sqs.test_signature import read, signed, with_header

AWAY = "The request has failed due to a temporary failure of the server."
SIGNED = "A request is signed with AWS4-HMAC-SHA256, Credential, SignedHeaders and Signature."
# Of the engine's errors: code, status, text.
ENGINE: list[tuple[errors.EngineError, str, int, str]] = [
    (errors.EngineError("a secret"), "InternalFailure", 500, "An internal error occurred."),
    (errors.LogUnavailable("a secret"), "ServiceUnavailable", 503, f"{AWAY} What was sent may have been stored."),
    (errors.StoreUnavailable("a secret"), "ServiceUnavailable", 503, AWAY),
    (errors.Rebuilding("a secret"), "ServiceUnavailable", 503, AWAY),
    (errors.QueueRenewed("a secret"), "ServiceUnavailable", 503, AWAY),
    (errors.Overloaded("a secret"), "RequestThrottled", 403, "Request is throttled."),
    (errors.QuotaExceeded("a secret", field="sends", limit=5), "RequestThrottled", 403, "Request is throttled."),
    (errors.TooManyAttempts("a secret"), "RequestThrottled", 403, "Request is throttled."),
    (
        errors.QueueInUse("a secret"),
        "RequestThrottled",
        403,
        "Request is throttled. Another change of the queue is under way.",
    ),
    (
        errors.TooManyInFlight("a secret", field="in_flight", limit=120_000, given=120_000),
        "OverLimit",
        403,
        (
            "Too many messages have been received without being deleted. Please delete your received messages "
            "or let them timeout before "
            "receiving more."
        ),
    ),
    (
        errors.TooManyDelayed("a secret", field="delay_ms", limit=150_000, given=150_001),
        "OverLimit",
        403,
        "Too many messages of the queue are delayed. Please send with a shorter delay, or wait until some are due.",
    ),
    (
        errors.DelayTooLong(
            "a secret", field="delay_ms", limit=[0, 60_000], given=120_000, queue="q", most_ms=60_000, delay_ms=120_000
        ),
        "InvalidParameterValue",
        400,
        "Value 120 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 60.",
    ),
]


@pytest.mark.parametrize(("error", "code", "status", "text"), ENGINE, ids=[type(row[0]).__name__ for row in ENGINE])
def test_an_error_of_the_engine_is_told_in_the_words_of_sqs(
    error: errors.EngineError, code: str, status: int, text: str
) -> None:
    told = sqs_error(error, "SendMessage")

    assert (told.shape.code, told.shape.status, told.message) == (code, status, text)


def _is_late() -> None:
    read(signed()).check_time(datetime(2020, 1, 1, tzinfo=UTC))


def _of(authorization: bytes) -> Callable[[], object]:
    return lambda: claim_of(with_header(signed(), b"authorization", authorization))


def _without_time() -> Asked:
    return with_header(signed(), b"x-amz-date", None)


# What is raised: code, and a text in which {now} stands for a time.
RAISED: dict[str, tuple[Callable[[], object], str, int, str]] = {
    "no signature": (_of(b"Basic eDp5"), "IncompleteSignature", 400, SIGNED),
    "no time": (
        lambda: claim_of(_without_time()),
        "IncompleteSignature",
        400,
        "The request needs X-Amz-Date, as 20260101T000000Z.",
    ),
    "late": (_is_late, "RequestExpired", 400, "Signature expired: {now} is not within 15 minutes of 20200101T000000Z."),
    "twice": (
        lambda: parse(b"a=1&a=2"),
        "MalformedQueryString",
        404,
        "The request is not a query of SQS: a is there twice",
    ),
    "not UTF-8": (
        lambda: parse(b"a=%ff"),
        "MalformedQueryString",
        404,
        "The request is not a query of SQS: a name or a value is not UTF-8, or not escaped",
    ),
    "too many": (
        lambda: parse(b"x=1&" * (FORM_FIELDS + 1)),
        "MalformedQueryString",
        404,
        f"The request is not a query of SQS: it has more than {FORM_FIELDS} fields",
    ),
}


@pytest.mark.parametrize("row", RAISED)
def test_a_request_that_is_badly_signed_or_formed_is_told_why(row: str) -> None:
    cause, code, status, text = RAISED[row]
    with pytest.raises(SqsError) as caught:
        cause()
    start, _, end = text.partition("{now}")

    assert (caught.value.shape.code, caught.value.shape.status) == (code, status)
    assert caught.value.message.startswith(start) and caught.value.message.endswith(end)
    assert ("{now}" in text) or caught.value.message == text


async def test_who_signs_nothing_is_told_so() -> None:
    response = await post(RecordingEngine(), "ListQueues", auth="required", authorization="")

    assert response.headers["x-amzn-query-error"] == "MissingAuthenticationToken;Sender"
    assert response.json()["message"] == "Request is missing Authentication Token"


async def test_a_failure_of_ours_tells_nothing_of_itself() -> None:
    engine = RecordingEngine()
    engine.error = RuntimeError("a secret")
    response = await post(engine, "SendMessage", json.dumps({"QueueUrl": "q", "MessageBody": "x"}).encode())

    assert (response.status_code, response.json()["message"]) == (500, "An internal error occurred.")


async def test_a_delay_beyond_the_longest_of_a_queue_is_no_value_of_its_attribute() -> None:
    engine = RecordingEngine()
    engine.error = errors.DelayTooLong("a secret", field="delay_ms", limit=[0, 60_000], given=120_000, queue="q")
    response = await post(engine, "SetQueueAttributes", b'{"QueueUrl": "q", "Attributes": {"DelaySeconds": "120"}}')

    assert response.headers["x-amzn-query-error"] == "InvalidAttributeValue;Sender"
    assert response.json()["message"] == "Invalid value for the parameter DelaySeconds."


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Expected `str`, got `int` - at `$.Attributes[...]`", "NUMBER_VALUE can not be converted to a String"),
        ("Expected `str | null`, got `bool` - at `$.MessageBody`", "BOOLEAN_VALUE can not be converted to a String"),
        ("Expected `int | null`, got `float` - at `$.DelaySeconds`", "NUMBER_VALUE can not be converted to an Integer"),
        ("Expected `int | null`, got `str` - at `$.DelaySeconds`", "STRING_VALUE can not be converted to an Integer"),
        ("Expected `str`, got `null` - at `$.Attributes[...]`", "NULL_VALUE can not be converted to a String"),
        ("Expected `array | null`, got `str` - at `$.Entries`", "Expected list or null"),
        (
            "Expected `array | null`, got `object` - at `$.Entries`",
            "Start of structure or map found where not expected.",
        ),
        ("Expected `object | null`, got `array` - at `$.MessageAttributes`", "Start of list found where not expected"),
        ("Expected `object | null`, got `str` - at `$.MessageAttributes`", "Expected null"),
        ("Input data was truncated", "The body can't be read: Input data was truncated"),
    ],
)
def test_what_a_decoder_says_is_said_in_the_words_of_aws(sentence: str, text: str) -> None:
    assert unreadable_text(ValueError(sentence)) == text


# For the test that every error that the dialect knows is caused somewhere.
CODES = {row[1] for row in ENGINE} | {row[1] for row in RAISED.values()} | {"MissingAuthenticationToken"}
