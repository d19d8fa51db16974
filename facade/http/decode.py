"""Bytes of a request -> structs, or a ProblemError that names the field, the limit and what was
given.

All input goes through msgspec, bodies and query strings alike, so there is one style of errors.
msgspec says where and what was expected in a sentence; here the sentence is taken apart and the
value given is looked up.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, get_origin
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct, structs

from facade.http.problem import ProblemError

QUERY_PARAMETERS = 50
# Of a body's values: a send of 100 messages with 100 attributes each has 40,000. Each takes up to
# fifty times its bytes in memory.
MOST_VALUES = 50_000
FEW_BYTES = 65_536  # have fewer values than that
_SENTENCE = 1000  # of an error of msgspec's, which repeats the name of a field
# What the patterns of names mean, for people.
_PATTERNS = (
    (
        re.compile(r"^Expected `str` matching regex '\^\[A-Za-z0-9_\]\[A-Za-z0-9_\.-\]\{0,(\d+)\}\$'$"),
        "letters, digits, '_', '-' or '.', not beginning with '-' or '.'",
    ),
    (
        re.compile(r"^Expected `str` matching regex '\^\[!-~\\+w\]\{1,(\d+)\}\$'$"),
        "printable characters without spaces",
    ),
)
_T = TypeVar("_T")
_WHERE = re.compile(r" - at (?:`key` in )?`(?P<path>\$[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_NAMED = re.compile(r"^Object (?:contains unknown|missing required) field `(.*)`$", re.DOTALL)
_EXPECTED = re.compile(r"^Expected (?P<what>.+?)(?:, got `[^`]*`)?$", re.DOTALL)


def decode_json(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """The struct that `body` spells. Raises ProblemError."""
    check_values(body)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _refused(str(error), body) from None
    except RecursionError:
        raise ProblemError("too_deep", field="body") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not body.strip():
            raise ProblemError("missing_body", field="body") from None
        raise ProblemError(
            "malformed_json", f"The body is not JSON in UTF-8: {error}", field="body", given=body
        ) from None


def check_values(body: bytes) -> None:
    """Raises ProblemError for JSON with more values beside each other than any request has, before
    it is decoded (how deep they are is the decoder's). Takes no longer than a few copies of it:
    strings are cut out, for a message may be JSON itself.
    """
    if len(body) <= FEW_BYTES or body.count(b",") <= MOST_VALUES:
        return
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    parts = body.split(b'"', 2 * MOST_VALUES)
    if len(parts) > 2 * MOST_VALUES or sum(part.count(b",") for part in parts[::2]) > MOST_VALUES:
        raise ProblemError(
            "body_too_large", f"The body may have {MOST_VALUES} values.", field="body", limit=MOST_VALUES
        )


def decode_query(shape: type[_T], query: bytes) -> _T:
    """The struct that a query string spells. A parameter may be repeated if its field is a list.
    Raises ProblemError.
    """
    try:
        pairs = parse_qsl(
            query.decode("utf-8"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=QUERY_PARAMETERS,
        )
    except ValueError as error:  # UnicodeDecodeError is one
        raise ProblemError(
            "malformed_query", f"The query string can't be read: {error}", field="query", given=query
        ) from None
    values: dict[str, Any] = {}
    lists = _list_fields(shape)
    for name, value in pairs:
        if name in lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise ProblemError("duplicate_value", f"{name} may be given once.", field=name, given=value)
        else:
            values[name] = value
    try:
        return msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        raise _refused(str(error), None, values) from None


def _list_fields(shape: Any) -> frozenset[str]:
    if not issubclass(shape, Struct):
        return frozenset()
    return frozenset(f.encode_name for f in structs.fields(shape) if _is_list(f.type))


def _is_list(kind: Any) -> bool:
    while hasattr(kind, "__metadata__"):
        kind = kind.__origin__
    return get_origin(kind) is list


def _of_name(about: str, field: str) -> str | None:
    """What a name must be, where that is what was expected."""
    for number, (pattern, characters) in enumerate(_PATTERNS):
        if found := pattern.match(about):
            return f"{field or 'The body'} must be 1 to {int(found[1]) + (number == 0)} {characters}"
    return None


def _refused(sentence: str, body: bytes | None, values: Any = None) -> ProblemError:
    """The problem in a sentence of msgspec's, e.g. "Expected `int`, got `str` - at
    `$.messages[0].delay_seconds`".
    """
    if len(sentence) > _SENTENCE:
        return ProblemError("unknown_field", f"{sentence[:_SENTENCE]}...", field="body")
    where = _WHERE.search(sentence)
    path = where["path"] if where else "$"
    what = sentence[: where.start()] if where else sentence
    field = path[2:] if path.startswith("$.") else path[1:]
    if named := _NAMED.match(what):
        name = f"{field}.{named[1]}" if field else named[1]
        code = "unknown_field" if "unknown" in what else "missing_field"
        return ProblemError(code, f"{what}{_at(field)}.", field=name, given=_given(body, values, f"{path}.{named[1]}"))
    expected = _EXPECTED.match(what)
    # "got" tells a wrong type; without it the type was right and the value outside of what the
    # shape allows.
    code = "wrong_type" if ", got `" in what else "invalid_value"
    limit = expected["what"].replace("`", "").replace(r"$(?!\\n)", "$") if expected else None
    about = what.replace(r"$(?!\\n)", "$")
    return ProblemError(
        code,
        f"{_of_name(about, field) or about + _at(field)}.",
        field=field or "body",
        limit=limit,
        given=_given(body, values, path),
    )


def _at(field: str) -> str:
    return f" - at {field}" if field else ""


def _given(body: bytes | None, values: Any, path: str) -> Any:
    """What stands at `path`; None if that can't be told (below a key that msgspec does not name, or
    a huge number), and of a long body.
    """
    if body is not None and len(body) > FEW_BYTES:
        return None
    if body is not None:
        try:
            values = msgspec.json.decode(body)
        except (
            msgspec.MsgspecError,
            ValueError,
            OverflowError,
            RecursionError,
        ):  # refused already; this only decorates the refusal
            return None
    if "[...]" in path:
        path = path[: path.index("[...]")]
    for name, index in _STEP.findall(path):
        try:
            values = values[name] if name else values[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return values
