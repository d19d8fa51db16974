"""Units of the native dialect: seconds outside, milliseconds inside; and the words of shapes that several bodies share.

Neighbours: `shapes` uses the types, `translate` the conversions. This module must not know the engine's ranges: here a
value has a form, whether it's allowed is for the engine to say.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta

from engine.errors import EngineError, InvalidValue
from facade.operation import PathRule

_END = r"$(?!\n)"  # `$` alone also matches before a last newline
NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}" + _END
ATTRIBUTE_NAME_PATTERN = r"^[!-~]{1,256}" + _END
_TYPE = r"(?:[sS][tT][rR][iI][nN][gG]|[nN][uU][mM][bB][eE][rR]|[bB][iI][nN][aA][rR][yY])(?:\.[A-Za-z0-9.]{1,200})?"
ATTRIBUTE_TYPE_PATTERN = "^" + _TYPE + _END
CONDITION_TYPE_PATTERN = "^(?:[eE][mM][pP][tT][yY]|" + _TYPE + ")" + _END

# JSON numbers above 2^53 are no longer exact in most clients, so none is taken.
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Millis = Annotated[int, Meta(ge=-(2**53), le=2**53, description="Milliseconds since 1970 (UTC).")]
Seconds = Annotated[float, Meta(ge=0, le=1e9, description="Seconds; fractions down to 0.001.")]
Name = Annotated[str, Meta(pattern=NAME_PATTERN, description="1 to 80 letters, digits, - _ . (neither - nor . first).")]
HandleText = Annotated[str, Meta(min_length=1, max_length=1024, description="The handle of a delivery, as receive gave it.")]

NAME_ABOUT = "1 to 80 letters, digits, - _ . (neither - nor . first)"
QUEUE_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "orders")
TAG_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "billing")
MESSAGE_RULE = PathRule(re.compile(r"[!-~]{1,1024}"), "a message id or a handle", "5f1c0f8e-9a3b-8c10-8000-00000000012a")
TASK_RULE = PathRule(re.compile(r"[A-Za-z0-9_.-]{1,128}"), "a task id", "6f2b7c1e")
KEY_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "billing-service")

# What the engine calls by milliseconds, the dialect calls by seconds.
_MS_FIELD = re.compile(r"\b(delay|lease|retention|receive_wait|wait)_ms\b")
_PARAMETERS = {"from_ms": "from", "to_ms": "to"}


def to_ms(seconds: float | None) -> int | None:
    """Whole milliseconds; None stays None."""
    return None if seconds is None else round(seconds * 1000)


def to_seconds(ms: int) -> float:
    """Seconds; a whole number of them is an int, so that JSON says 30 and not 30.0."""
    return ms // 1000 if ms % 1000 == 0 else ms / 1000


def _in_seconds(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return to_seconds(value)
    if isinstance(value, float):
        return value / 1000
    if isinstance(value, list | tuple):
        return [_in_seconds(part) for part in value]
    return value


def native_error(error: EngineError) -> EngineError:
    """`error` in the words of this dialect: an InvalidValue of a `..._ms` field speaks of seconds. Others stay as they are."""
    field = error.field
    if not isinstance(error, InvalidValue) or field is None:
        return error
    name = _PARAMETERS.get(field, _MS_FIELD.sub(r"\1_seconds", field))
    if name == field:
        return error
    if name in _PARAMETERS.values():
        return type(error)(error.detail.replace(field, name), field=name, limit=error.limit, given=error.given)
    limit, given = _in_seconds(error.limit), _in_seconds(error.given)
    about = " to ".join(str(part) for part in limit) if isinstance(limit, list) else limit
    allowed = f" must be {about}" if about is not None else " is out of range"
    return type(error)(f"{name}{allowed}, given {given}.", field=name, limit=limit, given=given)
