"""What a page of another origin makes a browser send, at every route of every dialect that changes
something: it is refused, and nothing is asked of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import pytest

from facade.dialects.emq.wire.services import SERVICES
from facade.dialects.native.operations import OPERATIONS
from facade.dialects.sqs.actions import ACTIONS, READS
from tests.unit.facade.double import RecordingEngine

PLAIN, FORM = {"content-type": "text/plain;charset=UTF-8"}, {"content-type": "application/x-www-form-urlencoded"}
CROSS = {"sec-fetch-site": "cross-site"}
# What browsers say of themselves, by who asks.
FOREIGN: dict[str, Mapping[str, str]] = {
    "fetch of another site": {**CROSS, "origin": "http://evil.example", "sec-fetch-mode": "no-cors"},
    "form of another site": {
        **CROSS,
        "origin": "http://evil.example",
        "sec-fetch-mode": "navigate",
        "sec-fetch-user": "?1",
    },
    "another port": {"sec-fetch-site": "same-site", "origin": "http://leaseway.localhost:3000"},
    "sandboxed": {**CROSS, "origin": "null"},
    "image": {**CROSS, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    "image of another port": {"sec-fetch-site": "same-site", "sec-fetch-dest": "image"},
    "a later word": {"sec-fetch-site": "something-new"},
    "older browser": {"origin": "http://evil.example"},
    "older browser, sandboxed": {"origin": "null"},
    "older browser, another port": {"origin": "http://leaseway.localhost:3000"},
    "older browser, longer name": {"origin": "http://leaseway.localhost.evil.example"},
    "older browser, no origin": {"origin": ""},
}
# Of a GET, such as an image's, an older browser does not say where it comes from.
SILENT: dict[str, Mapping[str, str]] = {
    "image, older browser": {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0"},
    "with what the browser keeps": {"user-agent": "mozilla/4.0 (compatible)", "authorization": "Basic YTpi"},
    "another browser": {"user-agent": "Opera/9.80 (X11; Linux x86_64) Presto/2.12"},
}
# Nobody can tell these from another client: refused where nobody proves anything, in SQS.
SILENT_CLIENTS: dict[str, Mapping[str, str]] = {"any agent": {"user-agent": "curl/8.5.0"}, "none": {}}
# No page can set these headers without a preflight, which is refused.
NOT_A_PAGE: dict[str, Mapping[str, str]] = {
    "signed for SQS": {**SILENT["image, older browser"], "authorization": "AWS4-HMAC-SHA256 Credential=a"},
    "signed for MNS": {**SILENT["image, older browser"], "authorization": "MNS a:b"},
    "of MNS": {**SILENT["image, older browser"], "x-mns-version": "2015-06-06"},
}
OWN: dict[str, Mapping[str, str]] = {
    "no browser": {},
    "page of ours": {"sec-fetch-site": "same-origin", "origin": "http://leaseway.localhost"},
    "typed": {"sec-fetch-site": "none"},
    "older browser": {"origin": "http://leaseway.localhost"},
}


class Route(NamedTuple):
    name: str
    method: str
    target: str
    body: bytes = b""
    headers: Mapping[str, str] = {}


def native() -> list[Route]:
    found = []
    for operation in OPERATIONS:
        if operation.method == "GET":
            continue
        path = operation.path
        for name, rule in operation.rules.items():
            path = path.replace(f"{{{name}}}", quote(rule.example, safe=""))
        body = msgspec.json.encode(operation.example.request) if operation.body is not None else b""
        found.append(Route(f"native {operation.name}, empty", operation.method, path))
        found.append(Route(f"native {operation.name}, text", operation.method, path, body, PLAIN))
        found.append(Route(f"native {operation.name}, form", operation.method, path, body, FORM))
        found.append(
            Route(f"native {operation.name}, JSON", operation.method, path, body, {"content-type": "application/json"})
        )
    return found


def sqs() -> list[Route]:
    found = []
    for action in ACTIONS:
        asked = f"Action={action}&QueueUrl=http://leaseway.localhost/000000000000/orders&QueueName=orders&MessageBody=x"
        found.append(Route(f"SQS {action}, GET", "GET", f"/?{asked}"))
        found.append(Route(f"SQS {action}, GET of a queue", "GET", f"/000000000000/orders?{asked}"))
        found.append(Route(f"SQS {action}, form", "POST", "/", asked.encode(), FORM))
        found.append(Route(f"SQS {action}, form of a queue", "POST", "/000000000000/orders", asked.encode(), FORM))
        target = {"x-amz-target": f"AmazonSQS.{action}", "content-type": "application/x-amz-json-1.0"}
        found.append(Route(f"SQS {action}, JSON", "POST", "/", b'{"QueueUrl": "orders"}', target))
    return found


def mns() -> list[Route]:
    message = b"<Message><MessageBody>x</MessageBody></Message>"
    rows = [
        ("PUT", "/queues/orders", b""), ("PUT", "/queues/orders?metaoverride=true", b""),
        ("GET", "/queues/orders", b""),
        ("GET", "/queues", b""), ("DELETE", "/queues/orders", b""), ("POST", "/queues/orders/messages", message),
        ("GET", "/queues/orders/messages", b""), ("GET", "/queues/orders/messages?numOfMessages=16", b""),
        ("GET", "/queues/orders/messages?peekonly=true", b""),
        ("DELETE", "/queues/orders/messages?ReceiptHandle=a", b""),
        ("PUT", "/queues/orders/messages?receiptHandle=a&visibilityTimeout=1", b""),
    ]  # fmt: skip
    return [
        Route(f"MNS {method} {target} {bool(version)}", method, target, body, version)
        for method, target, body in rows
        for version in ({}, {"x-mns-version": "2015-06-06"})
    ]


def emq() -> list[Route]:
    body = b'[1,"listQueue",1,7,{}]'
    return [
        Route(f"EMQ {path} {kind}", "POST", path, body, {"content-type": kind})
        for path in SERVICES
        for kind in ("application/x-thrift-json", "text/plain")
    ]


ROUTES = [*native(), *sqs(), *mns(), *emq()]
# Those that change something, and have no header that tells a page from another client.
SILENT_ROUTES = [
    route
    for route in ROUTES
    if route.method == "GET" and not route.headers and not any(f"Action={read}&" in route.target for read in READS)
]


async def asked(client: httpx.AsyncClient, route: Route, page: Mapping[str, str]) -> int:
    headers = {**route.headers, **page}
    return (await client.request(route.method, route.target, content=route.body, headers=headers)).status_code


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_a_page_of_another_origin_changes_nothing(
    client: httpx.AsyncClient, engine: RecordingEngine, route: Route
) -> None:
    # A route that a dialect does not know by such a head is no route of it.
    known = await asked(client, route, OWN["typed"]) not in (404, 405)
    engine.calls.clear()
    for name, page in FOREIGN.items():
        status = await asked(client, route, page)
        assert status == 403 or (not known and status in (404, 405)), name
    assert engine.calls == []


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_pages_of_ours_and_other_clients_are_answered(
    client: httpx.AsyncClient, engine: RecordingEngine, route: Route
) -> None:
    silent = (
        ("no browser",) if route in SILENT_ROUTES and route.name.startswith("SQS ") else ()
    )  # an image may be as silent
    answers = {name: await asked(client, route, page) for name, page in OWN.items() if name not in silent}
    assert 403 not in answers.values() and len(set(answers.values())) <= 2, answers


@pytest.mark.parametrize("route", SILENT_ROUTES, ids=lambda route: route.name)
async def test_a_get_that_does_not_say_whence_changes_nothing(
    client: httpx.AsyncClient, engine: RecordingEngine, route: Route
) -> None:
    for name, page in {**SILENT, **(SILENT_CLIENTS if route.name.startswith("SQS ") else {})}.items():
        assert await asked(client, route, page) == 403, name
    assert engine.calls == []
    for name, page in NOT_A_PAGE.items():
        assert await asked(client, route, page) != 403, name


def test_whatever_is_no_get_changes_something() -> None:
    assert all(operation.changes for operation in OPERATIONS if operation.method not in ("GET", "HEAD"))
