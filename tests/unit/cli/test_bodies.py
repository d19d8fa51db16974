"""Messages of arguments, files and lines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.rules.limits import ASKED, MAX_BATCH_BYTES
from facade.dialects.native.wire.replies import DeliveryReply, PeekedReply
from facade.dialects.native.wire.shapes import SendMessage
from facade.programs.cli.nouns.messages.bodies import (
    FIELDS,
    MOST_LINE,
    MOST_MESSAGES,
    batches,
    body_of,
    bytes_of,
    from_arguments,
    from_object,
    lines_of,
)
from facade.programs.connect.failures import Failure


class Slow(io.BytesIO):
    """A pipe: a read gets what one write has written."""

    def __init__(self, *writes: bytes) -> None:
        super().__init__()
        self._writes = list(writes)

    def read1(self, _size: int | None = -1, /) -> bytes:
        return self._writes.pop(0) if self._writes else b""


def test_the_limits_and_fields_are_those_of_the_api() -> None:
    assert ASKED["messages"][1] == MOST_MESSAGES
    assert set(FIELDS) == set(SendMessage.__struct_fields__)


@pytest.mark.parametrize("data", [b"", b"hello", "grüße\n".encode(), b"\xff\x00", b"a\xc3"])
def test_a_body_is_the_bytes_that_were_given(data: bytes) -> None:
    message = body_of(data)

    assert bytes_of(message) == data
    assert ("body" in message) == (data not in (b"\xff\x00", b"a\xc3"))


def test_arguments_come_before_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")

    assert list(from_arguments(["x", "\udcff"], [tmp_path / "a"])) == [
        {"body": "x"},
        {"body_base64": "/w=="},
        {"body": "one\ntwo\n"},
    ]


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="none can't be read: No such file"):
        list(from_arguments([], [tmp_path / "none"]))


def test_a_line_that_does_not_end_is_refused() -> None:
    slow = Slow(b"a\n", *[b"x" * 1_000_000] * 5)
    lines = lines_of(slow)

    assert next(lines) == [b"a"]
    with pytest.raises(Failure, match="a line has more than 4016384 bytes"):
        next(lines)
    assert MAX_BATCH_BYTES == MOST_LINE


def test_lines_that_came_together_stay_together_and_the_last_needs_no_end() -> None:
    slow = Slow(b"a\nb\nc", b"c\n\n", b"d\r\n", b"e")

    assert list(lines_of(slow)) == [[b"a", b"b"], [b"cc"], [b"d"], [b"e"]]


@pytest.mark.parametrize("reply", [DeliveryReply, PeekedReply])
def test_what_a_command_has_printed_can_be_sent_again(reply: type[msgspec.Struct]) -> None:
    printed = dict.fromkeys(reply.__struct_fields__, "x") | {"attributes": {"a": {"type": "string", "value": "b"}}}
    printed.pop("masked", None)  # such a message is not sent on

    message = from_object(1, json.dumps(printed).encode())

    assert message["attributes"] == printed["attributes"]
    assert set(message) <= set(FIELDS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "line 7 is not JSON"),
        (b"[1]", "line 7 is no JSON object, given '\\[1\\]'"),
        (b'{"boddy": "x"}', "line 7 has 'boddy', and a message has body"),
    ],
)
def test_a_line_that_is_no_message_is_named(line: bytes, said: str) -> None:
    with pytest.raises(Failure, match=said):
        from_object(7, line)


def test_a_batch_has_at_most_100_messages_and_so_many_bytes() -> None:
    messages: list[dict[str, Any]] = [{"body": "x" * 10} for _ in range(250)]

    assert [len(batch) for batch in batches(messages)] == [100, 100, 50]
    assert [len(batch) for batch in batches(messages[:5], 50)] == [2, 2, 1]
    assert [len(batch) for batch in batches([{"body": "x" * 100}, {"body": "y"}], 50)] == [1, 1]
    assert list(batches([])) == []
