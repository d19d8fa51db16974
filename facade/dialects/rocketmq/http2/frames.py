"""Frames of HTTP/2 as they come on one connection: whole ones are passed on, and a client that
sends many that bring nothing is cut off.
"""

from __future__ import annotations

from typing import Final

PREFACE_BYTES: Final = 24
FRAME_BYTES: Final = 16_384  # of the payload of a frame
HEAD_BYTES: Final = 32_768  # of the frames of one head together
# Frames that bring no request and no byte of one: as many at once, and a second.
IDLE_FRAMES: Final = 2_000
IDLE_FRAMES_A_SECOND: Final = 200.0
# A part of a body that has less counts as nothing, but for two of each request: a client may send
# the size of a message for itself.
SMALL_BYTES: Final = 64
SMALL_OF_REQUEST: Final = 2

_HEADER: Final = 9
_DATA, _HEADERS, _GOAWAY, _CONTINUATION = 0, 1, 7, 9
_END_STREAM: Final = 1
_END_HEADERS: Final = 4
_PADDED: Final = 8


class Hostile(Exception):
    """What no client of RocketMQ sends."""


class Frames:
    """Of one connection. Times are those of its loop."""

    __slots__ = ("_at", "_head", "_idle", "_left", "_preface", "_small", "partial_since")

    def __init__(self, now: float) -> None:
        self._left = b""
        self._preface = PREFACE_BYTES
        self._head = 0  # bytes of a head that is not whole
        self._idle = float(IDLE_FRAMES)
        self._small = 0  # small parts of bodies that its requests may have
        self._at = now
        self.partial_since: float | None = now  # since when a frame or a head is not whole

    def earn(self, frames: int) -> None:
        """Allows more frames that bring nothing: a client confirms what it is sent."""
        self._idle = min(self._idle + frames, IDLE_FRAMES)

    def whole(self, data: bytes, now: float) -> bytes:
        """The whole frames of what has come so far. Raises Hostile."""
        data = self._left + data if self._left else data
        end = min(self._preface, len(data))
        self._preface -= end
        farewells: list[tuple[int, int]] = []
        if not self._preface:
            self._idle = min(self._idle + (now - self._at) * IDLE_FRAMES_A_SECOND, IDLE_FRAMES)
            self._at = now
            end = self._cut(data, end, farewells)
        self._left = data[end:]
        if not (self._left or self._head or self._preface):
            self.partial_since = None
        elif self.partial_since is None or (end and not self._head):
            self.partial_since = now
        whole = data[:end]
        for begin, after in reversed(farewells):
            whole = whole[:begin] + whole[after:]
        return whole

    def _cut(self, data: bytes, at: int, farewells: list[tuple[int, int]]) -> int:
        """Returns where the whole frames end, and notes the farewells among them: a client that
        says one still waits for its answers, which h2 would not give it.
        """
        size = len(data)
        while size - at >= _HEADER:
            length, kind, flags = int.from_bytes(data[at : at + 3]), data[at + 3], data[at + 4]
            if length > FRAME_BYTES:
                raise Hostile(f"a frame of {length} bytes, where {FRAME_BYTES} are allowed")
            if size - at < _HEADER + length:
                break
            if kind == _GOAWAY:
                farewells.append((at, at + _HEADER + length))
            at += _HEADER + length
            self._count(length, kind, flags)
        return at

    def _count(self, length: int, kind: int, flags: int) -> None:
        if kind in (_HEADERS, _CONTINUATION):
            self._head += length
            if self._head > HEAD_BYTES:
                raise Hostile(f"a head of more than {HEAD_BYTES} bytes")
            if flags & _END_HEADERS:
                self._head = 0
                self._small = min(self._small + SMALL_OF_REQUEST, IDLE_FRAMES)
        if kind == _DATA and not flags & _END_STREAM and (length < SMALL_BYTES or flags & _PADDED):
            if length and self._small:
                self._small -= 1
            else:
                kind = -1
        if kind not in (_DATA, _HEADERS):
            self._idle -= 1
            if self._idle < 0:
                raise Hostile("too many frames that bring nothing")
