"""Who asks, and what they may: access keys as control records, and the one authoriser that every verb passes.

open: the claimed key id is the principal and may do everything (loopback only). required: key id and secret must fit; an
administrator may do everything, an owner everything with their queues, anybody may create and list queues of their own.
Grants to others are checked here when they come. Neighbours: `engine.py` asks. Must not know HTTP.
"""

from __future__ import annotations

import hmac
import secrets

from engine.core import Core, now_ms
from engine.errors import InvalidValue, KeyNotFound, NotAuthenticated, NotAuthorised
from engine.limits import check_name
from engine.queue import Queue
from engine.verbs import Principal
from schemas.records import KeyRecord
from schemas.vocabulary import Verb

ANONYMOUS = "anonymous"
_OF_NOBODY = (Verb.CREATE_QUEUE, Verb.LIST_QUEUES)


class Access:
    """Keys and the authoriser."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def authenticate(self, key_id: str | None, secret: str | None) -> Principal:
        """Who that is. Raises NotAuthenticated when auth is required and the pair does not fit (compared in constant time)."""
        settings = self._core.settings
        if settings.auth == "open":
            return Principal(key_id or ANONYMOUS, admin=True)
        if not key_id:
            raise NotAuthenticated("this service needs credentials: HTTP Basic with key id and secret")
        record = self._core.control.keys.get(key_id)
        first = key_id == settings.admin_key_id and bool(settings.admin_key_secret)
        expected = settings.admin_key_secret if first else (record.secret if record is not None else secrets.token_hex(16))
        if not hmac.compare_digest(expected.encode(), (secret or "").encode()):
            raise NotAuthenticated("key id or secret are wrong")
        if first:
            return Principal(key_id, admin=True)
        assert record is not None  # a random secret can't have fitted
        return Principal(record.principal, admin=record.admin)

    def authorise(self, by: Principal, verb: Verb, queue: Queue | None = None) -> None:
        """Raises NotAuthorised unless `by` may do `verb` (with `queue`)."""
        if by.admin or (queue is None and verb in _OF_NOBODY):
            return
        if queue is not None and queue.record.owner == by.id:
            return
        of = f" queue {queue.name!r}" if queue is not None else ""
        raise NotAuthorised(f"principal {by.id!r} may not {verb}{of}", field="principal", given=by.id)

    async def create_key(self, key_id: str, principal: str, admin: bool) -> tuple[str, str]:
        """Makes a key; returns its id and secret (shown once). Raises InvalidValue when the id is taken."""
        check_name("key_id", key_id)
        check_name("principal", principal)
        control = self._core.control
        async with control.change(f"key/{key_id}"):
            if key_id in control.keys or key_id == self._core.settings.admin_key_id:
                raise InvalidValue(f"key id {key_id!r} is taken", field="key_id", given=key_id)
            secret = secrets.token_urlsafe(30)
            await control.write(f"key/{key_id}", KeyRecord(key_id, secret, principal, admin, now_ms()))
        return key_id, secret

    async def delete_key(self, key_id: str) -> None:
        """Raises KeyNotFound."""
        control = self._core.control
        async with control.change(f"key/{key_id}"):
            if key_id not in control.keys:
                raise KeyNotFound(f"there is no key {key_id!r}", field="key_id", given=key_id)
            await control.write(f"key/{key_id}", None)

    def list_keys(self) -> list[KeyRecord]:
        """All keys, their secrets blank."""
        return [KeyRecord(k.key_id, "", k.principal, k.admin, k.created_at_ms) for k in self._core.control.keys.values()]
