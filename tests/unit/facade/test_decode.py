"""What can't be decoded is refused with the field, the limit and what was given."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct

from facade.http.decode import decode_json, decode_query
from facade.http.problem import ProblemError


class Entry(Struct, forbid_unknown_fields=True):
    delay_seconds: Annotated[int, Meta(ge=0, le=900)] = 0


class Body(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=5)]
    entries: list[Entry] = []
    more: Any = None


class Query(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    state: list[str] = []


def refusal(body: bytes) -> tuple[str, str | None, Any, Any]:
    with pytest.raises(ProblemError) as refused:
        decode_json(msgspec.json.Decoder(Body), body)
    error = refused.value
    return error.code, error.field, error.limit, error.given


def test_a_body_of_the_shape_is_read() -> None:
    assert decode_json(msgspec.json.Decoder(Body), b'{"name": "a", "entries": [{"delay_seconds": 3}]}') == Body(
        "a", [Entry(3)]
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"name": 7}', ("wrong_type", "name", "str", 7)),
        (b'{"name": "toolong"}', ("invalid_value", "name", "str of length <= 5", "toolong")),
        (b"{}", ("missing_field", "name", None, None)),
        (b'{"name": "a", "nme": 1}', ("unknown_field", "nme", None, 1)),
        (
            b'{"name": "a", "entries": [{}, {"delay_seconds": 901}]}',
            ("invalid_value", "entries[1].delay_seconds", "int <= 900", 901),
        ),
        (b'{"name": "a", "entries": [{"delay": 1}]}', ("unknown_field", "entries[0].delay", None, 1)),
        (b"[]", ("wrong_type", "body", "object", [])),
        (b" \n", ("missing_body", "body", None, None)),
        (b"{", ("malformed_json", "body", None, b"{")),
        (b'{"name": "\xff"}', ("malformed_json", "body", None, b'{"name": "\xff"}')),
        (b'{"name": "a", "more": ' + b"[" * 100_000, ("too_deep", "body", None, None)),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)
def test_a_body_of_another_shape_is_refused_with_its_place(body: bytes, told: tuple[str, str | None, Any, Any]) -> None:
    assert refusal(body) == told


def test_a_parameter_may_be_repeated_where_a_list_is_asked_for() -> None:
    assert decode_query(Query, b"limit=3&state=ready&state=leased") == Query(3, ["ready", "leased"])


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        (b"limit=3&limit=4", "duplicate_value", "limit"),
        (b"limit=0", "invalid_value", "limit"),
        (b"limit=many", "wrong_type", "limit"),
        (b"limt=3", "unknown_field", "limt"),
        (b"limit=%FF", "malformed_query", "query"),
        (b"&".join([b"state=a"] * 51), "malformed_query", "query"),
    ],
)
def test_a_query_that_cant_be_read_is_refused(query: bytes, code: str, field: str) -> None:
    with pytest.raises(ProblemError) as refused:
        decode_query(Query, query)
    assert (refused.value.code, refused.value.field) == (code, field)
