"""TLS as the native front speaks it: the certificate of then, bodies and replies of any size, and
handshakes that take no place for long.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from facade.http.sockets.library import Limits, NoLibraryError, chosen, wrong_with
from facade.http.sockets.listener import Listener, Served
from facade.programs.stack.data.certificate import Certificate
from tests.certificates import Certificates

pytestmark = pytest.mark.usefixtures("library")

MOST = 3
LARGE = b"x" * 5_000_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says by which scheme it was asked, and what."""
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event["body"], event["more_body"]
    said = scope["scheme"].encode() + b" " + body
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


@contextlib.asynccontextmanager
async def serving(certificate: Certificate, most: int = 100, limits: Limits | None = None) -> AsyncIterator[Any]:
    counts: list[tuple[int, int, int]] = []
    with socket.create_server(("127.0.0.1", 0)) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # what is sent at once comes at once
        served = Served(echo, scheme="https")
        listener = Listener(
            bound,
            None,
            served,
            60,
            most,
            count=lambda *told: counts.append(told),
            limits=limits,
            certificate=certificate.pem(),
        )
        certificate.renewed = listener.certify
        try:
            yield bound.getsockname(), counts
        finally:
            listener.close()


def certificate_at(path: Path) -> Certificate:
    return Certificate(str(path), str(path))


def trusting(authority: Certificates, **more: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca))
    for name, value in more.items():
        setattr(context, name, value)
    return context


def request(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def asks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> bytes:
    writer.write(request(body))
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        return await reader.readexactly(len(b"https ") + len(body))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_of_any_size_are_answered(authority: Certificates, version: ssl.TLSVersion) -> None:
    context = trusting(authority, minimum_version=version, maximum_version=version)
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with serving(certificate_at(authority.server)) as (address, _):
        reader, writer = await asyncio.open_connection(*address, ssl=context)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        for body in (b"", b"x", LARGE, b"y" * 100_000):
            assert await asks(reader, writer, body) == b"https " + body
        writer.close()


async def test_many_requests_at_once_are_answered_in_order(authority: Certificates) -> None:
    async with serving(certificate_at(authority.server)) as (address, _):
        reader, writer = await asyncio.open_connection(*address, ssl=trusting(authority))
        for number in range(50):
            writer.write(request(b"%03d" % number))
        for number in range(50):
            async with asyncio.timeout(5):
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(9) == b"https %03d" % number
        writer.close()


async def test_the_end_is_said_before_it_comes(authority: Certificates) -> None:
    """Else a client could not tell the end from what somebody between has cut off."""
    async with serving(certificate_at(authority.server)) as (address, _):
        loop = asyncio.get_running_loop()

        def ask() -> bytes:
            said = b""
            with (
                socket.create_connection(address) as raw,
                trusting(authority).wrap_socket(raw, server_hostname="127.0.0.1") as own,
            ):
                own.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                while part := own.recv(4096):  # raises SSLEOFError for an end that was not said
                    said += part
            return said

        assert (await loop.run_in_executor(None, ask)).endswith(b"https ")


async def test_a_client_that_reads_slowly_gets_its_whole_reply(authority: Certificates) -> None:
    async with serving(certificate_at(authority.server)) as (address, _):
        reader, writer = await asyncio.open_connection(*address, ssl=trusting(authority), limit=4096)
        writer.write(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (len(LARGE), LARGE)
        )
        said = b""
        async with asyncio.timeout(30):
            while part := await reader.read(100_000):
                said += part
                await asyncio.sleep(0.001)
        assert said.endswith(b"\r\n\r\nhttps " + LARGE)


async def test_what_is_no_tls_gets_no_answer_in_the_clear(authority: Certificates) -> None:
    async with serving(certificate_at(authority.server)) as (address, _):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(5):
            assert b"HTTP" not in await reader.read()
        writer.close()


async def test_a_new_certificate_is_shown_to_new_connections_and_a_wrong_one_is_not(
    authority: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "both.pem"
    shutil.copy(authority.server, path)
    certificate = certificate_at(path)

    async def opened(address: Any) -> Any:
        reader, writer = await asyncio.open_connection(*address, ssl=trusting(authority))
        assert await asks(reader, writer, b"x") == b"https x"
        return reader, writer, writer.get_extra_info("peercert")["serialNumber"]

    async def shown(address: Any) -> Any:
        _, writer, serial = await opened(address)
        writer.close()
        return serial

    async with serving(certificate) as (address, _):
        reader, writer, old = await opened(address)
        path.write_bytes(b"no certificate")
        certificate.renew()
        assert "action=renew_certificate" in caplog.text and caplog.records[-1].levelname == "ERROR"
        assert await shown(address) == old
        shutil.copy(authority.issue("later"), path)
        certificate.renew()
        assert await shown(address) != old
        assert await asks(reader, writer, b"still") == b"https still"
        writer.close()


def test_what_the_library_can_not_show_is_said(authority: Certificates, tmp_path: Path) -> None:
    good, of_another = authority.server.read_bytes(), authority.client
    keyless = tmp_path / "keyless.pem"
    keyless.write_bytes(good[: good.index(b"-----BEGIN PRIVATE")])
    assert wrong_with(good, good) == ""
    assert "no certificate" in wrong_with(b"", good)
    assert "no key" in wrong_with(good, keyless.read_bytes())
    assert "can't be used with the key" in wrong_with(good, of_another.read_bytes())
    assert chosen("auto", "refusals", str(authority.server), str(authority.server))[0]
    assert "no key" in chosen("auto", "refusals", str(authority.server), str(keyless))[1]
    with pytest.raises(NoLibraryError, match="no key"):
        chosen("require", "refusals", str(authority.server), str(keyless))


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 0.3) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


async def test_the_oldest_silent_ones_make_room(authority: Certificates) -> None:
    async with serving(certificate_at(authority.server), MOST) as (address, counts):
        silent = [await asyncio.open_connection(*address) for _ in range(MOST + 2)]
        assert [await ended(one[0]) for one in silent] == [True, True, False, False, False]
        for _ in range(2):
            reader, writer = await asyncio.open_connection(*address, ssl=trusting(authority))
            assert await asks(reader, writer, b"x") == b"https x"
            writer.close()
        async with asyncio.timeout(5):
            while counts[-1][0] < 3:
                await asyncio.sleep(0.05)
        for _, writer in silent:
            writer.close()


async def test_a_silent_one_is_cut_off_and_leaves_no_descriptor(
    authority: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facade.http.sockets.listener.TICK_S", 0.05)
    async with serving(certificate_at(authority.server), limits=Limits(handshake_ms=200)) as (address, _):
        good = await asyncio.open_connection(*address, ssl=trusting(authority))
        before = descriptors()
        silent = [await asyncio.open_connection(*address) for _ in range(20)]
        for _, writer in silent[:10]:
            writer.write(b"\x16\x03\x01\x02\x00\x01")  # of a handshake
        await asyncio.sleep(0.6)
        assert all([await ended(one[0]) for one in silent])
        for _, writer in silent:
            writer.close()
        await asyncio.sleep(0.1)
        assert descriptors() <= before
        assert await asks(*good, b"still") == b"https still"
        good[1].close()


@pytest.mark.parametrize("seed", range(12))
async def test_records_and_segments_of_any_size_are_one_stream(authority: Certificates, seed: int) -> None:
    """Requests in records and segments of random sizes; then a part of a record, and the end."""
    chance = random.Random(seed)
    bodies = [chance.randbytes(chance.choice((0, 1, 900, 4096, 16_384, 40_000, 300_000))) for _ in range(12)]
    requests = b"".join(map(request, bodies))
    async with serving(certificate_at(authority.server)) as (address, counts):
        raw, coded, reader, writer = ssl.MemoryBIO(), ssl.MemoryBIO(), *await asyncio.open_connection(*address)
        client = trusting(authority).wrap_bio(raw, coded, server_hostname="127.0.0.1")
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    client.do_handshake()
                    break
                writer.write(coded.read())
                raw.write(await reader.read(65_536))
            at = 0
            while at < len(requests):
                at += client.write(requests[at : at + chance.randint(1, 20_000)])
            text = coded.read()
            sending = asyncio.create_task(in_segments(writer, text, chance))
            said, wanted = b"", b"".join(b"https " + body for body in bodies)
            while len(bodies_in(said)) < len(wanted):
                raw.write(part := await reader.read(65_536))
                assert part
                with contextlib.suppress(ssl.SSLWantReadError):
                    while piece := client.read(65_536):
                        said += piece
            assert bodies_in(said) == wanted
            await sending
            client.write(requests)
            writer.write(coded.read(chance.randint(1, 500)))
            writer.write_eof()
            await reader.read()  # returns when the front has ended, too
        while counts[-1][0]:
            await asyncio.sleep(0.01)
        writer.close()


async def test_ragged_records_that_fill_the_room_are_read(authority: Certificates) -> None:
    """A record ends where the 64 KiB do that the library reads at once, with short ones behind;
    all has come before it reads.
    """
    came, leaves = ssl.MemoryBIO(), ssl.MemoryBIO()
    own = trusting(authority).wrap_bio(came, leaves, server_hostname="127.0.0.1")
    async with serving(certificate_at(authority.server)) as (address, _):
        with socket.create_connection(address, timeout=20) as raw:

            def until(act: Callable[[], Any]) -> Any:
                while True:
                    try:
                        return act()
                    except ssl.SSLWantReadError:
                        raw.sendall(leaves.read())
                        part = raw.recv(65_536)
                        assert part, "the connection has ended"
                        came.write(part)

            def answer(size: int) -> bytes:
                said = b""
                while len(said.partition(b"\r\n\r\n")[2]) < size:
                    said += until(partial(own.read, 65_536))
                return said

            await asyncio.to_thread(until, own.do_handshake)
            for last in (*range(11_400, 13_300, 100), *range(13_300, 13_350)):
                records = [
                    secrets.token_bytes(size) for size in (13_000, 13_000, 13_000, 13_000, last, 16_384, 1_500, 3_000)
                ]
                body = b"".join(records)
                for record in (request(body).removesuffix(body), *records):
                    own.write(record)
                raw.sendall(leaves.read())
                wanted = b"https " + body
                assert (await asyncio.to_thread(answer, len(wanted))).endswith(wanted), last


async def in_segments(writer: asyncio.StreamWriter, text: bytes, chance: random.Random) -> None:
    at = 0
    while at < len(text):
        size = chance.choice((1, 5, 1000, 4096, 16_406, 70_000))
        writer.write(text[at : at + size])
        await writer.drain()
        await asyncio.sleep(chance.choice((0, 0, 0.001)))
        at += size


def bodies_in(said: bytes) -> bytes:
    """The bodies of whole answers, side by side."""
    found = b""
    while said:
        head, _, rest = said.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
        found += rest[:size]
        said = rest[size:]
    return found
