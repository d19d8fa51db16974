"""The plane's ways into a real Kafka: those of docs/how-to/secure.md that need no token, by the
properties file of the service.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from engine.log.client.plane_options import plane_options
from engine.log.kafka_errors import AUTHENTICATION, TLS, TRANSPORT
from schemas.client_properties import for_librdkafka
from tests.certificates import Certificates
from tests.own_kafka import own_services
from tests.plane_kafka import Entry, kept, plane_kafka
from tests.services import loop_in_thread

pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.long]

PASSWORD = "p w,=ü"
LOGINS = "org.apache.kafka.common.security"
PROTOCOLS = {"TLS": "SSL", "PASSWORD": "SASL_SSL", "SCRAM": "SASL_PLAINTEXT"}
# The broker ends a login after that.
REAUTH_MS = 3_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def ports(
    programs: None, tmp_path_factory: pytest.TempPathFactory, authority: Certificates
) -> Iterator[dict[str, int]]:
    """Those of a broker of the module's own, by the names of PROTOCOLS, and PLAIN."""
    plain = f'{LOGINS}.plain.PlainLoginModule required user_leaseway="{PASSWORD}";'
    written = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
        "listener.name.tls.ssl.client.auth": "required",
        "listener.name.password.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.password.plain.sasl.jaas.config": plain.replace("ü", "\\u00fc"),
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": f"{LOGINS}.scram.ScramLoginModule required;",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{LOGINS}.scram.ScramLoginModule required;",
        "listener.name.scram.scram-sha-512.connections.max.reauth.ms": str(REAUTH_MS),
    }
    with loop_in_thread() as run:
        running = own_services(tmp_path_factory.mktemp("kafka"), PROTOCOLS, written)
        _, ports = run(running.__aenter__())
        try:
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports['PLAIN']}"})
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                change = UserScramCredentialUpsertion(
                    "le=a,se", ScramCredentialInfo(mechanism, 4_096), PASSWORD.encode()
                )
                for future in admin.alter_user_scram_credentials([change]).values():
                    future.result(30)
            yield ports
        finally:
            run(running.__aexit__(None, None, None))


def options(
    ports: dict[str, int], listener: str, properties: dict[str, str], host: str = "127.0.0.1"
) -> dict[str, str]:
    return plane_options(f"{host}:{ports[listener]}", "plane", 10_000, for_librdkafka(properties))


def opens(ports: dict[str, int], listener: str, properties: dict[str, str]) -> None:
    """A record gets there, and a large one, which no buffer takes whole."""
    topic, place = f"plane-{secrets.token_hex(4)}", f"127.0.0.1:{ports['PLAIN']}"
    admin = AdminClient({"bootstrap.servers": place})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    values = [b"small", secrets.token_bytes(3_000_000), b"last"]
    with plane_kafka(options(ports, listener, properties)) as plane:
        for value in values:
            plane.append(topic, 0, [Entry(value)])
            plane.settle()
        assert [outcome.kind for outcome in plane.outcomes.values()] == ["stored"] * 3, plane.outcomes
    assert [message.value() for message in kept(place, topic, 0)] == values


def refuses(given: dict[str, str]) -> tuple[int, str]:
    """Returns why a broker is not reached."""
    with plane_kafka(given) as plane:
        plane.reach()
        plane.until(lambda: plane.trouble or plane.is_reached)
        assert plane.trouble is not None and not plane.is_reached
        return plane.trouble


def tls(authority: Certificates) -> dict[str, str]:
    return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.ca)}


def shown(kind: str, place: Path, **more: str) -> dict[str, str]:
    """What a client shows of itself."""
    passwords = {f"ssl.{name}.password": value for name, value in more.items()}
    return {"ssl.keystore.type": kind, "ssl.keystore.location": str(place), **passwords}


def login(protocol: str, mechanism: str, module: str, user: str, password: str = PASSWORD) -> dict[str, str]:
    line = f'{LOGINS}.{module} required username="{user}" password="{password}";'
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": line}


def test_certificates_open(ports: dict[str, int], authority: Certificates) -> None:
    for certificate in (
        shown("PEM", authority.client),
        shown("PEM", authority.locked("locked", PASSWORD), key=PASSWORD),
        shown("PKCS12", authority.packed("packed", PASSWORD), keystore=PASSWORD),
    ):
        opens(ports, "TLS", tls(authority) | certificate)


def test_passwords_open(ports: dict[str, int], authority: Certificates) -> None:
    opens(ports, "PASSWORD", tls(authority) | login("SASL_SSL", "PLAIN", "plain.PlainLoginModule", "leaseway"))
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        opens(ports, "SCRAM", login("SASL_PLAINTEXT", mechanism, "scram.ScramLoginModule", "le=a,se"))


def test_a_login_that_ends_is_renewed_before_and_no_append_meets_it(ports: dict[str, int]) -> None:
    topic, place = f"plane-{secrets.token_hex(4)}", f"127.0.0.1:{ports['PLAIN']}"
    admin = AdminClient({"bootstrap.servers": place})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    with plane_kafka(
        options(ports, "SCRAM", login("SASL_PLAINTEXT", "SCRAM-SHA-512", "scram.ScramLoginModule", "le=a,se"))
    ) as plane:
        for _ in range(3 * REAUTH_MS // 50):
            plane.append(topic, 0, [Entry(b"x")])
            for _ in range(5):
                plane.turn(10)
        plane.settle()
        assert {outcome.kind for outcome in plane.outcomes.values()} == {"stored"}
        assert len(kept(place, topic, 0)) == len(plane.outcomes)


def test_who_is_not_let_in_says_why(ports: dict[str, int], authority: Certificates, tmp_path: Path) -> None:
    stranger = Certificates(tmp_path)
    plain = login("SASL_SSL", "PLAIN", "plain.PlainLoginModule", "leaseway", "another")
    for given, codes, why in (
        (
            options(ports, "TLS", tls(stranger) | shown("PEM", authority.client)),
            {TLS},
            "invalid peer certificate: BadSignature",
        ),
        (options(ports, "TLS", tls(authority)), {TLS, TRANSPORT}, ""),
        (options(ports, "TLS", tls(authority) | shown("PEM", stranger.client)), {TLS, TRANSPORT}, ""),
        (
            options(ports, "PASSWORD", tls(authority) | plain),
            {AUTHENTICATION},
            "SASL authentication error: Authentication failed",
        ),
        (
            options(ports, "SCRAM", login("SASL_PLAINTEXT", "PLAIN", "plain.PlainLoginModule", "x")),
            {AUTHENTICATION},
            "the broker refuses PLAIN and has SCRAM-SHA-",
        ),
        (options(ports, "PLAIN", tls(authority)), {TLS, TRANSPORT}, ""),
    ):
        code, text = refuses(given)
        assert code in codes and why in text, (code, text)


def test_the_name_of_the_host_is_in_the_certificate_unless_nobody_is_to_look(
    ports: dict[str, int], authority: Certificates
) -> None:
    known = tls(authority) | shown("PEM", authority.client)
    code, text = refuses(options(ports, "TLS", known, host="localhost"))
    assert code == TLS and "not valid for name" in text
    with plane_kafka(
        options(ports, "TLS", known | {"ssl.endpoint.identification.algorithm": ""}, host="localhost")
    ) as plane:
        plane.reach()
        plane.until(lambda: plane.is_reached)


def test_what_is_not_read_here_is_said_to_be_unsupported(ports: dict[str, int], authority: Certificates) -> None:
    bearer = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    for properties, wrong in (
        (bearer, "unsupported: sasl.mechanism=OAUTHBEARER"),
        (tls(authority) | {"ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"}, "unsupported: ssl.cipher.suites"),
        ({"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}, "unsupported: client.dns.lookup="),
    ):
        with pytest.raises(ValueError, match=wrong), plane_kafka(options(ports, "PLAIN", properties)):
            pass
