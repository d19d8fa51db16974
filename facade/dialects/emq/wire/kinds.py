"""Thrift's types as data: what the annotations of a struct say, in the form that codecs read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from msgspec import Struct, structs
from thrift.Thrift import TType


class Width(Struct, frozen=True):
    """Marks an int of an annotation with its Thrift type."""

    code: int


I32 = Annotated[int, Width(TType.I32)]
I64 = Annotated[int, Width(TType.I64)]

_PLAIN: Final[dict[Any, int]] = {bool: TType.BOOL, float: TType.DOUBLE, str: TType.STRING, bytes: TType.STRING}
_ODD_NAMES: Final = {"message_id": "messageID", "read_qps_quota": "readQPSQuota"}


def wire_name(attribute: str) -> str:
    """The IDL's spelling of a field: queueName, messageID. It is for error messages: no protocol
    carries it.
    """
    first, *rest = attribute.split("_")
    return _ODD_NAMES.get(attribute) or first + "".join(part.capitalize() for part in rest)


class Wire(Struct, frozen=True, kw_only=True, gc=False, rename=wire_name, omit_defaults=True):
    """A Thrift struct, as a table: each line is a field with its name, type and number, and its
    default unless it is required. What is not set is None.

    An enum's value is an int, so that the numbers of a newer client survive.
    """

    # omit_defaults: `packed` looks for one letter in the JSON of what was read, so it may be short.


class Kind(Struct, frozen=True, eq=False):
    """A type: its number in Thrift, and what it is made of. Strings and bytes share a number."""

    code: int
    is_bytes: bool = False
    key: Kind | None = None
    item: Kind | None = None
    shape: Shape | None = None


class Field(Struct, frozen=True, eq=False):
    """A field: `attribute` is its name in Python, `name` that in the IDL."""

    number: int
    attribute: str
    name: str
    kind: Kind
    is_required: bool


class Shape(Struct, frozen=True, eq=False):
    """The fields of a struct, and what makes one of the values of its attributes: a TypeError says
    that a required one is missing.
    """

    name: str
    make: Callable[..., Any]
    fields: tuple[Field, ...]


@cache
def shape_of(struct: type[Wire]) -> Shape:
    """What the annotations of `struct` say, in the order of the numbers."""
    fields = sorted((_field(info) for info in structs.fields(struct)), key=lambda field: field.number)
    return Shape(struct.__name__, struct, tuple(fields))


def kind_of(annotation: Any) -> Kind:
    """The type that an annotation means. Raises KeyError for one that is none of Thrift's."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Kind(inner[1].code) if isinstance(inner[1], Width) else kind_of(inner[0])
    if origin is UnionType or origin is Union:
        return kind_of(inner[0])  # the other one is None
    if origin is list:
        return Kind(TType.LIST, item=kind_of(inner[0]))
    if origin is dict:
        return Kind(TType.MAP, key=kind_of(inner[0]), item=kind_of(inner[1]))
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return Kind(TType.STRUCT, shape=shape_of(annotation))
    return Kind(_PLAIN[annotation], is_bytes=annotation is bytes)


def _field(info: structs.FieldInfo) -> Field:
    number: int = get_args(info.type)[-1]  # the last of what the annotation carries
    return Field(number, info.name, info.encode_name, kind_of(info.type), info.required)
