"""The table from engine errors to codes of EMQ: every error has a row, and what a client repeats by
itself may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import errors
from facade.dialects.emq.wire.errors import ERRORS, REPEATED, ErrorCode, code_of


def tree(root: type[errors.EngineError] = errors.EngineError) -> Iterator[type[errors.EngineError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("error", [error for error in tree() if error.__module__ == errors.__name__])
def test_each_engine_error_has_a_row_of_its_own(error: type[errors.EngineError]) -> None:
    assert error in ERRORS


def test_a_client_repeats_by_itself_only_what_was_not_done() -> None:
    repeated = {error for error, code in ERRORS.items() if code in REPEATED}

    assert repeated == {errors.QueueInUse, errors.Rebuilding, errors.QueueRenewed, errors.Overloaded, errors.NotStored}
    assert {code_of(errors.LogUnavailable), code_of(errors.StoreUnavailable)} == {ErrorCode.INTERNAL_ERROR}


def test_an_error_without_a_row_gets_that_of_its_base() -> None:
    assert code_of(type("Unforeseen", (errors.Conflict,), {})) is ErrorCode.INVALID_ACTION
    assert code_of(type("Unforeseen", (errors.MessageTooLarge,), {})) is ErrorCode.REQUEST_LENGTH_EXCEEDED


def test_the_codes_are_those_of_the_reference() -> None:
    assert [int(code) for code in ErrorCode] == [*range(1, 23), 30, 34, 35]
    assert {7, 15, 16, 17, 18, 19} == REPEATED
    assert (ErrorCode.QUEUE_EXIST, ErrorCode.QUEUE_NOT_EXIST) == (4, 6)
    assert (ErrorCode.INVALID_RECEIPT_HANDLE, ErrorCode.PERMISSION_DENIED) == (11, 13)
