"""The host of a sender as it is kept."""

from __future__ import annotations

from facade.dialects.rocketmq.messages import hosts


def test_a_host_is_read_with_the_secret_alone() -> None:
    kept = hosts.sealed("host-of-söme", "secret")
    assert "host" not in kept and kept != hosts.sealed("host-of-söme", "secret")
    assert hosts.opened(kept, "secret") == "host-of-söme"
    assert hosts.opened(kept, "another") == hosts.opened("host", "secret") == hosts.opened("", "secret") == ""
    assert hosts.opened(hosts.sealed("h" * 1000, ""), "") == "h" * hosts.CHARACTERS
