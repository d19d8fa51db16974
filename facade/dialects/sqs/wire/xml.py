"""The query protocol's replies: the same reply structs that JSON is made of, as XML."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

from msgspec import Struct

from facade.dialects.sqs.wire.elements import element, pair
from facade.dialects.sqs.wire.replies import Output

_NAMESPACE: Final = "http://queue.amazonaws.com/doc/2012-11-05/"
_HEAD: Final = '<?xml version="1.0"?>'
# What XML 1.0 can't hold, escaped or not. A carriage return would be read as a line feed.
_ILLEGAL: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CARRIAGE_RETURN: Final = {"\r": "&#13;"}


def reply(action: str, content: Struct, request_id: str) -> bytes:
    """The answer of `action`; one that says only that it is done has no result element."""
    result = "" if type(content) is Output else f"<{action}Result>{''.join(_members(content, action))}</{action}Result>"
    tail = f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
    return f'{_HEAD}<{action}Response xmlns="{_NAMESPACE}">{result}{tail}</{action}Response>'.encode()


def error(kind: str, code: str, message: str, request_id: str) -> bytes:
    """A refusal; `kind` is Sender or Receiver."""
    parts = f"<Type>{kind}</Type><Code>{_text(code)}</Code><Message>{_text(message)}</Message><Detail/>"
    return (
        f'{_HEAD}<ErrorResponse xmlns="{_NAMESPACE}">'
        f"<Error>{parts}</Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    ).encode()


def _text(value: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", value), _CARRIAGE_RETURN)


def _members(content: Struct, action: str) -> Iterator[str]:
    for field, member in zip(content.__struct_fields__, content.__struct_encode_fields__, strict=True):
        value = getattr(content, field)
        if isinstance(value, list):
            name = element(member, action)
            yield from (_element(name, one, action) for one in value)
        elif isinstance(value, Mapping):
            name = element(member, action)
            key, held = pair(name)
            for one, of_it in value.items():
                yield f"<{name}>{_element(key, one, action)}{_element(held, of_it, action)}</{name}>"
        elif value is not None:
            yield _element(member, value, action)


def _element(name: str, value: Any, action: str) -> str:
    if isinstance(value, Struct):
        inside = "".join(_members(value, action))
    elif isinstance(value, bytes):
        inside = b64encode(value).decode("ascii")
    elif isinstance(value, bool):
        inside = "true" if value else "false"
    else:
        inside = _text(str(value))
    return f"<{name}>{inside}</{name}>"
