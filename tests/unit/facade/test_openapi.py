"""The OpenAPI document: valid, complete, and its examples are what the app takes."""

from __future__ import annotations

import re
from typing import Any

import httpx
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from facade.dialects.native.operations import OPERATIONS as NATIVE
from facade.dialects.native.wire.shapes import Body
from facade.http import health
from facade.http.operation import Operation
from facade.http.problem import CODES
from facade.http.schema_registry import Registry
from tests.unit.facade.double import RecordingEngine

TABLE = (*NATIVE, *health.operations("python", lambda: "ok"), *Registry("lw").operations())
PROMISED = """
POST /v1/queues, GET /v1/queues, GET /v1/queues/{q}, PATCH /v1/queues/{q}, DELETE /v1/queues/{q},
POST /v1/queues/{q}/purge, POST /v1/queues/{q}/pause, POST /v1/queues/{q}/resume,
POST /v1/queues/{q}/tags/{t}/pause, POST /v1/queues/{q}/tags/{t}/resume, POST /v1/queues/{q}/tags/{t}/seek,
POST /v1/queues/{q}/copy, GET /v1/queues/{q}/redrive-policy, PUT /v1/queues/{q}/redrive-policy,
DELETE /v1/queues/{q}/redrive-policy,
POST /v1/queues/{q}/tags, GET /v1/queues/{q}/tags, DELETE /v1/queues/{q}/tags/{t}, POST /v1/queues/{q}/messages,
POST /v1/queues/{q}/receive, POST /v1/queues/{q}/ack, POST /v1/queues/{q}/extend, POST /v1/queues/{q}/release,
POST /v1/queues/{q}/kill, GET /v1/queues/{q}/messages/{id}, GET /v1/queues/{q}/messages,
DELETE /v1/queues/{q}/messages/{id},
GET /v1/definitions, PUT /v1/definitions,
POST /v1/queues/{q}/redrive, GET /v1/tasks/{id}, DELETE /v1/tasks/{id}, GET /live, GET /ready, GET /metrics,
GET /subjects,
GET /schemas/ids/{id}
"""


@pytest.fixture
async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def operations_in(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By "METHOD /path"."""
    return {
        f"{m.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for m, operation in methods.items()
    }


def anonymous(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def validator_of(document: dict[str, Any], schema: Any) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})


async def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert [error.message for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []


async def test_the_document_has_every_promised_operation(document: dict[str, Any]) -> None:
    found = {anonymous(name) for name in operations_in(document)}

    assert {anonymous(name.strip()) for name in PROMISED.split(",")} <= found


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = msgspec.json.encode(document).decode()

    names = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert names <= set(document["components"]["schemas"])
    assert "(?!" not in text  # Python's guard of a last newline, which JSON Schema need not know


async def test_every_operation_has_examples_that_fit_their_schemas(document: dict[str, Any]) -> None:
    for name, operation in operations_in(document).items():
        contents = list(operation.get("requestBody", {}).get("content", {}).values())
        contents += [
            media for response in operation["responses"].values() for media in response.get("content", {}).values()
        ]
        for media in contents:
            examples = (
                [media["example"]] if "example" in media else [one["value"] for one in media["examples"].values()]
            )
            assert examples, name
            for example in examples:
                assert example is not None, name
                validator_of(document, media["schema"]).validate(example)


async def test_every_operation_tells_its_problems(document: dict[str, Any]) -> None:
    for name, operation in operations_in(document).items():
        responses = operation["responses"]
        problems = {
            status: r
            for status, r in responses.items()
            if int(status) >= 400 and "examples" in next(iter(r["content"].values()))
        }
        assert "500" in problems, name
        for status, response in problems.items():
            media_type, media = next(iter(response["content"].items()))
            assert "problem+json" in media_type or "schemaregistry" in media_type, name
            assert all(CODES[code].status == int(status) for code in media["examples"]), name
        if operation["security"]:
            assert {"401", "403", "503"} <= set(problems), name
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= set(problems), name


async def test_hot_verbs_have_complete_bodies(document: dict[str, Any]) -> None:
    hot = [operation for operation in NATIVE if operation.hot]

    assert {operation.name for operation in hot} == {"send", "receive", "ack", "extend", "release", "kill"}
    for operation in hot:
        described = document["paths"][operation.path]["post"]
        reference = described["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        shape = document["components"]["schemas"][reference.rpartition("/")[2]]
        assert set(shape["properties"]) == {f.encode_name for f in msgspec.structs.fields(operation.body)}
        assert shape["additionalProperties"] is False


@pytest.mark.parametrize("operation", [o for o in TABLE if o.example.reply is not None], ids=lambda o: o.name)
def test_the_example_of_a_reply_is_a_reply(operation: Operation) -> None:
    for shape in operation.replies.values():
        decoded = msgspec.convert(operation.example.reply, shape)
        shown = set(operation.example.reply) if isinstance(operation.example.reply, dict) else set()
        known = {f.encode_name for f in msgspec.structs.fields(shape)} if isinstance(decoded, msgspec.Struct) else set()
        assert shown <= known


@pytest.mark.parametrize("operation", [o for o in NATIVE if o.body is not None], ids=lambda o: o.name)
async def test_the_example_of_a_request_reaches_the_engine(
    client: httpx.AsyncClient, engine: RecordingEngine, operation: Operation
) -> None:
    assert issubclass(operation.body, Body)
    path = operation.path
    for name, rule in operation.rules.items():
        path = path.replace(f"{{{name}}}", rule.example)
    engine.answers = {"create_queue": (None, True), "create_tag": (None, True), "create_key": ("k", "s")}

    await client.request(operation.method, path, json=operation.example.request)

    # What is done to a tag is done by the verb that does it to a queue.
    assert [call[0] for call in engine.calls] == [
        operation.name.removesuffix("_tag") if operation.name in ("grant_tag", "pause_tag") else operation.name
    ]


def test_every_request_struct_refuses_unknown_fields() -> None:
    def walk(root: type[Body]) -> list[type[Body]]:
        return [root, *(found for child in root.__subclasses__() for found in walk(child))]

    assert all(shape.__struct_config__.forbid_unknown_fields for shape in walk(Body))


async def test_the_page_for_people_needs_no_network_and_explains_every_code(client: httpx.AsyncClient) -> None:
    answer = await client.get("/docs")

    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"<script|<link|src=|url\(|href='?https?://", answer.text)
    assert all(f"id='{code}'" in answer.text for code in CODES)
    assert all(f"id='{operation.name}'" in answer.text for operation in TABLE)
