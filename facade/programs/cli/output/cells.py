"""A value of JSON as the text of a cell in a table; the table has the values of the JSON, and no
others.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from typing import Any, Final

# What could move a terminal's cursor, or turn the order of letters around.
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
# A smaller number is no moment: 0 = never, and negative ones count from now.
_LEAST_MS: Final = 10**11
_MOST_MS: Final = 253_402_300_800_000  # the end of year 9999


def cell(name: str, value: Any) -> str:
    """The text of the field `name`: a moment in ISO 8601 (UTC), nothing for null, JSON for what
    has parts.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, int | float):
        return _number(name, value)
    if not value:
        return ""
    if isinstance(value, Sequence) and all(isinstance(part, str) and _plain(part) for part in value):
        return ", ".join(value)
    return visible(json.dumps(value, ensure_ascii=False))


def _number(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return moment(value) if name.endswith("_ms") and _LEAST_MS <= value < _MOST_MS else str(value)


def moment(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601."""
    at = datetime.datetime.fromtimestamp(ms // 1000, datetime.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def visible(text: str) -> str:
    """`text` with what a terminal would obey written as escapes; it is one line."""
    return _UNSEEN.sub(_escaped, text)


def is_hidden(text: str) -> bool:
    """Whether a terminal would obey a part of `text`."""
    return _UNSEEN.search(text) is not None


def json_visible(text: str) -> str:
    """JSON in which what a terminal would obey is written as JSON's own escapes."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    mark = found[0]
    return _SHORT.get(mark) or (f"\\x{ord(mark):02x}" if ord(mark) < 256 else f"\\u{ord(mark):04x}")


def _plain(text: str) -> bool:
    return bool(text) and "," not in text and _UNSEEN.search(text) is None and text == text.strip()
