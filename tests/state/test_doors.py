"""Redis behind access control and TLS: who may come in, by the URL alone.

The redis-server of the packages is built without TLS, so a proxy speaks TLS before the real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
import uvloop

from facade.config import Settings
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.reach import wait_for_services
from state.errors import StateUnavailable
from state.keys import Unit
from state.redis.connection import Connection
from state.redis.wake import Wake
from state.replies import Window
from state.store import Store
from tests.certificates import Certificates
from tests.services import Services, loop_in_thread
from tests.state.tls_proxy import TlsProxy

PASSWORD = "s3cret/+"


@pytest.fixture
def user(stack: Services) -> Iterator[str]:
    """A user who may do all, with a password that a URL has to escape."""
    name = f"worker-{secrets.token_hex(3)}"
    with redis.Redis.from_url(stack.redis_url) as client:
        client.execute_command("ACL", "SETUSER", name, "on", f">{PASSWORD}", "~*", "&*", "+@all")
        yield name
        client.execute_command("ACL", "DELUSER", name)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection = Connection(url)
    await connection.start()
    try:
        yield connection
    finally:
        await connection.stop()
        # A handshake that was cut is over some turns of the loop later.
        await asyncio.sleep(0.1)


async def test_a_user_of_the_url_logs_in(stack: Services, user: str) -> None:
    at = urlsplit(stack.redis_url).netloc
    async with connected(f"redis://{user}:s3cret%2F%2B@{at}/0") as connection:
        assert await connection.call("ACL", "WHOAMI") == user.encode()


async def test_a_wrong_password_is_no_connection_and_the_log_says_why(
    stack: Services, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    at = urlsplit(stack.redis_url).netloc
    async with connected(f"redis://{user}:wrong@{at}/0") as connection:
        with pytest.raises(StateUnavailable, match="no connection"):
            connection.call("PING")
    assert "WRONGPASS" in caplog.text and "wrong" not in caplog.text.replace("WRONGPASS", "")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_redis(stack: Services, certificates: Certificates) -> Iterator[str]:
    """host:port of the real Redis behind TLS, in a loop of its own."""
    proxy = TlsProxy(stack.redis_url, certificates)
    with loop_in_thread() as run:
        yield run(proxy.start())
        run(proxy.stop())


def url_of(at: str, certificates: Certificates, *, client: bool = True) -> str:
    """The URL with the authority and, if asked, the client's certificate."""
    pem = certificates.client
    return f"rediss://{at}/0?ssl_ca_certs={certificates.ca}" + (
        f"&ssl_certfile={pem}&ssl_keyfile={pem}" if client else ""
    )


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_scripts_and_wake_ups_come_through_tls_with_a_client_certificate(
    tls_redis: str, certificates: Certificates, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def use() -> None:
        prefix, unit, heard = f"s{secrets.token_hex(3)}", Unit(secrets.token_hex(6), 0), asyncio.Event()
        async with connected(url_of(tls_redis, certificates)) as connection:
            store = Store(connection, prefix, Window(100, 1_000_000))
            await store.upkeep.open(unit, 1, [(0, 0)])
            assert (await store.upkeep.info(unit, 1, [0]))[0].cursor == 0
            wake = Wake(url_of(tls_redis, certificates), prefix, "me", lambda *_: heard.set())
            await wake.start()
            wake.want(unit.incarnation)
            await asyncio.wait_for(heard.wait(), 5)
            await wake.stop()

    loop = new_loop()
    try:
        loop.run_until_complete(use())
        loop.run_until_complete(asyncio.sleep(0.2))  # TLS ends a connection after its close returned
    finally:
        loop.close()


async def test_without_a_client_certificate_there_is_no_connection(tls_redis: str, certificates: Certificates) -> None:
    async with connected(url_of(tls_redis, certificates, client=False)) as connection:
        assert not connection.connected


async def test_a_server_that_another_authority_has_signed_is_not_believed(
    tls_redis: str, certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others = Certificates(tmp_path)
    url = url_of(tls_redis, certificates).replace(str(certificates.ca), str(others.ca))
    async with connected(url) as connection:
        assert not connection.connected
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text


async def test_serve_finds_a_redis_behind_tls_and_says_what_tls_refused(
    stack: Services, tls_redis: str, certificates: Certificates, tmp_path: Path
) -> None:
    others = Certificates(tmp_path)
    url = url_of(tls_redis, certificates)
    await wait_for_services(Settings(kafka_bootstrap=stack.bootstrap, redis_url=url), print)
    refused = Settings(kafka_bootstrap=stack.bootstrap, redis_url=url.replace(str(certificates.ca), str(others.ca)))
    with pytest.raises(StackError, match="CERTIFICATE_VERIFY_FAILED"):
        await wait_for_services(refused, print)
