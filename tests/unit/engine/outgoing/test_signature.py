"""Webhooks are signed: time and body, with a secret of each user."""

from __future__ import annotations

import hmac

from engine.outgoing.post import signed, webhook_secret


def test_each_user_has_a_secret_that_follows_from_the_services() -> None:
    secrets = {webhook_secret(service, user) for service in ("s", "t") for user in ("a", "b")}
    assert len(secrets) == 4 and all(len(secret) == 64 for secret in secrets)
    expected = hmac.new(b"secret", b"17." + b'{"a":1}', "sha256").hexdigest()
    assert signed("secret", 17, b'{"a":1}')["leaseway-signature"] == f"t=17,v1={expected}"
