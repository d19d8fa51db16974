"""Names under which open mode may be reached."""

from __future__ import annotations

import pytest

from facade.http.front import REMEMBERED, Hosts

OURS = [
    b"localhost",
    b"LOCALHOST:9400",
    b"127.0.0.1",
    b"127.1.2.3:80",
    b"[::1]:9400",
    b"a.localhost:1",
    b"localhost.",
    None,
]
STRANGE = [
    b"evil.example",
    b"evil.example:9400",
    b"localhost.evil.example",
    b"10.0.0.1",
    b"[::2]",
    b"",
    b"127.0.0.1.evil",
    b"\xff",
]


@pytest.mark.parametrize("host", OURS)
def test_names_of_this_machine_are_allowed_once_and_again(host: bytes | None) -> None:
    hosts = Hosts("")
    assert [hosts.allows(host), hosts.allows(host)] == [True, True]


@pytest.mark.parametrize("host", STRANGE)
def test_others_are_not(host: bytes) -> None:
    hosts = Hosts("queues.example")
    assert [hosts.allows(host), hosts.allows(host)] == [False, False]


def test_a_setting_names_more() -> None:
    hosts = Hosts("queues.example, Host.Docker.Internal,")
    assert hosts.allows(b"queues.example:80")
    assert hosts.allows(b"host.docker.internal")
    assert not hosts.allows(b"x.queues.example")


def test_what_is_remembered_is_bounded() -> None:
    hosts = Hosts("")
    assert all(hosts.allows(b"n%d.localhost" % number) for number in range(3 * REMEMBERED))
    assert len(hosts._allowed) == REMEMBERED
