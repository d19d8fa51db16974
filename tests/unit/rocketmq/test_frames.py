"""Frames of HTTP/2, however they are cut."""

from __future__ import annotations

import pytest

from facade.dialects.rocketmq.http2.frames import (
    FRAME_BYTES,
    HEAD_BYTES,
    IDLE_FRAMES,
    IDLE_FRAMES_A_SECOND,
    Frames,
    Hostile,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def since(frames: Frames) -> float | None:
    return frames.partial_since


def frame(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + b"\0\0\0\1" + payload


HEAD, DATA, PING, FAREWELL = frame(1, b"head", 4), frame(0, b"data"), frame(6, b"\0" * 8), frame(7, b"\0" * 8)


@pytest.mark.parametrize("size", [1, 7, 9, 40, 1000])
def test_whole_frames_are_passed_on_however_they_come_and_farewells_are_not(size: int) -> None:
    data, frames, got = PREFACE + HEAD + FAREWELL + DATA + PING + FAREWELL, Frames(0), b""
    for at in range(0, len(data), size):
        got += frames.whole(data[at : at + size], 0)
    assert got == PREFACE + HEAD + DATA + PING and frames.partial_since is None


def test_what_is_not_whole_is_known_since_when() -> None:
    frames = Frames(5)
    assert since(frames) == 5
    frames.whole(PREFACE + HEAD, 6)
    assert since(frames) is None
    frames.whole(DATA[:3], 7)
    frames.whole(DATA[3:5], 8)
    assert since(frames) == 7
    frames.whole(DATA[5:], 9)
    assert since(frames) is None
    frames.whole(frame(1, b"half a head"), 10)
    frames.whole(frame(9, b"more"), 11)
    assert since(frames) == 10
    frames.whole(frame(9, b"end", 4), 12)
    assert since(frames) is None


@pytest.mark.parametrize(
    "flood",
    [
        PING * (IDLE_FRAMES + 1),
        frame(0, b"") * (IDLE_FRAMES + 1),
        frame(0, b"x") * (IDLE_FRAMES + 1),
        frame(0, b"\xff" + b"\0" * 255, 8) * (IDLE_FRAMES + 1),
        (FRAME_BYTES + 1).to_bytes(3) + b"\0" * 6,
        frame(1, b"x") + frame(9, b"x" * FRAME_BYTES) * (HEAD_BYTES // FRAME_BYTES),
    ],
)
def test_what_no_client_sends_is_hostile(flood: bytes) -> None:
    frames = Frames(0)
    frames.whole(PREFACE, 0)
    with pytest.raises(Hostile):
        frames.whole(flood, 0)


def test_a_client_may_send_small_parts_of_each_request() -> None:
    frames = Frames(0)
    size, message, end = frame(0, b"\0\0\0\0\x09"), frame(0, b"x" * 9), frame(0, b"", 1)
    frames.whole(PREFACE + (HEAD + size + message + end) * 10 * IDLE_FRAMES, 0)
    with pytest.raises(Hostile):
        frames.whole(HEAD + size * (IDLE_FRAMES * 2 + 3), 0)


def test_frames_that_bring_nothing_are_allowed_again_with_time_and_answers() -> None:
    frames = Frames(0)
    frames.whole(PREFACE + PING * IDLE_FRAMES, 0)
    frames.whole(PING * int(IDLE_FRAMES_A_SECOND), 1)
    frames.earn(10)
    frames.whole(PING * 10, 1)
    with pytest.raises(Hostile):
        frames.whole(PING, 1)
