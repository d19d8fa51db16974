"""Words for errors; the rest of a request's span is in `test_tracing.py`."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EngineError, QueueNotFound
from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, MnsError
from facade.dialects.sqs.wire.errors import INVALID_PARAMETER, SqsError
from facade.http.problem import ProblemError
from tests.unit.facade.tracing.conftest import Traced


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (QueueNotFound("x"), "queue_not_found"),
        (EngineError("x"), "EngineError"),
        (ValueError("secret"), "ValueError"),
        (SqsError(INVALID_PARAMETER, "x"), INVALID_PARAMETER.code),
        (MnsError(INVALID_ARGUMENT, "x"), INVALID_ARGUMENT.word),
        (ProblemError("cross_site"), "cross_site"),
    ],
)
def test_an_error_has_a_word_out_of_a_small_set(traced: Traced, error: Any, word: str) -> None:
    from facade.http.tracing.request import kind_of

    assert kind_of(error) == word
