"""The registry's read side: its API, and a stock Avro deserialiser against it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp

from engine.errors import NotAuthenticated
from schemas import registry, wire
from schemas.records import Attribute, Message
from tests.unit.facade.double import RecordingEngine

TOPIC = "lw.q.orders"


async def test_subjects_are_the_schemas_and_the_callers_queues(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.answers["list_queues"] = (["orders"], None)

    answer = await client.get("/subjects?deleted=false")

    assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert answer.json() == [*registry.subjects(), "lw.q.orders-value"]


@pytest.mark.parametrize("subject", ["message", "lw.q.orders-value"])
@pytest.mark.parametrize("version", ["1", "latest", "-1"])
async def test_a_version_has_the_id_and_text_of_its_schema(
    client: httpx.AsyncClient, engine: RecordingEngine, subject: str, version: str
) -> None:
    engine.answers["list_queues"] = (["orders"], None)

    versions = await client.get(f"/subjects/{subject}/versions")
    answer = await client.get(f"/subjects/{subject}/versions/{version}")

    assert versions.json() == registry.versions("message")
    newest = registry.versions("message")[-1] if version != "1" else 1
    found = registry.version_id("message", newest)
    assert answer.json() == {"subject": subject, "version": newest, "id": found, "schema": registry.schema_text(found)}


async def test_each_id_has_its_schema_whoever_asks(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.refuse = NotAuthenticated()

    for schema_id in registry.schema_ids():
        text = (await client.get(f"/schemas/ids/{schema_id}?subject=x&fetchMaxId=false")).json()["schema"]
        assert json.loads(text) == json.loads(registry.schema_text(schema_id))
    assert (await client.get("/schemas/types")).json() == ["AVRO"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/subjects/none/versions", 404, 40401),
        ("/subjects/lw.q.other-value/versions/1", 404, 40401),
        ("/subjects/lw.q.-value/versions/1", 404, 40401),
        ("/subjects/message/versions/99", 404, 40402),
        ("/subjects/message/versions/0", 422, 42202),
        ("/subjects/message/versions/x", 422, 42202),
        ("/subjects/message/versions/%C2%B2", 422, 42202),
        ("/schemas/ids/999", 404, 40403),
        ("/schemas/ids/99999999999999999999", 404, 40403),
        ("/schemas/ids/-1", 404, 40403),
        ("/schemas/ids/x", 404, 40403),
    ],
)
async def test_what_is_not_there_is_told_in_the_registrys_form(
    client: httpx.AsyncClient, engine: RecordingEngine, path: str, status: int, code: int
) -> None:
    engine.answers["list_queues"] = (["orders"], None)

    answer = await client.get(path)

    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert answer.json()["message"]


async def test_a_caller_without_rights_is_told_in_the_registrys_form(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.refuse = NotAuthenticated()

    answer = await client.get("/subjects")

    assert (answer.status_code, answer.json()["error_code"], "www-authenticate" in answer.headers) == (401, 401, True)


@pytest.fixture
async def endpoint(app: ASGIApp) -> AsyncIterator[str]:
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    server.should_exit = True
    await serving
    bound.close()


async def test_a_stock_deserialiser_reads_what_we_write(endpoint: str, engine: RecordingEngine) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    engine.answers["list_queues"] = (["orders"], None)
    value = wire.encode(Message(b"\x00body", {"kind": Attribute("string", b"retail")}, delay_ms=250))

    def read() -> tuple[object, int | None]:
        with SchemaRegistryClient({"url": endpoint}) as client:
            found = AvroDeserializer(client)(value, SerializationContext(TOPIC, MessageField.VALUE))
            return found, client.get_latest_version(f"{TOPIC}-value").schema_id

    found, latest = await asyncio.to_thread(read)

    assert isinstance(found, dict)
    assert (found["body"], found["attributes"], found["delay_ms"]) == (
        b"\x00body",
        {"kind": {"type": "string", "value": b"retail"}},
        250,
    )
    assert latest == registry.schema_id("message")
