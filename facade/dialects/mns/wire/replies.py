"""XML as it goes: names and texts in order to bytes, as the service writes it (reference/mns.md
2.3).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias, Union
from xml.sax.saxutils import escape

from facade.dialects.mns.wire.xml import NAMESPACE

_PROLOG: Final = '<?xml version="1.0" ?>\n'
# What XML 1.0 can't hold, escaped or not. A carriage return would be read as a line feed.
_ILLEGAL: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CARRIAGE_RETURN: Final = {"\r": "&#13;"}

# Name, and a text or number or the elements within; None = it is left out. An element that is empty
# breaks clients, so who has no elements leaves their parent out.
Item: TypeAlias = tuple[str, Union[str, int, "Items", None]]
Items: TypeAlias = Sequence[Item]


def legal(text: str) -> str:
    """`text` as XML can carry it: what it can't is replaced."""
    return _ILLEGAL.sub("\ufffd", text)


def is_legal(text: str) -> bool:
    """Whether XML can carry `text` as it is."""
    return _ILLEGAL.search(text) is None


def document(root: str, items: Items) -> bytes:
    """A whole reply."""
    parts = [f'{_PROLOG}<{root} xmlns="{NAMESPACE}">\n']
    _write(parts, items, "  ")
    parts.append(f"</{root}>\n")
    return "".join(parts).encode()


def _write(parts: list[str], items: Items, indent: str) -> None:
    for name, content in items:
        if isinstance(content, str | int):
            parts.append(f"{indent}<{name}>{escape(legal(str(content)), _CARRIAGE_RETURN)}</{name}>\n")
        elif content is not None:
            parts.append(f"{indent}<{name}>\n")
            _write(parts, content, indent + "  ")
            parts.append(f"{indent}</{name}>\n")
