"""Engine errors -> problems: every error has a row, and speaks the dialect's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from engine import errors
from facade.dialects.native.operations import OPERATIONS
from facade.dialects.native.reference.openapi import codes_of
from facade.http.problem import CODES, STATUSES, problem_of, shortened, status_of
from tests.unit.facade.double import RecordingEngine


def tree(root: type[errors.EngineError] = errors.EngineError) -> Iterator[type[errors.EngineError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("error", list(tree()))
def test_each_engine_error_has_a_row_of_its_own(error: type[errors.EngineError]) -> None:
    assert error in STATUSES


@pytest.mark.parametrize(
    "error", [error for error in tree() if "code" in vars(error) and error is not errors.EngineError]
)
def test_each_error_with_a_code_keeps_it_and_has_a_documented_status(error: type[errors.EngineError]) -> None:
    found = problem_of(error())

    assert (found.code, found.status) == (error.code, status_of(error))
    assert CODES[error.code].status == found.status
    assert found.detail


def test_only_what_may_be_repeated_is_a_server_error() -> None:
    # 429 means the same, and that it is the client that is too fast.
    repeatable = {error for error in tree() if status_of(error) >= 500 or status_of(error) == 429}

    assert repeatable == {errors.EngineError, *tree(errors.Unavailable)}


def test_codes_differ_and_each_row_is_a_sentence() -> None:
    codes = [error.code for error in tree() if "code" in vars(error)]

    assert len(codes) == len(set(codes))
    assert all(row.title.endswith(".") and 400 <= row.status < 600 for row in CODES.values())


def test_each_code_an_operation_documents_exists() -> None:
    assert {code for operation in OPERATIONS for code in codes_of(operation)} <= set(CODES)


def test_an_error_without_a_row_gets_that_of_its_base() -> None:
    assert status_of(type("Unforeseen", (errors.Conflict,), {})) == 409


@pytest.mark.parametrize("path", ["/v1/queues/orders", "/v1/queues/orders/messages?limit=1"])
async def test_what_is_unavailable_may_be_repeated_later(
    client: httpx.AsyncClient, engine: RecordingEngine, path: str
) -> None:
    engine.error = errors.Rebuilding()

    answer = await client.get(path)

    assert (answer.status_code, answer.headers["retry-after"], answer.json()["code"]) == (503, "1", "rebuilding")


@pytest.mark.parametrize(
    ("error", "field", "limit", "given"),
    [
        (errors.InvalidValue("x", field="delay_ms", limit=[0, 2500], given=-1000), "delay_seconds", [0, 2.5], -1),
        (errors.InvalidValue("x", field="wait_ms", limit=(0, 60_000), given=60_001), "wait_seconds", [0, 60], 60.001),
        (errors.InvalidValue("x", field="entries[3].lease_ms", given=5), "entries[3].lease_seconds", None, 0.005),
        (errors.InvalidValue("x", field="from_ms", limit=5, given=7), "from", 5, 7),
        (errors.InvalidValue("x", field="start_at_ms", limit=5, given=7), "start_at_ms", 5, 7),
        (errors.MessageTooLarge("x", field="body", limit=5, given=7), "body", 5, 7),
    ],
)
async def test_a_refusal_of_the_engine_speaks_of_seconds_where_the_client_did(
    client: httpx.AsyncClient, engine: RecordingEngine, error: errors.EngineError, field: str, limit: Any, given: Any
) -> None:
    engine.error = error

    found = (await client.post("/v1/queues/orders/receive")).json()

    assert (found["field"], found.get("limit"), found["given"]) == (field, limit, given)
    assert "_ms" not in found["detail"]


@pytest.mark.parametrize(
    ("given", "short"),
    [
        (True, True),
        (0.5, 0.5),
        (2**63 - 1, 2**63 - 1),
        (2**70, hex(2**70)),
        (10**4000, hex(10**4000)[:200]),
        ("x" * 300, "x" * 200),
        ("\ud800", "?"),
        (b"\xff", "\ufffd"),
        ([1, "a"], '[1,"a"]'),
        ({"a": object()}, "dict"),
        (object(), "object"),
    ],
)
def test_what_was_given_is_repeated_shortened(given: Any, short: Any) -> None:
    assert shortened(given) == short
