"""Numbers, times and texts as people read them; the filters of the templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

_STEPS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_CUT: Final = 200


def count(value: float | None) -> str:
    """A number with commas; None = a dash."""
    if value is None:
        return "-"
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"


def span(seconds: float | None) -> str:
    """Seconds by the two largest units that they have."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return "0 s" if seconds <= 0 else f"{seconds:g} s"
    left, parts = int(seconds), []
    for size, unit in _STEPS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])


def age(at_ms: int | None, now_ms: int) -> str:
    """For how long something has been there; a dash = there is nothing."""
    return "-" if not at_ms else span(max(0, now_ms - at_ms) // 1000)


def when(at_ms: int | None) -> str:
    """A time in UTC, to a second; a dash = there is none."""
    if not at_ms:
        return "-"
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return f"{at_ms} ms"


def clock(at_ms: int | None) -> str:
    """The time of a day in UTC, to a second."""
    return when(at_ms)[-8:] if at_ms else "-"


def word(name: str) -> str:
    """A word of the API as people write it."""
    return name.replace("_", " ")


def body(message: dict[str, Any]) -> str:
    """The body of a message: its text, or its bytes in base64."""
    found = message.get("body")
    return str(message.get("body_base64", "") if found is None else found)


def cut(text: str, most: int = _CUT) -> str:
    """The first letters of a text."""
    return text if len(text) <= most else text[:most] + " ..."


def moment(text: str) -> int | None:
    """What an input of a time says, in UTC, as epoch ms; None = nothing. Raises ValueError."""
    if not text:
        return None
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


FILTERS: Final = {
    "count": count,
    "when": when,
    "clock": clock,
    "word": word,
    "body": body,
    "cut": cut,
}
