"""The table from engine errors to codes of MNS: every error has a row, and what may be asked again
says so by its status.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import errors
from facade.dialects.mns.wire import errors as mns
from facade.dialects.mns.wire.errors import ERRORS, Code, code_of, mns_error


def tree(root: type[errors.EngineError] = errors.EngineError) -> Iterator[type[errors.EngineError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("error", [error for error in tree() if error.__module__ == errors.__name__])
def test_each_engine_error_has_a_row_of_its_own(error: type[errors.EngineError]) -> None:
    assert error in ERRORS


@pytest.mark.parametrize("error", [error for error in tree(errors.Unavailable) if error.__module__ == errors.__name__])
def test_what_may_be_asked_again_has_a_status_that_clients_repeat(error: type[errors.EngineError]) -> None:
    assert ERRORS[error].status in (429, 503)


def test_an_error_without_a_row_gets_that_of_its_base() -> None:
    assert code_of(type("Unforeseen", (errors.Denied,), {})) is mns.ACCESS_DENIED
    assert code_of(type("Unforeseen", (errors.EngineError,), {})) is mns.INTERNAL


def test_of_an_error_of_ours_nothing_is_told() -> None:
    assert "secret" not in mns_error(errors.EngineError("the secret is s3cr3t")).message


def test_the_codes_are_those_of_the_reference() -> None:
    codes = {
        code.word: code.status for code in vars(mns).values() if isinstance(code, Code) and code is not mns.NOT_NOW
    }

    assert codes == {
        "InvalidArgument": 400, "InvalidAuthorizationHeader": 400, "MissingAuthorizationHeader": 400,
        "InvalidDateHeader": 400,
        "MissingDateHeader": 400, "InvalidDegist": 400, "InvalidRequestURL": 400, "InvalidQueryString": 400,
        "MalformedXML": 400,
        "MissingReceiptHandle": 400, "MissingVisibilityTimeout": 400, "MissingVersionHeader": 400,
        "InvalidVersionHeader": 400,
        "ReceiptHandleError": 400, "InvalidQueueName": 400, "QueueNameLengthError": 400, "AccessDenied": 403,
        "InvalidAccessKeyId": 403,
        "SignatureDoesNotMatch": 403, "QueueNotExist": 404, "MessageNotExist": 404, "TimeExpired": 408,
        "QueueAlreadyExist": 409,
        "TooManyRequests": 429, "InternalError": 500,
    }  # fmt: skip
