"""The fields of a JSON Schema as rows for people: `messages[].body`, what it may be, what it is
for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_Schemas = Mapping[str, Mapping[str, Any]]
_DEEPEST = 6


class Row(NamedTuple):
    """A field: `form` says type, range and words; `about` what it is for."""

    name: str
    form: str
    needed: bool
    about: str


def rows_of(schema: Mapping[str, Any], schemas: _Schemas) -> list[Row]:
    """The fields of a body, those of what is in them behind them."""
    return list(_fields("", _resolved(schema, schemas), schemas, 0))


def about_of(schema: Mapping[str, Any], schemas: _Schemas) -> str:
    """What a value is for: its own description, else that of what it may be."""
    own = schema.get("description")
    if own:
        return str(own)
    if "$ref" in schema:
        return about_of(_target(schema, schemas), schemas)
    return next((about for part in schema.get("anyOf", ()) if (about := about_of(part, schemas))), "")


def _target(schema: Mapping[str, Any], schemas: _Schemas) -> Mapping[str, Any]:
    return schemas[schema["$ref"].rpartition("/")[2]]


def _resolved(schema: Mapping[str, Any], schemas: _Schemas) -> Mapping[str, Any]:
    """What a value is, if it is not null: of several the one with fields."""
    if "$ref" in schema:
        return _resolved(_target(schema, schemas), schemas)
    parts = [_resolved(part, schemas) for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return next((part for part in parts if part.get("type") == "object"), parts[0]) if parts else schema


def _fields(prefix: str, schema: Mapping[str, Any], schemas: _Schemas, depth: int) -> Iterator[Row]:
    """Of an object its properties; of a list or a map those of what is in it."""
    if depth > _DEEPEST:
        return
    needed = schema.get("required", ())
    for name, given in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield Row(path, form_of(given, schemas), name in needed, about_of(given, schemas))
        yield from _fields(path, _resolved(given, schemas), schemas, depth + 1)
    for part, mark in (("items", "[]"), ("additionalProperties", ".*")):
        held = schema.get(part)
        if isinstance(held, Mapping):
            yield from _fields(prefix + mark, _resolved(held, schemas), schemas, depth + 1)


def form_of(schema: Mapping[str, Any], schemas: _Schemas) -> str:
    """A value in a few words: `integer 1 to 64`, `string: queue, group`, `list of 1 to 100`."""
    if "$ref" in schema:
        return form_of(_target(schema, schemas), schemas)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(form_of(part, schemas) for part in schema["anyOf"]))
    kind = {"array": "list"}.get(schema.get("type", "any"), schema.get("type", "any"))
    if "enum" in schema:
        return f"string: {', '.join(str(word) or '(empty)' for word in schema['enum'])}"
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    """How much, how many, how long; empty = it has no bounds."""
    if schema.get("contentEncoding") == "base64":
        return " (base64)"
    for few, most, of, unit in (("minimum", "maximum", "", ""), ("minItems", "maxItems", "of ", ""), *_LENGTH):
        low, high = (
            bound if bound is None or abs(bound) < 2**53 else None for bound in (schema.get(few), schema.get(most))
        )
        if high is not None:
            return f" {of}{f'up to {high}' if low is None else f'{low} to {high}'}{unit}"
        if low is not None:
            return f" {of}from {low}{unit}"
    return ""


_LENGTH = (("minLength", "maxLength", "of ", " characters"),)
