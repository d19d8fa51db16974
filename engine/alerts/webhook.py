"""Posts JSON to the URL of a user, signed with a secret that this user and the service know.

One try.
"""

from __future__ import annotations

from engine.outgoing.post import OutgoingError, post
from engine.outgoing.signature import signed, webhook_secret
from runtime.clock import now_ms


class NotDeliveredError(Exception):
    """Nothing has taken a message; the text says why."""


class Webhook:
    """Posts of this worker. `private` = loopback and private addresses may be reached."""

    def __init__(self, secret: str, *, private: bool) -> None:
        self._secret = secret
        self._private = private

    async def post(self, url: str, user: str, event: str, body: bytes) -> str:
        """Sends one event; what has taken it. Raises NotDeliveredError after at most 5 s."""
        headers = {**signed(webhook_secret(self._secret, user), now_ms() // 1000, body), "leaseway-event": event}
        try:
            status, _ = await post(url, body, headers, private=self._private)
        except OutgoingError as error:
            raise NotDeliveredError(f"the webhook could not be reached: {error}") from None
        if not 200 <= status < 300:
            raise NotDeliveredError(f"the webhook answered {status}")
        return f"webhook {status}"
