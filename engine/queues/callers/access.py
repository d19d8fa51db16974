"""Who asks, and what they may: access keys as control records, and the one authoriser that every
verb passes.

open: the claimed key id is the principal and may do everything (loopback only). required: key id
and secret must fit; an administrator may do everything, an owner everything with their queues,
anybody may create and list queues of their own, others what a queue's grants allow: at least one
must, and none deny. Neighbours: `engine.py` asks.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, KeyNotFound, NotAuthenticated, NotAuthorised
from engine.rules.limits import check_name
from engine.rules.queue import Queue
from engine.rules.rights import granted
from engine.runtime.clock import now_ms
from engine.settings import EngineSettings
from engine.shapes import Principal
from schemas.records import KeyRecord
from schemas.vocabulary import Verb

ANONYMOUS = "anonymous"
_OF_NOBODY = (Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.SET_PRODUCER_GROUP)


class Access:
    """Keys and the authoriser."""

    def __init__(self, settings: EngineSettings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog

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

    def is_admin(self, principal: str) -> bool:
        """Whether one of the keys of a principal may do everything; without keys everybody may."""
        settings = self._settings
        if settings.auth == "open" or (settings.admin_key_secret and principal == settings.admin_key_id):
            return True
        return any(key.admin and key.principal == principal for key in self._catalog.keys.values())

    def may(self, by: Principal, verb: Verb, queue: Queue) -> bool:
        """Whether `by` may do `verb` with `queue`."""
        return by.admin or queue.record.owner == by.id or granted(queue.record.grants, by.id, verb)

    def authorise(self, by: Principal, verb: Verb, queue: Queue | None = None) -> None:
        """Raises NotAuthorised unless `by` may do `verb` (with `queue`)."""
        if by.admin or (queue is None and verb in _OF_NOBODY):
            return
        if queue is not None and self.may(by, verb, queue):
            return
        of = f" queue {queue.name!r}" if queue is not None else ""
        raise NotAuthorised(f"principal {by.id!r} may not {verb}{of}", field="principal", given=by.id)

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
