"""The binary and the compact protocol, by the C codec of Apache Thrift.

It limits the depth to 64, in skipped fields too, reserves no memory for elements that are only
announced, and each element takes a byte at least. What it does not do is done here: it puts U+FFFD
for what is no UTF-8, does not say which struct lacks a field, and lets bytes follow the message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from thrift.protocol import fastbinary
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from facade.dialects.emq.wire.codec import Opened, Unreadable
from facade.dialects.emq.wire.kinds import Kind, Shape

_REPLACEMENT: Final = "\ufffd".encode()
_as_json = msgspec.json.Encoder().encode


class Packed(Struct, frozen=True):
    """A Codec (see there): the library's protocol for the head, its C functions for the rest."""

    protocol: Callable[[TMemoryBuffer], Any]
    decode: Callable[[Any, Any, list[Any]], Any]
    encode: Callable[[Any, list[Any]], bytes]

    def open(self, body: bytes) -> Opened:
        """See `Codec`."""
        protocol = self.protocol(TMemoryBuffer(body))
        try:
            name, kind, seqid = protocol.readMessageBegin()
        except Exception as error:  # many kinds, of the library and of Python: all say what is wrong with the bytes
            raise Unreadable(f"the head of the message can't be read: {_reason(error)}") from None
        return Opened(name, kind, seqid, protocol)

    def read(self, opened: Opened, shape: Shape) -> Any:
        """See `Codec`."""
        protocol = opened.rest
        buffer = protocol.trans.cstringio_buf
        start = buffer.tell()
        try:
            found = self.decode(None, protocol, [shape.make, _spec(shape)])
        except Exception as error:  # as in `open`; a TypeError too, of a struct that lacks a field
            self._explain(protocol, start, shape)
            raise Unreadable(f"the message can't be read: {_reason(error)}") from None
        if buffer.read(1):
            raise Unreadable("bytes follow the message")
        # The JSON of all that was read has U+FFFD just when one of the strings has it.
        if _REPLACEMENT in _as_json(found):
            self._explain(protocol, start, shape)
        return found

    def write(self, name: str, kind: int, seqid: int, content: Any, shape: Shape) -> bytes:
        """See `Codec`."""
        buffer = TMemoryBuffer()
        self.protocol(buffer).writeMessageBegin(name, kind, seqid)
        written: bytes = buffer.getvalue()
        return written + self.encode(content, [shape.make, _spec(shape)])

    def _explain(self, protocol: Any, start: int, shape: Shape) -> None:
        """Reads once more, with strings as bytes and nothing required, and raises Unreadable for
        the first thing that is wrong; returns if nothing is.
        """
        protocol.trans.cstringio_buf.seek(start)
        try:
            found = self.decode(None, protocol, [_loose(shape), _spec(shape, loose=True)])
        except Exception as error:
            raise Unreadable(f"the message can't be read: {_reason(error)}") from None
        _check_struct(found, shape)


BINARY: Final = Packed(partial(TBinaryProtocol, strictRead=True), fastbinary.decode_binary, fastbinary.encode_binary)
COMPACT: Final = Packed(TCompactProtocol, fastbinary.decode_compact, fastbinary.encode_compact)


@cache
def _spec(shape: Shape, *, loose: bool = False) -> tuple[Any, ...]:
    """The fields of `shape` as the library wants them, each at the place of its number."""
    rows = {
        field.number: (field.number, field.kind.code, field.attribute, _arguments(field.kind, loose), None)
        for field in shape.fields
    }
    return tuple(rows.get(number) for number in range(max(rows, default=-1) + 1))


@cache
def _loose(shape: Shape) -> type[Struct]:
    """The struct with nothing required."""
    return msgspec.defstruct(
        shape.name, [(field.attribute, Any, None) for field in shape.fields], frozen=True, gc=False
    )


def _arguments(kind: Kind, loose: bool) -> Any:
    if kind.code == TType.STRING:
        return "BINARY" if kind.is_bytes or loose else "UTF8"
    if kind.shape is not None:
        return [_loose(kind.shape) if loose else kind.shape.make, _spec(kind.shape, loose=loose)]
    if kind.item is None:
        return None
    item = (kind.item.code, _arguments(kind.item, loose))
    if kind.key is None:
        return (*item, False)
    return (kind.key.code, _arguments(kind.key, loose), *item, False)


def _check_struct(found: Struct, shape: Shape) -> None:
    for field in shape.fields:
        value = getattr(found, field.attribute)
        if value is not None:
            _check(value, field.kind, f"{shape.name}.{field.name}")
        elif field.is_required:
            raise Unreadable(f"{shape.name}.{field.name} is missing")


def _check(value: Any, kind: Kind, where: str) -> None:
    if kind.shape is not None:
        _check_struct(value, kind.shape)
    elif kind.key is not None and kind.item is not None:
        for key, item in value.items():
            _check(key, kind.key, where)
            _check(item, kind.item, where)
    elif kind.item is not None:
        for item in value:
            _check(item, kind.item, where)
    elif kind.code == TType.STRING and not kind.is_bytes:
        try:
            value.decode()
        except UnicodeDecodeError:
            raise Unreadable(f"{where} is not in UTF-8") from None


def _reason(error: Exception) -> str:
    return "it ends too early" if isinstance(error, EOFError) else str(error) or type(error).__name__
