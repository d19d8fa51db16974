"""The table from engine errors to shapes of SQS: every error has a row, and what may be repeated
says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import errors
from facade.dialects.sqs.wire.errors import CHANGED, DELETED, ERRORS, REQUEST_THROTTLED, Shape, shape_of, sqs_error
from schemas.vocabulary import EntryStatus


def tree(root: type[errors.EngineError] = errors.EngineError) -> Iterator[type[errors.EngineError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("error", [error for error in tree() if error.__module__ == errors.__name__])
def test_each_engine_error_has_a_row_of_its_own(error: type[errors.EngineError]) -> None:
    assert error in ERRORS


def test_only_what_may_be_repeated_is_a_fault_of_ours_or_throttled() -> None:
    repeatable = {error for error, shape in ERRORS.items() if shape.status >= 500 or shape is REQUEST_THROTTLED}

    assert repeatable == {
        errors.EngineError,
        errors.QueueInUse,
        *(e for e in ERRORS if issubclass(e, errors.Unavailable)),
    }


@pytest.mark.parametrize("outcomes", [DELETED, CHANGED])
def test_each_status_of_a_handle_has_an_outcome(outcomes: dict[str, Shape | None]) -> None:
    assert set(outcomes) == set(EntryStatus)
    assert outcomes[EntryStatus.OK] is None


def test_a_stale_handle_is_silence_to_a_delete_and_an_error_to_a_change() -> None:
    changed = CHANGED[EntryStatus.STALE]

    assert DELETED[EntryStatus.STALE] is None
    assert changed is not None and changed.code == "InvalidParameterValue"


def test_an_error_without_a_row_gets_that_of_its_base() -> None:
    assert shape_of(type("Unforeseen", (errors.Conflict,), {})) is ERRORS[errors.Conflict]


def test_an_abstract_error_tells_nothing() -> None:
    assert "secret" not in sqs_error(errors.EngineError("secret")).message
    assert sqs_error(errors.QueueNotFound("there is no queue 'q'")).message == "The specified queue does not exist."
