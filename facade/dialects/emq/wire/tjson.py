"""The JSON protocol (TJSONProtocol): msgspec reads and writes the text, the shapes say what it
holds.

The library's own codec goes through the text letter by letter: 0.3 ms for 1 KiB, 200 times as long
as msgspec and this module, and a body of 512 KiB would stop the worker for a quarter of a second.
It does not look at types of elements and ranges of numbers either. The tests compare both. A struct
is {"number": {"type": value}}, a list ["type", size, items...], a map ["key", "item", size, {...}],
and a message [1, "name", kind, seqid, struct].
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from math import isfinite, isnan
from typing import Any, Final

import msgspec
from msgspec import Struct
from thrift.Thrift import TType

from facade.dialects.emq.wire.codec import Opened, Unreadable
from facade.dialects.emq.wire.kinds import Kind, Shape

_VERSION: Final = 1
_TAGS: Final = {
    TType.BOOL: "tf",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.STRUCT: "rec",
    TType.LIST: "lst",
    TType.MAP: "map",
}
_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_as_json = msgspec.json.Encoder().encode

_Convert = Callable[[Any], Any]


class TJson(Struct, frozen=True):
    """A Codec (see there)."""

    def open(self, body: bytes) -> Opened:
        """See `Codec`."""
        try:
            message = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unreadable(f"the message is not JSON in UTF-8: {error}") from None
        if (
            type(message) is not list
            or len(message) != 5
            or message[0] != _VERSION
            or list(map(type, message)) != _HEAD
        ):
            raise Unreadable("the message must be [1, name, kind, sequence number, struct]")
        return Opened(*message[1:])

    def read(self, opened: Opened, shape: Shape) -> Any:
        """See `Codec`."""
        return _struct_reader(shape)(opened.rest)

    def write(self, name: str, kind: int, seqid: int, content: Any, shape: Shape) -> bytes:
        """See `Codec`."""
        return _as_json([_VERSION, name, kind, seqid, _struct_writer(shape)(content)])


JSON: Final = TJson()
_HEAD: Final = [int, str, int, int, dict]


@cache
def _struct_reader(shape: Shape) -> _Convert:
    rows = {
        str(field.number): (field, _TAGS[field.kind.code], _reader(field.kind, f"{shape.name}.{field.name}"))
        for field in shape.fields
    }

    def read(tree: Any) -> Any:
        values = {}
        for number, held in _expect(dict, tree, shape.name).items():
            if (row := rows.get(number)) is not None:
                field, tag, convert = row
                if type(held) is not dict or len(held) != 1:
                    raise Unreadable(f"{shape.name}.{field.name} is no value with its type")
                if tag in held:
                    values[field.attribute] = convert(held[tag])
        for field, _, _ in rows.values():
            if field.is_required and field.attribute not in values:
                raise Unreadable(f"{shape.name}.{field.name} is missing")
        return shape.make(**values)

    return read


def _reader(kind: Kind, where: str) -> _Convert:
    """What turns the JSON of a value into the value, and raises Unreadable."""
    if kind.shape is not None:
        return _struct_reader(kind.shape)
    if kind.key is not None and kind.item is not None:
        return _map_reader(kind.key, kind.item, where)
    if kind.item is not None:
        return _list_reader(kind.item, where)
    scalar = _bytes if kind.is_bytes else _SCALARS[kind.code]
    return lambda value: scalar(value, where)


def _list_reader(item: Kind, where: str) -> _Convert:
    tag, convert = _TAGS[item.code], _reader(item, where)

    def read(tree: Any) -> list[Any]:
        held = _expect(list, tree, where)
        if len(held) < 2 or type(held[1]) is not int or held[1] != len(held) - 2:
            raise Unreadable(f"{where} is no list of the size that it says")
        if held[0] != tag and len(held) > 2:
            raise Unreadable(f"{where} has elements of another type than {tag}")
        return [convert(value) for value in held[2:]]

    return read


def _map_reader(key: Kind, item: Kind, where: str) -> _Convert:
    tags, convert = [_TAGS[key.code], _TAGS[item.code]], _reader(item, where)
    of_key = _reader(key, where)
    is_text = key.code == TType.STRING

    def read(tree: Any) -> dict[Any, Any]:
        held = _expect(list, tree, where)
        if len(held) != 4 or type(held[2]) is not int or type(held[3]) is not dict or held[2] != len(held[3]):
            raise Unreadable(f"{where} is no map of the size that it says")
        if held[:2] != tags and held[3]:
            raise Unreadable(f"{where} has keys or elements of another type than {' and '.join(tags)}")
        return {of_key(name if is_text else _number(name, where)): convert(value) for name, value in held[3].items()}

    return read


def _expect(kind: type, value: Any, where: str) -> Any:
    if type(value) is not kind:
        raise Unreadable(f"{where} has a value of another type than it says")
    return value


def _string(value: Any, where: str) -> Any:
    return value if type(value) is str else _expect(str, value, where)


def _bool(value: Any, where: str) -> bool:
    return bool(_expect(int, value, where))


def _i32(value: Any, where: str) -> Any:
    return value if type(value) is int and -(1 << 31) <= value < 1 << 31 else _no_number(where)


def _i64(value: Any, where: str) -> Any:
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else _no_number(where)


def _no_number(where: str) -> None:
    raise Unreadable(f"{where} is no number of its type")


def _number(name: str, where: str) -> Any:
    """The number that the key of a map spells."""
    try:
        return msgspec.json.decode(name)
    except msgspec.DecodeError:
        raise Unreadable(f"{where} has a key that is no number") from None


def _double(value: Any, where: str) -> Any:
    if type(value) is str and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return float(value) if type(value) in (float, int) else _no_number(where)


def _bytes(value: Any, where: str) -> bytes:
    text: str = _expect(str, value, where)
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)  # some clients leave the padding out
    except ValueError:
        raise Unreadable(f"{where} is not in Base64") from None


_SCALARS: Final[dict[int, Callable[[Any, str], Any]]] = {
    TType.BOOL: _bool,
    TType.I32: _i32,
    TType.I64: _i64,
    TType.DOUBLE: _double,
    TType.STRING: _string,
}


@cache
def _struct_writer(shape: Shape) -> _Convert:
    rows = [(str(field.number), field.attribute, _TAGS[field.kind.code], _writer(field.kind)) for field in shape.fields]

    def write(content: Any) -> dict[str, Any]:
        tree = {}
        for number, attribute, tag, convert in rows:
            if (value := getattr(content, attribute)) is not None:
                tree[number] = {tag: convert(value)}
        return tree

    return write


def _writer(kind: Kind) -> _Convert:
    """What turns a value into its JSON."""
    if kind.shape is not None:
        return _struct_writer(kind.shape)
    if kind.item is not None:
        return _list_writer(kind.item) if kind.key is None else _map_writer(kind.key, kind.item)
    if kind.is_bytes:
        return lambda value: b64encode(value).decode("ascii")
    if kind.code == TType.DOUBLE:
        return _number_or_name
    return int if kind.code == TType.BOOL else lambda value: value


def _list_writer(item: Kind) -> _Convert:
    of_item, tag = _writer(item), _TAGS[item.code]
    return lambda value: [tag, len(value), *map(of_item, value)]


def _map_writer(key: Kind, item: Kind) -> _Convert:
    of_key, of_item, tags = _writer(key), _writer(item), (_TAGS[key.code], _TAGS[item.code])
    return lambda value: [*tags, len(value), {of_key(name): of_item(held) for name, held in value.items()}]


def _number_or_name(value: float) -> float | str:
    return value if isfinite(value) else "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
