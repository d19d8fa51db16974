"""Who asks: access keys as control records.

open: the claimed key id is the principal and may do everything (loopback only). required: key id
and secret must fit.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from engine.catalog.catalog import Catalog
from engine.errors import NotAuthenticated, NotAuthorised
from engine.queues.callers.guesses import Guesses
from engine.queues.callers.keys import KeyUses
from engine.rules.rights import Rights, counts, role_of
from engine.settings import EngineSettings
from engine.shapes import Principal
from runtime.asked import note_caller, note_claim
from runtime.clock import now_ms
from schemas.accounts import account_of
from schemas.records import KeyRecord
from schemas.vocabulary import ANONYMOUS, Role, Verb

# Until when an old secret counts that the settings name.
_WHILE_SET = 1 << 62


class Access(Rights):
    """Keys, and the authoriser."""

    def __init__(self, settings: EngineSettings, catalog: Catalog, uses: KeyUses, guesses: Guesses) -> None:
        super().__init__(settings, catalog)
        self._uses = uses
        self.guesses = guesses

    def authenticate(self, key_id: str | None, secret: str | None) -> Principal:
        """Who that is. Raises NotAuthenticated when auth is required and the pair does not fit
        (compared in constant time), or the key does not count now.
        """
        if self._settings.auth == "open":
            note_caller(key_id or ANONYMOUS)
            return Principal(key_id or ANONYMOUS, admin=True, key_id=key_id or "")
        if not key_id:
            raise NotAuthenticated("this service needs credentials: HTTP Basic with key id and secret")
        note_claim(key_id)
        given = (secret or "").encode()
        found = self._key(key_id)
        if found is None:
            hmac.compare_digest(secrets.token_hex(16).encode(), given)
            raise NotAuthenticated("key id or secret are wrong")
        principal = self._fitting(found, lambda known: hmac.compare_digest(known.encode(), given))
        if principal is None:
            raise NotAuthenticated("key id or secret are wrong")
        note_caller(principal.id)
        return principal

    def authenticate_signed(self, key_id: str, fits: Callable[[str], bool]) -> Principal:
        """Who that is whose secret `fits`; the secret does not leave the engine otherwise. For auth
        required.

        Raises NotAuthenticated: its field is `key_id` for a key that is not there or does not count
        now, `signature` when the secret does not fit.
        """
        note_claim(key_id)
        found = self._key(key_id)
        if found is None:
            raise NotAuthenticated(f"there is no key {key_id!r}", field="key_id", given=key_id)
        principal = self._fitting(found, fits)
        if principal is None:
            raise NotAuthenticated("the signature does not match that of the key's secret", field="signature")
        note_caller(principal.id)
        return principal

    def has_key(self, key_id: str) -> bool:
        """Whether there is such a key."""
        return self._key(key_id) is not None

    def _key(self, key_id: str) -> KeyRecord | None:
        """The key, if it counts now. The first administrator's is in the settings until it is
        rotated.
        """
        record = self._catalog.keys.get(key_id)
        if record is not None:
            return record if counts(record, now_ms()) else None
        settings = self._settings
        if key_id == settings.admin_key_id and settings.admin_key_secret:
            old = settings.admin_key_secret_old
            return KeyRecord(
                key_id, settings.admin_key_secret, key_id, True, 0, previous_secret=old, previous_until_ms=_WHILE_SET if old else 0
            )
        return None

    def _fitting(self, key: KeyRecord, fits: Callable[[str], bool]) -> Principal | None:
        """Whose key it is, if its secret fits, or the one before for as long as that counts."""
        by_old_secret, secret = False, key.secret
        if not fits(secret):
            by_old_secret, secret = True, key.previous_secret
            if not secret or now_ms() >= key.previous_until_ms or not fits(secret):
                return None
        self._uses.note(key.key_id)
        return _principal(key, secret, by_old_secret=by_old_secret)

    def signing_key(self, key_id: str, derive: Callable[[str], bytes]) -> tuple[Principal, bytes, int] | None:
        """See `Callers.signing_key`."""
        key = self._key(key_id)
        if key is None:
            return None
        left_ms = key.expires_at_ms - now_ms() if key.expires_at_ms else _WHILE_SET
        return _principal(key, key.secret), derive(key.secret), left_ms

    def check_still(self, by: Principal, verb: Verb, incarnation: str, tag: str = "") -> None:
        """Raises NotAuthorised when `by`, who might do `verb` with a queue, may not any more, or
        their key does not count as it did. For what waits meanwhile; a queue that is gone tells so
        by itself.
        """
        queue = self._catalog.by_incarnation.get(incarnation)
        if not self.counts_still(by):
            raise NotAuthorised(f"key {by.key_id!r} was revoked", field="key_id", given=by.key_id)
        if queue is not None and not self.may(by, verb, queue, tag):
            raise NotAuthorised(f"principal {by.id!r} may not {verb} queue {queue.name!r} any more", field="principal", given=by.id)

    def counts_still(self, by: Principal) -> bool:
        """Whether the key of a caller counts, is theirs, and has the role and the secret that it
        had. For what goes on after a request was let in.
        """
        if not by.key_id or self._settings.auth == "open":
            return True
        key = self._key(by.key_id)
        if key is None or key.principal != by.id or role_of(key) is not by.role:
            return False
        return by.proof == hash(key.secret) or (by.proof == hash(key.previous_secret) and now_ms() < key.previous_until_ms)


def _principal(key: KeyRecord, secret: str, *, by_old_secret: bool = False) -> Principal:
    """Who has a key, by one of its secrets."""
    role, account = role_of(key), account_of(key.principal)
    return Principal(key.principal, role is Role.ADMIN and not account, role, key.key_id, by_old_secret, hash(secret), account)
