"""The OpenAPI 3.1 document, made of the operations and of the structs that also decode the
requests: it can't differ from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
from msgspec import UNSET

from facade.dialects.native.wire.units import RANGE
from facade.http.bounds.intake import BODY_BYTES
from facade.http.operation import JSON, Operation
from facade.http.problem import CODES, MEDIA_TYPE, Problem, problem

_REF = "#/components/schemas/{name}"
_EVERY = ("internal",)
_KNOWN = ("not_authenticated", "not_authorised", "log_unavailable", "store_unavailable", "rebuilding", "overloaded")
_BODY = (
    "malformed_json",
    "too_deep",
    "unknown_field",
    "missing_field",
    "wrong_type",
    "invalid_value",
    "duplicate_value",
)
_QUERY = ("malformed_query", "unknown_field", "wrong_type", "invalid_value", "duplicate_value")
_HEADERS = {
    401: {"WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}}},
    503: {"Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "integer"}}},
}
_LOCATION = {"Location": {"description": "The path of what was made.", "schema": {"type": "string"}}}
_ABOUT = (
    "A queue service over Kafka. Times are epoch milliseconds or seconds, as the names say. "
    f"Errors are problem details (RFC 9457) with a stable code. A request may have {BODY_BYTES} bytes."
)


def document_of(operations: Sequence[Operation]) -> dict[str, Any]:
    """The OpenAPI document of `operations`."""
    shapes = [shape for operation in operations for shape in _shapes(operation)]
    components = _schemas([Problem, *shapes])[1]
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Leaseway", "version": _version(), "description": _ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": group} for group in dict.fromkeys(operation.group for operation in operations)],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic", "description": "Key id and secret."}},
        },
    }


def _version() -> str:
    try:
        return version("leaseway")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"


def _shapes(operation: Operation) -> Iterable[Any]:
    if operation.body is not None:
        yield operation.body
    yield from (shape for shape in operation.replies.values() if shape is not None)
    if operation.render is not None:
        yield type(_rendered(operation, "internal"))


def _schemas(shapes: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    schemas, components = msgspec.json.schema_components(shapes, ref_template=_REF)
    return list(_ecma(schemas)), _ecma(components)


def _ecma(schema: Any) -> Any:
    """`schema` as people and programs are to read it.

    The engine's range of a number takes the place of the decoder's. In patterns of JSON Schema `$`
    is the end alone, so Python's guard goes.
    """
    if isinstance(schema, Mapping):
        low, high = schema.get(RANGE, (None, None))
        known = {"minimum": low, "maximum": high} if RANGE in schema else {}
        return {name: _ecma(value) for name, value in {**schema, **known}.items() if name != RANGE}
    if isinstance(schema, list | tuple):
        return [_ecma(value) for value in schema]
    return schema.replace(r"$(?!\n)", "$") if isinstance(schema, str) else schema


@cache
def _schema(shape: Any) -> dict[str, Any]:
    return _schemas([shape])[0][0]


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": (operation.run.__doc__ or operation.summary).strip(),
        "tags": [operation.group],
        "security": [] if operation.anonymous else [{"basic": []}, {}],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": {**_replies(operation), **_problems(operation)},
    }
    if operation.body is not None:
        content = {"schema": _schema(operation.body), "example": operation.example.request}
        described["requestBody"] = {"required": not operation.body_optional, "content": {JSON: content}}
    return described


def _path_parameters(operation: Operation) -> Iterable[dict[str, Any]]:
    for part in operation.path.split("/"):
        if not part.startswith("{"):
            continue
        name = part[1:-1]
        parameter: dict[str, Any] = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        if rule := operation.rules.get(name):
            pattern = _ecma(rule.pattern.pattern)
            parameter["schema"]["pattern"] = pattern if pattern.startswith("^") else f"^{pattern}$"
            parameter |= {"description": rule.about, "example": rule.example}
        yield parameter


def _query_parameters(operation: Operation) -> Iterable[dict[str, Any]]:
    if operation.query is None:
        return
    schema = _schemas([operation.query])[1][operation.query.__name__]
    required = schema.get("required", ())
    for name, given in schema["properties"].items():
        described = dict(given)
        parameter = {"name": name, "in": "query", "required": name in required, "schema": described}
        if about := described.pop("description", None):
            parameter["description"] = about
        yield parameter


def _replies(operation: Operation) -> dict[str, Any]:
    replies: dict[str, Any] = {}
    for status, shape in operation.replies.items():
        reply: dict[str, Any] = {"description": _sentence(shape) or operation.summary}
        if shape is not None:
            reply["content"] = {operation.media_type: {"schema": _schema(shape), "example": operation.example.reply}}
        if status in (201, 202) and operation.name not in ("create_tag", "create_key"):
            reply["headers"] = _LOCATION
        if status in _HEADERS:
            reply["headers"] = _HEADERS[status]
        replies[str(status)] = reply
    return replies


def _sentence(shape: Any) -> str:
    return (shape.__doc__ or "").strip() if isinstance(shape, type) and issubclass(shape, msgspec.Struct) else ""


def codes_of(operation: Operation) -> list[str]:
    """All problem codes that `operation` may answer."""
    codes = [*operation.codes, *_EVERY, "body_too_large", "unknown_field"]
    if not operation.anonymous:
        codes += _KNOWN
    if operation.body is not None:
        codes += [*_BODY, "unsupported_media_type", *(() if operation.body_optional else ("missing_body",))]
    if operation.method != "GET":
        codes.append("cross_site")
    if operation.query is not None:
        codes += _QUERY
    if operation.rules:
        codes.append("invalid_value")
    return list(dict.fromkeys(codes))


def _rendered(operation: Operation, code: str) -> Any:
    found = problem(code, CODES[code].title)
    return found if operation.render is None else operation.render(found).content


def _problems(operation: Operation) -> dict[str, Any]:
    """Responses by status, with an example for each code of it."""
    by_status: dict[int, list[str]] = {}
    for code in codes_of(operation):
        by_status.setdefault(CODES[code].status, []).append(code)
    responses: dict[str, Any] = {}
    media_type = MEDIA_TYPE if operation.render is None else operation.media_type
    for status, codes in sorted(by_status.items()):
        examples = {code: {"value": _example(_rendered(operation, code))} for code in codes}
        shape: Any = type(_rendered(operation, codes[0]))
        response: dict[str, Any] = {
            "description": " ".join(CODES[code].title for code in codes),
            "content": {media_type: {"schema": _schema(shape), "examples": examples}},
        }
        if status in _HEADERS:
            response["headers"] = _HEADERS[status]
        responses[str(status)] = response
    return responses


def _example(struct: Any) -> Any:
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not UNSET}
