"""Fixtures: a service of canned answers, and a console before it, asked without a browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from facade.programs.console.app import create_app
from facade.programs.console.order import Order
from tests.unit.cli.service import Service, canned

AT = 1_795_000_000_000
ALL = [
    "get_queue", "set_queue", "delete_queue", "purge", "copy_queue", "set_redrive_policy", "create_tag", "list_tags",
    "delete_tag", "send", "peek", "query", "delete_message", "cancel", "unpark", "redrive", "list_grants", "grant",
    "add_alert", "delete_alert", "list_alerts", "get_statistics", "query_metric", "pause", "resume", "seek",
]  # fmt: skip
READER = ["get_queue", "list_tags", "list_alerts", "get_statistics"]
TAG = {
    "name": "default", "created_at_ms": AT, "start_at_ms": 0, "filter": None, "user_attributes": {}, "backlog": 7,
    "ready": 4, "delayed": 1, "leased": 2, "parked": 0, "stored": 0, "read_qps": 0, "redrive_policy": None,
}  # fmt: skip
COUNTS = {
    "name": "orders", "backlog": 1234567, "ready": 4, "delayed": 1, "leased": 2, "parked": 0, "stored": 0,
    "oldest_at_ms": AT - 3_723_000, "as_of_ms": AT,
}  # fmt: skip
EVIL = "<script>alert(1)</script>"
MESSAGE = {
    "id": "37a22984-211a-8000-8000-0000001bedf1", "state": "ready", "body": EVIL,
    "attributes": {"kind": {"type": "string", "value": EVIL}}, "sent_at_ms": AT, "receive_count": 2,
    "first_received_at_ms": AT, "next_visible_at_ms": None, "partition": 1, "offset": 9, "sender": "shop",
}  # fmt: skip


def queue(name: str = "orders", **more: Any) -> dict[str, Any]:
    """A queue as the API shows it."""
    from facade.dialects.native.wire.settings import settings_reply
    from schemas.records.settings import EffectiveSettings

    shown = {**settings_reply(EffectiveSettings(partitions=4)), "redrive_policy": None}
    return {
        "name": name, "owner": "shop", "created_at_ms": AT, "modified_at_ms": AT, **shown, "source_queues": [],
        "tags": [TAG, {**TAG, "name": "audit", "backlog": 3}], **more,
    }  # fmt: skip


@pytest.fixture(scope="session")
def canned_service() -> Iterator[Service]:
    with canned() as service:
        yield service


@pytest.fixture
def service(canned_service: Service) -> Service:
    """A service with one queue, in which everything is allowed."""
    canned_service.answers.clear()
    canned_service.asked.clear()
    canned_service.headers.clear()
    lets(canned_service, ALL, ["create_queue", "list_queues", "manage_keys", "manage_users", "list_audit"])
    canned_service.on("GET /v1/queues/orders", (200, queue()))
    canned_service.on("GET /v1/queues", (200, {"queues": ["orders"], "counts": [COUNTS], "next": None}))
    canned_service.on("GET /health", (200, {"status": "ok", "alarms": {}, "native": "on", "plane": "on"}))
    canned_service.on("GET /ready", (200, {"status": "ok", "parts": {"kafka": "ok", "redis": "ok"}}))
    canned_service.on(
        "GET /metrics", (200, b'leaseway_alarm{kind="retention_near",queue="orders"} 3.0\nleaseway_up 1\n')
    )
    return canned_service


def lets(service: Service, verbs: list[str], alone: list[str], role: str = "admin") -> None:
    """What the caller may do."""
    service.on("GET /v1/rights", (200, {"principal": "anna", "key_id": "anna-1", "role": role, "may": alone}))
    service.on("GET /v1/queues/orders/rights", (200, {"queue": "orders", "may": verbs}))


OWN = {"sec-fetch-site": "same-origin"}


class Browser:
    """A browser without scripts: it keeps cookies, and sends the token of the last page."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.text = ""

    async def get(self, path: str) -> httpx.Response:
        answer = await self.client.get(path)
        self.text = answer.text
        return answer

    @property
    def token(self) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.text)
        return found.group(1) if found else ""

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        answer = await self.client.post(
            path, data={"csrf": self.token, **fields}, headers={"sec-fetch-site": "same-origin"}
        )
        self.text = answer.text
        return answer


@pytest.fixture
async def browser(service: Service) -> AsyncIterator[Browser]:
    async with client_of(Order(service.endpoint, key="a key of sixteen letters")) as client:
        yield Browser(client)


@asynccontextmanager
async def client_of(order: Order) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a console of its own."""
    app = create_app(order)
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:9480") as client:
            yield client
    finally:
        app.close()
