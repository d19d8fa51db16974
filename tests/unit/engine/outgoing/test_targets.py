"""Where webhooks may go, and what they are signed with."""

from __future__ import annotations

import pytest

from engine.errors import InvalidValue
from engine.outgoing.post import Target, is_public, target_of


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://example.com", Target(False, "example.com", 80, "example.com", "/")),
        ("https://Example.com:8443/a/b?c=d", Target(True, "example.com", 8443, "Example.com:8443", "/a/b?c=d")),
        ("http://[2606:4700::1111]:81/x", Target(False, "2606:4700::1111", 81, "[2606:4700::1111]:81", "/x")),
    ],
)
def test_a_url_says_where_to_go(url: str, target: Target) -> None:
    assert target_of(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://u:p@example.com/",
        "http://example.com/#f",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://example.com:x/",
        "http://exa mple.com/",
        "http://example.com/\r\nX: y",
        "http://example.com/\x00",
        "http://example.com/ü",
        "http://example.com\\@10.0.0.1/",
        "http://[::1/",
        "http://example.com/" + "a" * 1000,
    ],
)
def test_what_is_no_url_for_a_webhook_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        target_of(url)
    assert refused.value.field == "webhook"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::1",
        "2001:0:7f00:1::1",
        "::10.0.0.1",
        "::8.8.8.8",
        "::ffff:0:10.0.0.1",
        "fec0::1",
        "3fff::1",
        "5f00::1",
        "100::1",
        "100:0:0:1::1",
        "2001:2::1",
        "2001:1ff::1",
        "4000::1",
        "192.88.99.1",
    ],
)
def test_an_address_that_only_the_service_may_reach_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "::ffff:8.8.8.8"],
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)
