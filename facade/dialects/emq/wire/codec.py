"""What a protocol is to `protocols`: how a message is opened, read and written."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from facade.dialects.emq.wire.kinds import Shape


class Unreadable(ValueError):
    """What was sent is no message, or not with the fields that it must have. The text says what is
    wrong, in words for whoever sent it.
    """


class Opened(Struct, frozen=True, gc=False):
    """A message of which the head was read, unchecked; `rest` is for the codec that made it."""

    name: str
    kind: int
    seqid: int
    rest: Any


class Codec(Protocol):
    """One of Thrift's protocols. Neither reading method raises anything but Unreadable, whatever
    the bytes are, nor takes more than 0.1 us and 40 bytes for each of them: what costs most are
    structs of five bytes.
    """

    def open(self, body: bytes) -> Opened:
        """Reads the head of the message that `body` is. Raises Unreadable."""

    def read(self, opened: Opened, shape: Shape) -> Any:
        """Reads the struct after the head, which ends the body, as `shape` makes it. Unknown fields
        are left out, and so are those of another type. Raises Unreadable, which names the struct
        and the field that is missing.
        """

    def write(self, name: str, kind: int, seqid: int, content: Any, shape: Shape) -> bytes:
        """A whole message; attributes of `content` that are None are left out."""
