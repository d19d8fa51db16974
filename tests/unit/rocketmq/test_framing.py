"""The bytes of gRPC."""

from __future__ import annotations

import pytest

from facade.dialects.rocketmq.http2 import framing
from facade.dialects.rocketmq.http2.framing import CallEnded, GrpcStatus


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3S", 3.0),
        ("20000m", 20.0),
        ("1H", 3600.0),
        ("99999999n", 0.099999999),
        *((wrong, None) for wrong in ("", "S", "-1S", "1s", "999999999S", "\u0661S")),
    ],
)
def test_a_timeout_is_read_or_there_is_none(text: str, seconds: float | None) -> None:
    assert framing.timeout_of(text) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_message_has_its_size_before_it() -> None:
    message = framing.message_of(b"abc")
    assert message == b"\0\0\0\0\3abc" and framing.size_of(message) == 3
    assert framing.size_of(b"\0\0\x4c\x4b\x40") == framing.MESSAGE_BYTES
    for prefix, status in (
        (b"\1\0\0\0\3", GrpcStatus.UNIMPLEMENTED),
        (b"\0\0\x4c\x4b\x41", GrpcStatus.RESOURCE_EXHAUSTED),
    ):
        with pytest.raises(CallEnded) as ended:
            framing.size_of(prefix)
        assert ended.value.status == status


def test_a_status_is_said_in_ascii() -> None:
    assert framing.trailers(GrpcStatus.OK, "") == [("grpc-status", "0")]
    assert framing.trailers(GrpcStatus.INTERNAL, "a 100% \u00e4\n") == [
        ("grpc-status", "13"),
        ("grpc-message", "a 100%25 %C3%A4%0A"),
    ]
