"""Units of the native dialect: seconds outside, milliseconds inside; and the words of shapes that
several bodies share.

The document shows the engine's ranges and words, from the engine's own tables; whether a value is
allowed is for the engine to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from engine.errors import DelayTooLong, EngineError, InvalidValue
from engine.rules.limits import ASKED, ATTRIBUTE_NAME, MAX_NAME, MAX_QUEUE_NAME
from facade.http.operation import PathRule

_END = r"$(?!\n)"  # `$` alone also matches before a last newline
NAME_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_NAME - 1}}}" + _END
QUEUE_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_QUEUE_NAME - 1}}}" + _END
ATTRIBUTE_NAME_PATTERN = f"^{ATTRIBUTE_NAME}" + _END
ID_PATTERN = r"^[!-~]{1,128}" + _END
_TYPE = r"(?:[sS][tT][rR][iI][nN][gG]|[nN][uU][mM][bB][eE][rR]|[bB][iI][nN][aA][rR][yY])(?:\.[A-Za-z0-9.]{1,200})?"
ATTRIBUTE_TYPE_PATTERN = "^" + _TYPE + _END
CONDITION_TYPE_PATTERN = "^(?:[eE][mM][pP][tT][yY]|" + _TYPE + ")" + _END

# In a schema: the engine's range. The document has it as minimum and maximum, instead of those that
# the decoder keeps to.
RANGE = "x-range"
# JSON numbers above 2^53 are no longer exact in most clients, so none is taken.
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Millis = Annotated[int, Meta(ge=-(2**53), le=2**53, description="Milliseconds since 1970 (UTC).")]
Moment = Annotated[int, Meta(description="Milliseconds since 1970 (UTC).")]
Seconds = Annotated[float, Meta(ge=0, le=1e9, description="Seconds; fractions down to 0.001.")]
NAME_ABOUT = f"1 to {MAX_NAME} letters, digits, - _ . (neither - nor . first)"
QUEUE_ABOUT = f"1 to {MAX_QUEUE_NAME} letters, digits, - _ . (neither - nor . first)"
Name = Annotated[str, Meta(pattern=NAME_PATTERN, description=f"{NAME_ABOUT}.")]
QueueName = Annotated[str, Meta(pattern=QUEUE_PATTERN, description=f"{QUEUE_ABOUT}.")]
HandleText = Annotated[
    str, Meta(min_length=1, max_length=1024, description="The handle of a delivery, as receive gave it.")
]

QUEUE_RULE = PathRule(re.compile(QUEUE_PATTERN), QUEUE_ABOUT, "orders")
TAG_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "billing")
MESSAGE_RULE = PathRule(
    re.compile(r"[!-~]{1,1024}"), "a message id or a handle", "5f1c0f8e-9a3b-8c10-8000-00000000012a"
)
TASK_RULE = PathRule(re.compile(r"[A-Za-z0-9_.-]{1,128}"), "a task id", "6f2b7c1e")
PRINCIPAL_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "billing")
TRANSACTION_RULE = PathRule(
    re.compile(r"[A-Za-z0-9_.-]{1,128}"), "a transaction id", "5f1c0f8e9a3b8c10800000000000012a"
)
GROUP_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "payments")
KEY_RULE = PathRule(re.compile(NAME_PATTERN), NAME_ABOUT, "billing-service")


def within(field: str, about: str, table: Mapping[str, tuple[int, int]] = ASKED) -> Meta:
    """The range that the engine has for `field`, for who reads the document; the check is the
    engine's own.
    """
    low, high = table[field]
    bounds = [to_seconds(low), to_seconds(high)] if _MS_FIELD.fullmatch(field) else [low, high]
    return Meta(description=about, extra_json_schema={RANGE: bounds})


def items(field: str, about: str) -> Meta:
    """How many the engine takes in a list; more or fewer are refused with the request's shape."""
    low, high = ASKED[field]
    return Meta(min_length=low, max_length=high, description=about)


def listed(field: str, about: str) -> Meta:
    """How many the engine takes in a list, for who reads the document; the check is the engine's
    own.
    """
    low, high = ASKED[field]
    return Meta(description=about, extra_json_schema={"minItems": low, "maxItems": high})


def length(field: str, about: str) -> Meta:
    """How many characters the engine takes, for who reads the document; the check is the engine's
    own.
    """
    low, high = ASKED[field]
    return Meta(description=about, extra_json_schema={"minLength": low, "maxLength": high})


def entries(most: int, about: str) -> Meta:
    """How many a map may have, for who reads the document; the check is the engine's own."""
    return Meta(description=about, extra_json_schema={"maxProperties": most})


def like(pattern: str, about: str) -> Meta:
    """What a text looks like, for who reads the document; the check is the engine's own."""
    return Meta(description=about, extra_json_schema={"pattern": pattern})


def one_of(words: Iterable[str], about: str) -> Meta:
    """The words that the engine knows, for who reads the document; the check is the engine's
    own.
    """
    return Meta(description=about, extra_json_schema={"enum": [str(word) for word in words]})


# What the engine calls by milliseconds, the dialect calls by seconds.
_MS_FIELD = re.compile(r"\b(max_delay|delay|lease|retention|receive_wait|wait|check_immunity|interval|grace)_ms\b")
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
    """`error` in the words of this dialect: an InvalidValue of a `..._ms` field speaks of seconds.
    Others stay as they are.
    """
    field = error.field
    if not isinstance(error, InvalidValue) or field is None:
        return error
    name = _PARAMETERS.get(field, _MS_FIELD.sub(r"\1_seconds", field))
    if isinstance(error, DelayTooLong):
        most, asked = to_seconds(error.most_ms), to_seconds(error.delay_ms)
        about = (
            f"A message of queue {error.queue!r} may be delayed for {most} s at most, its max_delay_seconds, "
            f"given {asked} s."
        )
        limit, given = (
            (error.limit, error.given) if name == field else (_in_seconds(error.limit), _in_seconds(error.given))
        )
        return InvalidValue(about, field=name, limit=limit, given=given)
    if name == field:
        return error
    if name in _PARAMETERS.values():
        return type(error)(error.detail.replace(field, name), field=name, limit=error.limit, given=error.given)
    limit, given = _in_seconds(error.limit), _in_seconds(error.given)
    about = " to ".join(str(part) for part in limit) if isinstance(limit, list) else limit
    allowed = f" must be {about}" if about is not None else " is out of range"
    return type(error)(f"{name}{allowed}, given {given}.", field=name, limit=limit, given=given)
