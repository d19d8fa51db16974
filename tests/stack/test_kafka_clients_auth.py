"""The ways into Kafka that docs/how-to/secure.md names, on a real broker, by the properties file of
the service; SCRAM is in tests/integration/test_kafka_rights.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.settings import Settings
from facade.programs.stack.processes.ports import free_port
from schemas.records.settings import QueueSettings
from tests.certificates import Certificates
from tests.integration.drive import BY, ack, receive, send
from tests.own_kafka import own_services
from tests.tokens import AUDIENCE, CLIENTS, SCOPE, Issuer, running_issuer

PASSWORD = "p w"
LOGINS = "org.apache.kafka.common.security"
PROTOCOLS = {"TLS": "SSL", "PASSWORD": "SASL_SSL", "TOKEN": "SASL_PLAINTEXT"}
# `Log.reach` waits for 10 s; making and ending the clients takes less than the rest.
LONGEST_FAILURE_S = 20.0


@dataclass(frozen=True)
class Places:
    """Where Redis is, and each listener of PROTOCOLS."""

    redis_url: str
    tls: str
    password: str
    token: str


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority that the broker does not know."""
    return Certificates(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def issuer(authority: Certificates) -> Iterator[Issuer]:
    with running_issuer(free_port(), authority.server) as issuer:
        yield issuer


def listeners(authority: Certificates, issuer: Issuer) -> dict[str, str]:
    """What the broker is told of its listeners: TLS wants a certificate, PASSWORD has one itself
    and wants a password, and TOKEN a token that lives as long as the connection.

    The broker logs in by no token itself; Kafka wants the claim for that as soon as there are
    options.
    """
    plain = f'{LOGINS}.plain.PlainLoginModule required user_leaseway="{PASSWORD}";'
    tokens = {
        "sasl.server.callback.handler.class": f"{LOGINS}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.jaas.config": token_login(authority, unsecuredLoginStringClaim_sub="broker"),
        "connections.max.reauth.ms": "3600000",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": issuer.url,
    }
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
        "listener.name.tls.ssl.client.auth": "required",
        "listener.name.password.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.password.plain.sasl.jaas.config": plain,
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        **{f"listener.name.token.oauthbearer.{name}": value for name, value in tokens.items()},
    }


@pytest.fixture(scope="module")
async def places(
    programs: None, tmp_path_factory: pytest.TempPathFactory, authority: Certificates, issuer: Issuer
) -> AsyncIterator[Places]:
    """A Kafka and a Redis of the module's own."""
    flag = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.keys_url}"
    async with own_services(tmp_path_factory.mktemp("kafka"), PROTOCOLS, listeners(authority, issuer), [flag]) as (
        url,
        ports,
    ):
        yield Places(url, *(f"127.0.0.1:{ports[name]}" for name in PROTOCOLS))


def token_login(authority: Certificates, **options: str) -> str:
    """A line for JAAS, of a client or of the broker, whose issuer has a certificate of
    `authority`.
    """
    named = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.ca), **options}
    return (
        f"{LOGINS}.oauthbearer.OAuthBearerLoginModule required "
        + " ".join(f'{name}="{value}"' for name, value in named.items())
        + ";"
    )


Start = Callable[[str, dict[str, str]], Awaitable[Engine]]


@pytest.fixture
async def start(places: Places, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a service with a properties file, at an address of Kafka."""
    async with contextlib.AsyncExitStack() as started:

        async def start(bootstrap: str, properties: dict[str, str]) -> Engine:
            file = tmp_path / f"{secrets.token_hex(4)}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            engine = Engine(
                Settings(
                    kafka_bootstrap=bootstrap,
                    kafka_config=str(file),
                    redis_url=places.redis_url,
                    topic_prefix=f"t{secrets.token_hex(4)}",
                    journal_partitions=1,
                )
            )
            started.push_async_callback(engine.stop)
            await engine.start()
            return engine

        yield start


async def use(engine: Engine) -> None:
    """One message there and back."""
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", "by the way in that is tried")
    got = await receive(engine, "q", wait_ms=5_000)
    assert [delivery.message.body for delivery in got] == [b"by the way in that is tried"]
    await ack(engine, "q", got)


def tls(authority: Certificates) -> dict[str, str]:
    """The properties of a client that knows the broker by `authority`."""
    return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.ca)}


def shown(kind: str, place: Path, **more: str) -> dict[str, str]:
    """What a client shows of itself."""
    return {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(place),
        **{f"ssl.{name}.password": value for name, value in more.items()},
    }


async def test_a_certificate_in_a_pem_file_opens(start: Start, places: Places, authority: Certificates) -> None:
    await use(await start(places.tls, tls(authority) | shown("PEM", authority.client)))


async def test_a_key_behind_a_password_opens(start: Start, places: Places, authority: Certificates) -> None:
    await use(
        await start(places.tls, tls(authority) | shown("PEM", authority.locked("locked", PASSWORD), key=PASSWORD))
    )


async def test_a_pkcs12_key_store_opens(start: Start, places: Places, authority: Certificates) -> None:
    await use(
        await start(
            places.tls, tls(authority) | shown("PKCS12", authority.packed("packed", PASSWORD), keystore=PASSWORD)
        )
    )


@pytest.mark.parametrize("end", [" ", "\\n", " \\\n"])
async def test_a_certificate_within_the_properties_opens(
    start: Start, places: Places, authority: Certificates, end: str
) -> None:
    certificate, key = authority.client.read_text().split("-----BEGIN PRIVATE")
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.ca.read_text().partition("-----BEGIN PRIVATE")[0],
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": "-----BEGIN PRIVATE" + key,
    }
    await use(await start(places.tls, {name: value.strip().replace("\n", end) for name, value in properties.items()}))


def bearer(issuer: Issuer, authority: Certificates, client: str = "leaseway", secret: str = "") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
        "sasl.jaas.config": token_login(
            authority, clientId=client, clientSecret=secret or CLIENTS[client][0], scope=SCOPE
        ),
    }


def knowing(authority: Certificates, password: str) -> dict[str, str]:
    login = f'{LOGINS}.plain.PlainLoginModule required username=leaseway password="{password}";'
    return tls(authority) | {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}


async def test_a_password_opens_behind_tls(start: Start, places: Places, authority: Certificates) -> None:
    await use(await start(places.password, knowing(authority, PASSWORD)))


async def test_a_token_opens_and_is_renewed(
    start: Start, places: Places, issuer: Issuer, authority: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "lives_s", 6.0)
    engine = await start(places.token, bearer(issuer, authority))
    await use(engine)
    assert issuer.scopes == {SCOPE}
    given = issuer.given
    end = time.monotonic() + 1.5 * issuer.lives_s
    while time.monotonic() < end:
        await send(engine, "q", "before and after the first token ends")
        await asyncio.sleep(0.5)
    assert await engine.ready() == {"kafka": "ok", "redis": "ok"}
    assert issuer.given > given


async def test_who_is_not_let_in_says_why(
    start: Start, places: Places, issuer: Issuer, authority: Certificates, stranger: Certificates
) -> None:
    tried = {
        "alert bad certificate": (places.tls, tls(authority)),
        "alert certificate unknown": (places.tls, tls(authority) | shown("PEM", stranger.client)),
        # Two lines of librdkafka say it, and which one is the last depends on its threads.
        "broker certificate could not be verified|certificate verify failed": (
            places.tls,
            tls(stranger) | shown("PEM", authority.client),
        ),
        "no client has this secret": (places.token, bearer(issuer, authority, secret="another")),
        "SASL authentication error: Authentication failed": (places.password, knowing(authority, "another")),
        "invalid_token": (places.token, bearer(issuer, authority, client="mail")),
        "Failed to acquire SASL OAUTHBEARER token": (places.token, bearer(issuer, stranger)),
    }
    began = time.monotonic()
    heard = await asyncio.gather(*(start(*way) for way in tried.values()), return_exceptions=True)
    assert time.monotonic() - began < LONGEST_FAILURE_S
    for why, refused in zip(tried, heard, strict=True):
        assert isinstance(refused, LogUnavailable) and re.search(why, str(refused)), f"{why}: {refused!r}"


async def test_what_the_client_does_not_take_stops_the_start_with_its_name(
    start: Start, places: Places, authority: Certificates
) -> None:
    packed = authority.packed("other", PASSWORD)
    for store, why in (
        (shown("PKCS12", packed, keystore="another"), "ssl.keystore.location PKCS#12 file"),
        (shown("PKCS12", packed), "`ssl.keystore.password` is mandatory"),
        (shown("PEM", authority.locked("shut", PASSWORD)), "ssl.key.location failed"),
    ):
        with pytest.raises(LogUnavailable, match=why):
            await start(places.tls, tls(authority) | store)
