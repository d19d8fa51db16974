"""How who gets a webhook knows that it is from this service, and when it was sent.

The header `leaseway-signature` is `t=<epoch seconds>,v1=<hex>`: the HMAC-SHA256 of the seconds, a
dot and the body, keyed with a secret that both sides know. Pure.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

SIGNATURE = "leaseway-signature"


def webhook_secret(secret: str, user: str) -> str:
    """The secret of a user, which follows from that of the service."""
    return hmac.new(secret.encode(), b"webhook/" + user.encode(), sha256).hexdigest()


def signed(secret: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of a POST of JSON."""
    mac = hmac.new(secret.encode(), b"%d." % at_s + body, sha256).hexdigest()
    return {"content-type": "application/json", "user-agent": "leaseway", SIGNATURE: f"t={at_s},v1={mac}"}
