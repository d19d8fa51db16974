"""A flood of wrong secrets over real sockets: it is answered with a time to wait in the words of
each dialect, and nobody else is kept out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from engine.engine import Engine
from engine.queues.callers.access import KEY_AT_ADDRESS
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY
from tests.integration.served import served

STRICT = {"auth": "required", "admin_key_id": "admin", "admin_key_secret": "secret"}
BURST = KEY_AT_ADDRESS[0]
EMQ = "Galaxy-V2 guessed:62gq8Y7m7+u2KB0rS1f/jr5KehA="
MNS = "MNS guessed:62gq8Y7m7+u2KB0rS1f/jr5KehA="


@pytest.fixture
async def strict(make_engine: MakeEngine) -> Engine:
    engine = await make_engine(**STRICT)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await engine.callers.create_key(BY, "guessed", "victim", "member")
    return engine


def basic(key: str, secret: str) -> str:
    return "Basic " + b64encode(f"{key}:{secret}".encode()).decode()


class Asker:
    """One connection from an address of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, port: int, address: str) -> AsyncIterator[Asker]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        try:
            yield cls(reader, writer)
        finally:
            writer.close()

    async def asks(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer to a POST with an empty object."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self._writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: 2\r\n\r\n{{}}".encode())
        first, *rest = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        found = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
        return int(first.split()[1]), found, await self._reader.readexactly(int(found["content-length"]))

    async def is_refused(self, **headers: str) -> bool:
        """Asks three times with a right secret. One of them may be served: while it comes another
        guess may be allowed again.
        """
        statuses = [(await self.asks("/v1/queues/q/receive", **headers))[0] for _ in range(3)]
        assert set(statuses) <= {200, 429}
        return statuses.count(429) > 1

    async def guesses(self, number: int, key: str = "guessed", **headers: str) -> Counter[int]:
        """Statuses of so many wrong secrets over the native API."""
        return Counter(
            [
                (await self.asks("/v1/queues/q/receive", authorization=basic(key, str(n)), **headers))[0]
                for n in range(number)
            ]
        )


async def test_a_flood_is_refused_and_others_are_served(strict: Engine) -> None:
    _, secret = await strict.callers.create_key(BY, "mine", "shop", "admin")
    async with (
        served(strict, **STRICT) as port,
        Asker.at(port, "127.0.0.1") as bad,
        Asker.at(port, "127.0.0.1") as good,
    ):
        flood = await bad.guesses(300)
        assert flood[429] > 280 and flood[401] >= BURST and set(flood) == {401, 429}
        status, headers, body = await bad.asks("/v1/queues/q/receive", authorization=basic("guessed", "x"))
        assert (status, json.loads(body)["code"]) == (429, "too_many_attempts")
        assert 1 <= int(headers["retry-after"]) <= 60
        for _ in range(5):  # with another key, at the same address
            assert (await good.asks("/v1/queues/q/receive", authorization=basic("mine", secret)))[0] == 200
        counts = strict.counts()
        assert counts["attempts_refused_total"] >= flood[429] and counts["wrong_secrets_total"] == flood[401]


async def test_the_owner_of_the_key_is_served_at_another_address(strict: Engine) -> None:
    _, secret = await strict.callers.create_key(BY, "shared", "shop", "admin")
    right = basic("shared", secret)
    async with (
        served(strict, **STRICT) as port,
        Asker.at(port, "127.0.0.1") as bad,
        Asker.at(port, "127.0.0.2") as good,
    ):
        await bad.guesses(100, "shared")
        assert (await good.asks("/v1/queues/q/receive", authorization=right))[0] == 200
        assert await bad.is_refused(authorization=right)


@pytest.mark.parametrize("trust", ["yes", "no"])
async def test_behind_a_proxy_its_clients_are_told_apart_if_it_is_trusted(strict: Engine, trust: str) -> None:
    _, secret = await strict.callers.create_key(BY, "shared", "shop", "admin")
    async with served(strict, **STRICT, trust_proxy=trust) as port, Asker.at(port, "127.0.0.1") as proxy:
        await proxy.guesses(100, "shared", x_forwarded_for="10.0.0.6")
        right: dict[str, Any] = {"authorization": basic("shared", secret), "x_forwarded_for": "10.0.0.6, 10.0.0.7"}
        assert await proxy.is_refused(**right) == (trust == "no")
        # What the client writes before is not believed.
        assert await proxy.is_refused(**{**right, "x_forwarded_for": "10.0.0.7, 10.0.0.6"})


async def test_each_dialect_says_it_in_its_own_words(strict: Engine) -> None:
    async with served(strict, **STRICT) as port, Asker.at(port, "127.0.0.1") as bad:
        await bad.guesses(2 * BURST)
        now = datetime.now(UTC)
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        scope = f"guessed/{stamp[:8]}/us-east-1/sqs/aws4_request"
        signed = (
            f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date;x-amz-target, Signature={'0' * 64}"
        )
        sqs = await bad.asks("/", x_amz_target="AmazonSQS.ListQueues", x_amz_date=stamp, authorization=signed)
        assert (sqs[0], json.loads(sqs[2])["__type"]) == (403, "com.amazonaws.sqs#RequestThrottled")
        emq = await bad.asks(
            "/v1/api/queue",
            content_type="application/x-thrift-binary",
            x_xiaomi_timestamp=str(int(now.timestamp())),
            authorization=EMQ,
        )
        assert emq[0] == 429
        mns = await bad.asks(
            "/queues/q/messages", x_mns_version="2015-06-06", date=format_datetime(now, usegmt=True), authorization=MNS
        )
        assert mns[0] == 429 and b"<Code>TooManyRequests</Code>" in mns[2]
        for answer in (sqs, emq, mns):
            assert int(answer[1]["retry-after"]) >= 1
