"""Bad paths, methods, media types and lengths, and failures of our own: problem details too, and
nothing else is told.
"""

from __future__ import annotations

import httpx
import pytest
from starlette.types import ASGIApp, Message

from facade.http.bounds.intake import BODY_BYTES
from tests.unit.facade.double import RecordingEngine
from tests.unit.facade.problems import problem_in

ORDERS = "/v1/queues/orders"
SEND, ACK, RECEIVE = f"{ORDERS}/messages", f"{ORDERS}/ack", f"{ORDERS}/receive"


@pytest.mark.parametrize("name", ["-a", ".a", "a" * 151, "a%20b", "%ff", "%00", "a%0A", "caf%C3%A9", "a:b"])
@pytest.mark.parametrize("verb", ["receive", "purge"])
async def test_a_bad_name_in_the_path_is_refused(
    client: httpx.AsyncClient, engine: RecordingEngine, name: str, verb: str
) -> None:
    answer = await client.post(f"/v1/queues/{name}/{verb}")

    found = problem_in(answer)
    assert (answer.status_code, found["code"], found["field"], engine.calls) == (400, "invalid_value", "queue", [])


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/queues/",
        "/v2/queues",
        "/v1/queues//receive",
        "/v1/queues/a/receive/",
        "/v1/queues/a/b/receive",
        "/v1/%ff",
    ],
)
async def test_an_unknown_path_is_a_problem_too(client: httpx.AsyncClient, path: str) -> None:
    found = problem_in(await client.post(path))

    assert (found["status"], found["code"], found["field"]) == (404, "path_not_found", "path")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/", "GET"),
        ("PUT", "/v1/queues", "GET, POST"),
        ("GET", RECEIVE, "POST"),
        ("PUT", SEND, "GET, POST"),
        ("POST", ORDERS, "DELETE, GET, PATCH"),
        ("OPTIONS", "/v1/queues", "GET, POST"),
        ("BREW", "/openapi.json", "GET"),
    ],
)
async def test_a_wrong_method_is_told_all_that_are_allowed(
    client: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await client.request(method, path)

    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert problem_in(answer)["limit"] == allowed


async def test_a_head_is_refused_without_a_body(client: httpx.AsyncClient) -> None:
    answer = await client.head("/live")

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": ";;;"},
    ],
)
async def test_a_body_that_is_not_said_to_be_json_is_refused(
    client: httpx.AsyncClient, engine: RecordingEngine, headers: dict[str, str]
) -> None:
    answer = await client.post(ACK, content=b'{"handles": ["a"]}', headers=headers)

    assert (problem_in(answer)["status"], engine.calls) == (415, [])


@pytest.mark.parametrize(
    "media_type",
    [
        "application/x-www-form-urlencoded",
        "",
        "application/json",
        "Application/JSON; Charset=UTF-8",
        'application/json;charset="utf-8"',
    ],
)
async def test_a_body_in_json_is_taken_however_that_is_spelt(
    client: httpx.AsyncClient, engine: RecordingEngine, media_type: str
) -> None:
    engine.answers["ack"] = []

    answer = await client.post(ACK, content=b'{"handles": ["a"]}', headers={"content-type": media_type})

    assert answer.status_code == 200


async def test_a_body_over_the_bound_is_refused_unread_when_its_length_is_stated(client: httpx.AsyncClient) -> None:
    answer = await client.post(SEND, content=b"x", headers={"content-length": str(BODY_BYTES + 1)})

    assert (answer.status_code, problem_in(answer)["limit"]) == (413, BODY_BYTES)


async def test_a_body_over_the_bound_is_refused_as_soon_as_it_is_when_streamed(
    app: ASGIApp, engine: RecordingEngine
) -> None:
    chunk = b"x" * 1_000_000
    taken, sent = 0, list[Message]()

    async def receive() -> Message:
        nonlocal taken
        taken += len(chunk)
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": SEND, "headers": [], "query_string": b""}
    await app(scope, receive, send)

    assert (sent[0]["status"], engine.calls) == (413, [])
    assert taken <= BODY_BYTES + len(chunk)


async def test_a_failure_nobody_foresaw_is_logged_and_tells_the_client_nothing(
    client: httpx.AsyncClient, engine: RecordingEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.error = RuntimeError("secret of the house")

    hot, cold = await client.post(RECEIVE), await client.get(ORDERS)

    for answer in (hot, cold):
        assert problem_in(answer)["code"] == "internal"
        assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert "secret of the house" in caplog.text


@pytest.mark.parametrize(("path", "body"), [(SEND, b'{"messages": [{"body": "x"}]}'), ("/v1/queues/orders/purge", b"")])
async def test_a_page_of_another_site_changes_nothing(
    client: httpx.AsyncClient, engine: RecordingEngine, path: str, body: bytes
) -> None:
    headers = {"sec-fetch-site": "cross-site", "content-type": "application/json"}

    answer = await client.post(path, content=body, headers=headers)

    assert (answer.status_code, problem_in(answer)["code"], engine.calls) == (403, "cross_site", [])
