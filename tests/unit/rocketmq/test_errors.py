"""The table from engine errors to codes of RocketMQ: every error has a row; what a client hears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import errors
from facade.dialects.rocketmq.wire.errors import ERRORS, INTERNAL, RocketError, code_of, status_of
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code


def tree(root: type[errors.EngineError] = errors.EngineError) -> Iterator[type[errors.EngineError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("error", [error for error in tree() if error.__module__ == errors.__name__])
def test_each_engine_error_has_a_row_of_its_own(error: type[errors.EngineError]) -> None:
    assert error in ERRORS
    assert status_of(error("why")) == status_of(RocketError(ERRORS[error], "why"))


def test_what_passes_by_itself_is_told_apart_from_what_does_not() -> None:
    busy = {error for error, code in ERRORS.items() if code == Code.TOO_MANY_REQUESTS}

    assert busy == {errors.QueueInUse, errors.TooManyDelayed, errors.TooManyInFlight, errors.TooManyTransactions} | {
        errors.Overloaded,
        errors.NotStored,
        errors.QuotaExceeded,
        errors.TooManyAttempts,
    }


def test_an_error_without_a_row_gets_that_of_its_base() -> None:
    assert code_of(type("Unforeseen", (errors.Conflict,), {})) == Code.PRECONDITION_FAILED
    assert code_of(type("Unforeseen", (errors.MessageTooLarge,), {})) == Code.MESSAGE_BODY_TOO_LARGE


def test_nothing_is_told_of_an_error_that_nobody_expected() -> None:
    status = status_of(ValueError("a secret"))

    assert (status.code, status.message) == (Code.INTERNAL_ERROR, INTERNAL)


def test_the_codes_are_those_of_the_reference() -> None:
    # reference/rocketmq.md 4.3
    bad_requests = [code for code in Code.values() if 40000 <= code < 40100]
    assert bad_requests == list(range(40000, 40019))
    assert (Code.OK, Code.MULTIPLE_RESULTS, Code.UNAUTHORIZED, Code.FORBIDDEN) == (20000, 30000, 40100, 40300)
    assert (Code.MESSAGE_NOT_FOUND, Code.TOPIC_NOT_FOUND, Code.CONSUMER_GROUP_NOT_FOUND) == (40401, 40402, 40403)
    assert (Code.MESSAGE_BODY_TOO_LARGE, Code.MESSAGE_BODY_EMPTY, Code.MESSAGE_PROPERTIES_TOO_LARGE) == (
        41301,
        41302,
        43101,
    )
    assert (Code.TOO_MANY_REQUESTS, Code.INTERNAL_ERROR, Code.INTERNAL_SERVER_ERROR, Code.NOT_IMPLEMENTED) == (
        42900,
        50000,
        50001,
        50100,
    )
