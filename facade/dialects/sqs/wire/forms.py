"""The query protocol's requests: a form's flat names to the same input structs that JSON bodies
become.

`MessageAttribute.1.Value.StringValue=x` is a path in a tree; which struct an action wants says how
the tree is read, so no action has a line here. A name that the struct does not have is refused:
what a client has written is never dropped in silence. `elements` names lists and maps.
"""

from __future__ import annotations

import re
import types
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from facade.dialects.sqs.wire.elements import pair, spellings
from facade.dialects.sqs.wire.errors import MALFORMED_INPUT, MALFORMED_QUERY, SqsError, invalid
from facade.dialects.sqs.wire.limits import FORM_FIELDS

_Tree: TypeAlias = "dict[str, str | _Tree]"
_Node: TypeAlias = "str | _Tree"
_Read = Callable[[str, _Node, str], Any]  # (name for errors, node, action)
_DEEPEST = 8
# What a request may name beside the members of its action: the protocol's own fields, and those of
# the signatures of versions 1, 2 and 4.
_OF_PROTOCOL = frozenset(
    (
        "Action",
        "Version",
        "AWSAccessKeyId",
        "Signature",
        "SignatureMethod",
        "SignatureVersion",
        "Timestamp",
        "Expires",
        "SecurityToken",
    )
)
_OF_SIGNATURE = "x-amz-"
# AWS's own words.
_NOT_UTF8 = "a name or a value is not UTF-8, or not escaped"
_BAD_ESCAPES = 1000
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NO_STRUCTURE = "Start of structure or map found where not expected."
_NO_LIST = "Start of list found where not expected"


def _malformed(about: str) -> SqsError:
    """The request has no form that can be read."""
    return SqsError(MALFORMED_QUERY, f"The request is not a query of SQS: {about[:200]}")


def _misplaced(about: str) -> SqsError:
    """A field stands where the action has none."""
    return SqsError(MALFORMED_INPUT, about[:300])


def parse(*texts: bytes) -> _Tree:
    """The fields of query strings and form bodies as a tree of the parts of their names. Raises
    SqsError.
    """
    tree: _Tree = {}
    for text in texts:
        if text.count(b"&") >= FORM_FIELDS:
            raise _malformed(f"it has more than {FORM_FIELDS} fields")
        if not text.isascii():
            raise _malformed(_NOT_UTF8)
        for field in text.split(b"&"):
            if field:
                name, _, value = field.partition(b"=")
                _put(tree, _unescaped(name), _unescaped(value))
    return tree


def _unescaped(text: bytes) -> str:
    """A name or a value of a form. Raises SqsError.

    The codec of Python's own escapes does it: `unquote` takes ten times as long, in a loop for
    each escape.
    """
    text = text.replace(b"+", b" ")
    if b"%" in text:
        text = _BAD_ESCAPE.sub(b"%25", text, _BAD_ESCAPES)  # a percent sign alone is one
        if _BAD_ESCAPE.search(text):
            raise _malformed(f"more than {_BAD_ESCAPES} percent signs have no two hex digits behind them")
        text = text.replace(b"\\", b"\\\\").replace(b"%", b"\\x").decode("unicode_escape").encode("latin-1")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise _malformed(_NOT_UTF8) from None


def _put(tree: _Tree, name: str, value: str) -> None:
    *parts, last = name.split(".", _DEEPEST)
    node = tree
    for part in parts:
        below = node.setdefault(part, {})
        if isinstance(below, str):
            raise _malformed(f"{name} is a value and a name of values")
        node = below
    if last in node:
        raise _malformed(f"{name} is there twice")
    node[last] = value


def struct_of(kind: Any, tree: _Tree, action: str) -> Any:
    """The input of `action` that the fields spell; what they do not name is absent. Raises
    SqsError, for a field that is none of the action's, too.
    """
    named = {
        name: node
        for name, node in tree.items()
        if name not in _OF_PROTOCOL and not name.lower().startswith(_OF_SIGNATURE)
    }
    return _struct(kind)("", named, action)


@cache
def _struct(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    members = [
        (field, member, _reader(hints[field]))
        for field, member in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    ]

    @cache
    def named(action: str) -> dict[str, tuple[str, _Read]]:
        found: dict[str, tuple[str, _Read]] = {}
        for field, member, (flat, reads) in members:
            found |= dict.fromkeys(spellings(member, action) if flat else (member,), (field, reads))
        return found

    def read(name: str, node: _Node, action: str) -> Any:
        if isinstance(node, str):
            raise _misplaced(f"{name} is a structure")
        values, known = {}, named(action)
        for spelled, below in node.items():
            whole = f"{name}.{spelled}" if name else spelled
            if spelled not in known:
                raise _misplaced(f"{whole} is no parameter of {action}")
            field, reads = known[spelled]
            if field in values:
                raise _misplaced(f"{whole} is there under two names")
            values[field] = reads(whole, below, action)
        return kind(**values)

    return read


def _reader(hint: Any) -> tuple[bool, _Read]:
    """How a value of this type is read, and whether it is a list or map, whose elements have a name
    of their own.
    """
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is list:
        return True, _list(_reader(get_args(hint)[0])[1])
    if get_origin(hint) is dict:
        return True, _map(_reader(get_args(hint)[1])[1])
    if isinstance(hint, type) and issubclass(hint, Struct):
        return False, _struct(hint)
    return False, {str: _text, int: _number, bytes: _binary}[hint]


def _text(name: str, node: _Node, action: str) -> str:
    if isinstance(node, str):
        return node
    raise _misplaced(_NO_LIST if _is_numbered(node) else _NO_STRUCTURE)


def _number(name: str, node: _Node, action: str) -> int:
    text = _text(name, node, action)
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise invalid(name, text, "Must be an integer.")
    return int(text)


def _binary(name: str, node: _Node, action: str) -> bytes:
    text = _text(name, node, action)
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise invalid(name, text, "Must be base64.") from None


def _is_numbered(node: _Tree) -> bool:
    return any(key.isascii() and key.isdigit() for key in node)


def _each(name: str, node: _Node) -> list[_Node]:
    """The nodes 1, 2, ... in that order. One alone may go without its number, and an empty list is
    spelled `name=`.
    """
    if isinstance(node, str):
        return [node] if node else []
    if not _is_numbered(node):
        return [node]
    for key in node:
        if not (key.isascii() and key.isdigit() and len(key) <= 9) or key.startswith("0"):
            raise _misplaced(f"{name}: {key} is not a valid index")
    return [node[key] for key in sorted(node, key=int)]


def _list(reads: _Read) -> _Read:
    return lambda name, node, action: [reads(name, one, action) for one in _each(name, node)]


def _map(reads: _Read) -> _Read:
    def read(name: str, node: _Node, action: str) -> dict[str, Any]:
        key, value = pair(name.rpartition(".")[2])
        found: dict[str, Any] = {}
        for one in _each(name, node):
            if isinstance(one, str) or one.keys() != {key, value}:
                raise _misplaced(f"{name} needs {key} and {value}, and nothing else, for each number")
            of = _text(name, one[key], action)
            if of in found:
                raise _misplaced(f"{name} has {of} twice")
            found[of] = reads(f"{name}.{value}", one[value], action)
        return found

    return read
