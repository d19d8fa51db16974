"""The URL of Redis as redis-py reads it."""

from __future__ import annotations

import ssl

import pytest

from state.redis.address import BadAddress, redis_address, without_password


@pytest.mark.parametrize(
    ("url", "place", "login", "database"),
    [
        ("redis://", "127.0.0.1:6379", None, 0),
        ("redis://localhost", "localhost:6379", None, 0),
        ("redis://redis.example:7000/2", "redis.example:7000", None, 2),
        ("redis://redis.example/?db=5", "redis.example:6379", None, 5),
        ("redis://:p%40ss@redis.example", "redis.example:6379", ("p@ss",), 0),
        ("redis://worker:p%40ss@redis.example/1", "redis.example:6379", ("worker", "p@ss"), 1),
        ("redis://worker@redis.example", "redis.example:6379", None, 0),
        ("redis://[::1]:7000", "::1:7000", None, 0),
        ("unix:///run/my%20redis.sock?db=3", "/run/my redis.sock", None, 3),
        ("unix://worker:secret@/run/redis.sock", "/run/redis.sock", ("worker", "secret"), 0),
    ],
)
def test_a_url_names_place_login_and_database(
    url: str, place: str, login: tuple[str, ...] | None, database: int
) -> None:
    address = redis_address(url)
    assert (address.place, address.login, address.database, address.tls) == (place, login, database, None)


def test_rediss_asks_for_a_certificate_of_this_host_unless_it_is_told_not_to() -> None:
    strict, lax = (
        redis_address("rediss://redis.example").tls,
        redis_address("rediss://redis.example?ssl_check_hostname=false").tls,
    )
    assert strict is not None and lax is not None
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_REQUIRED, False)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://redis.example", "schemes"),
        ("", "schemes"),
        ("redis://redis.example:99999", "port"),
        ("redis://redis.example?db=one", "'db'"),
        ("redis://redis.example?colour=red", "colour"),
        ("rediss://redis.example?ssl_ca_certs=/none/ca.pem", "FileNotFoundError"),
        ("rediss://redis.example?ssl_cert_reqs=perhaps", "perhaps"),
    ],
)
def test_a_url_that_is_none_of_redis_is_refused(url: str, fault: str) -> None:
    with pytest.raises(BadAddress, match=fault):
        redis_address(url)


@pytest.mark.parametrize(
    ("url", "shown", "masked"),
    [
        ("redis://h:1/0", "redis://h:1/0", "redis://h:1/0"),
        ("redis://:pass@h:1/0", "redis://h:1/0", "redis://:*@h:1/0"),
        ("rediss://bob:p@ss/word@h/0", "rediss://h/0", "rediss://bob:*@h/0"),
        (
            "unix:///run/r.sock?password=pass&db=1",
            "unix:///run/r.sock?password=&db=1",
            "unix:///run/r.sock?password=*&db=1",
        ),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str, masked: str) -> None:
    assert (without_password(url), without_password(url, "*")) == (shown, masked)
