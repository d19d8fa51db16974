"""Who asks: access keys as control records.

open: the claimed key id is the principal and may do everything (loopback only). required: key id
and secret must fit. Neighbours: `catalog.rights` says what they may, `engine.py` asks.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from engine.catalog.rights import Rights
from engine.errors import InvalidValue, KeyNotFound, NotAuthenticated
from engine.rules.limits import check_name
from engine.runtime.clock import now_ms
from engine.shapes import Principal
from schemas.records import KeyRecord

ANONYMOUS = "anonymous"


class Access(Rights):
    """Keys, and the authoriser."""

    def authenticate(self, key_id: str | None, secret: str | None) -> Principal:
        """Who that is. Raises NotAuthenticated when auth is required and the pair does not fit
        (compared in constant time).
        """
        if self._settings.auth == "open":
            return Principal(key_id or ANONYMOUS, admin=True)
        if not key_id:
            raise NotAuthenticated("this service needs credentials: HTTP Basic with key id and secret")
        expected, principal = self._key(key_id) or (secrets.token_hex(16), None)
        if not hmac.compare_digest(expected.encode(), (secret or "").encode()) or principal is None:
            raise NotAuthenticated("key id or secret are wrong")
        return principal

    def authenticate_signed(self, key_id: str, fits: Callable[[str], bool]) -> Principal:
        """Who that is whose secret `fits`; the secret does not leave the engine otherwise. For auth
        required.

        Raises NotAuthenticated: its field is `key_id` for a key that is not there, `signature` when
        the secret does not fit.
        """
        found = self._key(key_id)
        if found is None:
            raise NotAuthenticated(f"there is no key {key_id!r}", field="key_id", given=key_id)
        if not fits(found[0]):
            raise NotAuthenticated("the signature does not match that of the key's secret", field="signature")
        return found[1]

    def _key(self, key_id: str) -> tuple[str, Principal] | None:
        """The secret of a key and whose it is."""
        settings = self._settings
        if key_id == settings.admin_key_id and settings.admin_key_secret:
            return settings.admin_key_secret, Principal(key_id, admin=True)
        record = self._catalog.keys.get(key_id)
        return None if record is None else (record.secret, Principal(record.principal, admin=record.admin))

    async def create_key(self, key_id: str, principal: str, admin: bool) -> tuple[str, str]:
        """Makes a key; returns its id and secret (shown once). Raises InvalidValue when the id is
        taken.
        """
        check_name("key_id", key_id)
        check_name("principal", principal)
        catalog = self._catalog
        async with catalog.change(f"key/{key_id}") as change:
            if key_id in catalog.keys or key_id == self._settings.admin_key_id:
                raise InvalidValue(f"key id {key_id!r} is taken", field="key_id", given=key_id)
            secret = secrets.token_urlsafe(30)
            await change.write(f"key/{key_id}", KeyRecord(key_id, secret, principal, admin, now_ms()))
        return key_id, secret

    async def delete_key(self, key_id: str) -> None:
        """Raises KeyNotFound."""
        catalog = self._catalog
        async with catalog.change(f"key/{key_id}") as change:
            if key_id not in catalog.keys:
                raise KeyNotFound(f"there is no key {key_id!r}", field="key_id", given=key_id)
            await change.write(f"key/{key_id}", None)

    def list_keys(self) -> list[KeyRecord]:
        """All keys, their secrets blank."""
        return [KeyRecord(k.key_id, "", k.principal, k.admin, k.created_at_ms) for k in self._catalog.keys.values()]
