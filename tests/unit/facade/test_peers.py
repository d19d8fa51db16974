"""Under which address a client is counted."""

from __future__ import annotations

from typing import Any

import pytest

from facade.http.bounds.peers import counted_as, peer_of


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        ("nobody", "unknown"),
    ],
)
def test_an_address_is_counted_as(address: str, counted: str) -> None:
    assert counted_as(address) == counted


@pytest.mark.parametrize(
    ("forwarded", "counted"),
    [
        (b"", "127.0.0.9"),
        (b"10.0.0.7", "10.0.0.7"),
        (b"6.6.6.6, 10.0.0.7", "10.0.0.7"),  # what stands first the client may have written
        (b"10.0.0.7:4711", "10.0.0.7"),
        (b"[2001:db8::1]:4711", "2001:db8::/64"),
        (b"2001:db8::1", "2001:db8::/64"),
        (b"x" * 1000, "unknown"),
    ],
)
def test_a_proxy_is_believed_only_where_it_is_trusted(forwarded: bytes, counted: str) -> None:
    scope: dict[str, Any] = {"client": ("127.0.0.9", 1)}
    headers = {b"x-forwarded-for": forwarded} if forwarded else {}
    assert peer_of(scope, headers, trusted=True) == counted
    assert peer_of(scope, headers, trusted=False) == "127.0.0.9"


def test_a_client_without_an_address_is_counted_too() -> None:
    assert peer_of({"client": None}, {}, trusted=False) == "unknown"
