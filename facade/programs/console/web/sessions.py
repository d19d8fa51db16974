"""Sessions of browsers: a cookie that only this console can read, and tokens of its forms.

A cookie has the access key, sealed by a key that the data folder keeps: so a console that was
started again goes on with the pages that are open, and a flood of sign-ins takes no memory. What
ends a session before its time (signing out) is remembered by the process alone; a key that is
deleted ends all of its sessions at once, since the service is asked with it each time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from cryptography.fernet import Fernet, InvalidToken

LONGEST_S: Final = 12 * 3600.0
TOUCH_S: Final = 60.0
MOST_ENDED: Final = 10_000
MOST_COOKIE: Final = 4000
_PAD: Final = 16


class Session(NamedTuple):
    """`key_id` "" = nobody has signed in. Times are those of this machine, in seconds."""

    id: str
    key_id: str
    key_secret: str
    began: float
    used: float

    def __repr__(self) -> str:
        return f"Session(key {self.key_id or 'none'})"


class Sessions:
    """Makes, reads and ends sessions. `key`: what seals them, "" = one of this process."""

    def __init__(self, key: str, idle_s: float, clock: Callable[[], float] = time.time) -> None:
        digest = hashlib.sha256(b"leaseway console\0" + (key or secrets.token_hex(32)).encode()).digest()
        self._seal = Fernet(base64.urlsafe_b64encode(digest))
        self._mac = hashlib.sha256(digest + b"forms").digest()
        self._idle_s = idle_s
        self._clock = clock
        self._ended: dict[str, None] = {}

    def begin(self, key_id: str = "", key_secret: str = "") -> Session:
        """A new session."""
        now = self._clock()
        return Session(secrets.token_hex(16), key_id, key_secret, now, now)

    def read(self, cookie: str) -> Session | None:
        """The session of a cookie; None = it is none of ours, or has ended."""
        if not 0 < len(cookie) <= MOST_COOKIE:
            return None
        try:
            found = Session(*json.loads(self._seal.decrypt(cookie.encode())))
        except (InvalidToken, ValueError, TypeError):
            return None
        if found.id in self._ended or (found.key_id and self._is_over(found)):
            return None
        return found

    def sealed(self, session: Session) -> str:
        """The cookie of a session that is used now."""
        return self._seal.encrypt(json.dumps(session._replace(used=self._clock())).encode()).decode()

    def should_touch(self, session: Session) -> bool:
        """Whether its cookie is to be written again, for it is used."""
        return self._clock() - session.used > TOUCH_S

    def end(self, session: Session) -> None:
        """Ends it, also for who has a copy of its cookie."""
        self._ended[session.id] = None
        if len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]

    # A token is another text each time, so that the size of a compressed page tells nothing of it.

    def token(self, session: Session) -> str:
        """What the forms of a session carry."""
        pad = secrets.token_bytes(_PAD)
        return (pad + _mixed(pad, self._proof(session))).hex()

    def fits(self, session: Session, token: str) -> bool:
        """Whether a form is of this session."""
        try:
            given = bytes.fromhex(token)
        except ValueError:
            return False
        return len(given) == 2 * _PAD and hmac.compare_digest(_mixed(given[:_PAD], given[_PAD:]), self._proof(session))

    def _proof(self, session: Session) -> bytes:
        return hmac.digest(self._mac, session.id.encode(), "sha256")[:_PAD]

    def _is_over(self, session: Session) -> bool:
        now = self._clock()
        return now - session.used > self._idle_s or now - session.began > LONGEST_S


def _mixed(pad: bytes, text: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(pad, text, strict=True))
