"""The plane's own connection to a Redis behind TLS, by the options of a URL: what is checked, what
is shown, and which options can't be followed.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Certificates
from tests.services import loop_in_thread
from tests.state.redis_link import ADD, ECHO, GET, Link, OwnRedis, Refused, linked
from tests.state.tls_proxy import TlsProxy

pytestmark = pytest.mark.usefixtures("library")
Serve = Callable[..., str]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def serve(own_redis: OwnRedis, certificates: Certificates) -> Iterator[Serve]:
    """Starts a proxy of TLS in a loop of its own; its host:port."""
    proxies: list[TlsProxy] = []
    with loop_in_thread() as run:

        def start(**options: Any) -> str:
            proxies.append(TlsProxy(own_redis.url, certificates, **options))
            return str(run(proxies[-1].start()))

        yield start
        for proxy in proxies:
            run(proxy.stop())


@pytest.fixture(scope="module")
def strict(serve: Serve) -> str:
    """Where a client certificate is wanted."""
    return serve()


@pytest.fixture(scope="module")
def lenient(serve: Serve) -> str:
    """Where none is."""
    return serve(is_open=True)


def url_of(at: str, **options: Any) -> str:
    return f"rediss://{at}/0?" + "&".join(f"{name}={value}" for name, value in options.items())


def is_served(url: str) -> bool:
    with linked(url) as link:
        link.use()
        return bool(link.call(ECHO, b"x") == [b"k", b"x"])


def reason_of(url: str) -> str:
    with linked(url) as link:
        return str(link.wait("lost")[2].decode())


def test_calls_and_replies_of_all_sizes_come_through_with_a_client_certificate(
    own_redis: OwnRedis, strict: str, certificates: Certificates
) -> None:
    key, pem = f"k{secrets.token_hex(4)}", certificates.client
    with linked(url_of(strict, ssl_ca_certs=certificates.ca, ssl_certfile=pem, ssl_keyfile=pem)) as link:
        link.use()
        assert link.begin(ADD, 1, keys=(key,), count=20_000) == 20_000
        found = link.answers(20_000)
        assert [found[token] for token in range(1, 20_001)] == [("ok", number) for number in range(1, 20_001)]
        text = secrets.token_bytes(1 << 20) * 20
        assert link.call(ECHO, text) == [b"k", text]
        own_redis.client.set(key, text * 3)
        assert link.call(GET, keys=(key,)) == text * 3
        own_redis.client.delete(key)


def test_a_certificate_and_its_key_may_be_in_one_file(strict: str, certificates: Certificates) -> None:
    assert is_served(url_of(strict, ssl_ca_certs=certificates.ca, ssl_certfile=certificates.client))


def test_without_a_client_certificate_there_is_no_connection(strict: str, certificates: Certificates) -> None:
    assert reason_of(url_of(strict, ssl_ca_certs=certificates.ca))


def test_the_authority_and_the_name_count_unless_the_url_says_otherwise(
    lenient: str, certificates: Certificates, tmp_path: Path
) -> None:
    others, port = Certificates(tmp_path), lenient.rpartition(":")[2]
    assert is_served(url_of(lenient, ssl_ca_certs=certificates.ca))
    assert is_served(url_of(lenient, system_certs=certificates.ca))
    assert "invalid peer certificate: BadSignature" in reason_of(url_of(lenient, ssl_ca_certs=others.ca))
    assert "invalid peer certificate: BadSignature" in reason_of(
        url_of(lenient, ssl_ca_certs=others.ca, ssl_check_hostname="false")
    )
    assert "not valid for name" in reason_of(url_of(f"localhost:{port}", ssl_ca_certs=certificates.ca))
    assert is_served(url_of(f"localhost:{port}", ssl_ca_certs=certificates.ca, ssl_check_hostname="false"))
    assert is_served(url_of(f"localhost:{port}", ssl_cert_reqs="none"))


def test_the_least_version_counts(serve: Serve, lenient: str, certificates: Certificates) -> None:
    old = serve(is_open=True, most=ssl.TLSVersion.TLSv1_2)
    newest = int(ssl.TLSVersion.TLSv1_3)
    assert is_served(url_of(old, ssl_ca_certs=certificates.ca))
    assert is_served(url_of(lenient, ssl_ca_certs=certificates.ca, ssl_min_version=newest))
    assert "while TLS was agreed on" in reason_of(url_of(old, ssl_ca_certs=certificates.ca, ssl_min_version=newest))


def test_a_server_that_speaks_no_tls_is_told(own_redis: OwnRedis, certificates: Certificates) -> None:
    assert reason_of(url_of(own_redis.url.removeprefix("redis://").removesuffix("/0"), ssl_ca_certs=certificates.ca))


def test_what_can_not_be_followed_is_told_before_anything_is_opened(certificates: Certificates) -> None:
    locked = certificates.locked("locked", "secret")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ssl_ciphers": "ALL"}, "ssl_ciphers is not supported"),
        ({"ssl_ca_path": "/etc/ssl/certs"}, "ssl_ca_path is not supported"),
        ({"ssl_include_verify_flags": "VERIFY_CRL_CHECK_LEAF"}, "ssl_include_verify_flags is not supported"),
        ({"ssl_certfile": locked, "ssl_password": "secret"}, "no key that can be read without a password"),
        ({"ssl_ca_certs": "/no/such/file"}, "ssl_ca_certs: /no/such/file: No such file"),
        ({"ssl_ca_certs": __file__}, "there is no certificate of an authority"),
        ({"ssl_min_version": -1}, "ssl_min_version=-1 is not supported"),
    ]
    for options, reason in cases:
        given = {"tls": True, "ssl_ca_certs": certificates.ca, **options}
        with pytest.raises(Refused, match=reason):
            Link(given)
    with pytest.raises(Refused, match="there is no certificate of an authority"):
        Link({"tls": True})
