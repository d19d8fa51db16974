"""Large bodies of clients that nobody knows, before a real `leaseway up`: workers do not keep them,
and others are served meanwhile. With each front.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime

import pytest

from benchmarks.idle_polls import resident_kib
from tests.conftest import StartUp
from tests.services import Up

CONNECTIONS = 100
BODY = 1_900_000
GROWN_MIB = 64
HELD_S = 4.0
# A quiet machine answers in a hundredth of this; a full one may be slow by itself.
LIVE_S = 0.1
TARGET = "X-Amz-Target: AmazonSQS.SendMessage\r\nContent-Type: application/x-amz-json-1.0\r\n"
SIGNED = (
    "Authorization: AWS4-HMAC-SHA256 Credential=nobody/{day}/us-east-1/sqs/aws4_request, "
    f"SignedHeaders=host;x-amz-date;x-amz-target, Signature={'0' * 64}\r\nX-Amz-Date: {{time}}\r\n"
)
KINDS = {
    "signed by a key that is not there": ("/", TARGET + SIGNED),
    "not signed": ("/", TARGET),
    "a form": ("/", "Content-Type: application/x-www-form-urlencoded\r\n"),
    "native": ("/v1/queues/q/messages", "Content-Type: application/json\r\n"),
    "native with a wrong key": (
        "/v1/queues/q/messages",
        "Content-Type: application/json\r\nAuthorization: Basic bm9ib2R5Om5vdGhpbmc=\r\n",
    ),
    "MNS": ("/queues/q/messages", "Content-Type: text/xml\r\nx-mns-version: 2015-06-06\r\n"),
    "nothing that is known": ("/else", ""),
}


@pytest.fixture(scope="module", params=["off", "auto"])
def up(leaseway_up_module: StartUp, request: pytest.FixtureRequest) -> Up:
    started = leaseway_up_module("--auth", "required", environment={"LEASEWAY_NATIVE": request.param})
    started.wait_ready()
    return started


async def stranger(port: int, path: str, headers: str) -> None:
    """Sends all of a body but its end, and waits."""
    now = datetime.now(UTC)
    about = headers.replace("{day}", f"{now:%Y%m%d}").replace("{time}", f"{now:%Y%m%dT%H%M%SZ}")
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            writer.write(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{about}Content-Length: {BODY}\r\n\r\n".encode())
            for _ in range(BODY // 65_536):
                writer.write(b" " * 65_536)
                await asyncio.wait_for(writer.drain(), HELD_S)
            await asyncio.sleep(HELD_S)


async def live(port: int) -> float:
    """Seconds until GET /live is answered."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        writer.write(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    return time.monotonic() - began


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_bodies_of_strangers_are_not_kept(up: Up, kind: str) -> None:
    port = int(up.endpoint.rpartition(":")[2])

    async def flood() -> tuple[list[float], list[float], int]:
        quiet = [await live(port) for _ in range(30)]
        before = sum(resident_kib(pid) for pid in up.workers)
        strangers = [asyncio.create_task(stranger(port, *KINDS[kind])) for _ in range(CONNECTIONS)]
        waits, most = [], before
        while not all(task.done() for task in strangers):
            waits.append(await live(port))
            most = max(most, sum(resident_kib(pid) for pid in up.workers))
            await asyncio.sleep(0.02)
        return sorted(quiet), sorted(waits), (most - before) // 1024

    quiet, waits, grown = asyncio.run(flood())
    print(f"{kind}: grown {grown} MiB, GET /live p99 {waits[len(waits) * 99 // 100]:.3f} s, before {quiet[-1]:.3f} s")
    assert grown < GROWN_MIB
    assert waits[len(waits) * 9 // 10] < max(LIVE_S, 4 * quiet[-1])
