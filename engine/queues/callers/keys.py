"""Access keys: made, changed, rotated, deleted; and when each was used last.

A rotation gives a key a new secret, and lets the old one count for a while beside it, so that a
client can be given the new one without a gap.
"""

from __future__ import annotations

import contextlib
import secrets
from time import monotonic

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, KeyNotFound
from engine.rules.limits import check_asked, check_name
from engine.rules.rights import role_of
from engine.settings import EngineSettings
from engine.shapes import KeyInfo
from runtime.background import Background
from runtime.clock import now_ms
from schemas.records import KeyRecord
from schemas.vocabulary import Role
from state.errors import StateError
from state.shared.allotments import LastUses

# A worker writes down at most once in this time that a key is used.
NOTE_S = 60.0


class KeyUses:
    """When keys were used last. `note` costs a look into a dict, but for once a minute and key."""

    def __init__(self, last_uses: LastUses) -> None:
        self._last_uses = last_uses
        self._next: dict[str, float] = {}
        self._background = Background()

    def note(self, key_id: str) -> None:
        """A key is used now. Returns at once; without Redis nothing is written down."""
        now = monotonic()
        if now < self._next.get(key_id, 0.0):
            return
        self._next[key_id] = now + NOTE_S
        self._background.start(self._write(key_id, now_ms()), "note_key_use")

    async def _write(self, key_id: str, at_ms: int) -> None:
        with contextlib.suppress(StateError):
            await self._last_uses.note(key_id, at_ms)

    async def last(self) -> dict[str, int]:
        """When each key was used last (epoch ms), as far as Redis knows."""
        try:
            return await self._last_uses.all()
        except StateError:
            return {}

    async def forget(self, key_id: str) -> None:
        """A key is gone: one that is made later by that id was not used."""
        self._next.pop(key_id, None)
        with contextlib.suppress(StateError):
            await self._last_uses.forget(key_id)


class Keys:
    """Changes of keys, one after the other for each key, whichever worker makes them."""

    def __init__(self, settings: EngineSettings, catalog: Catalog, uses: KeyUses) -> None:
        self._settings = settings
        self._catalog = catalog
        self._uses = uses

    async def create(self, key_id: str, principal: str, role: str, expires_at_ms: int) -> tuple[str, str]:
        """Makes a key; returns its id and secret (shown once). Raises InvalidValue, also when the
        id is taken.
        """
        check_name("key_id", key_id)
        check_name("principal", principal)
        word = _role(role)
        _check_expiry(expires_at_ms)
        catalog = self._catalog
        async with catalog.change(f"key/{key_id}") as change:
            if key_id in catalog.keys or key_id == self._settings.admin_key_id:
                raise InvalidValue(f"key id {key_id!r} is taken", field="key_id", given=key_id)
            secret = secrets.token_urlsafe(30)
            record = KeyRecord(key_id, secret, principal, word is Role.ADMIN, now_ms(), word, expires_at_ms)
            await change.write(f"key/{key_id}", record)
        return key_id, secret

    async def set(self, key_id: str, role: str | None, expires_at_ms: int | None, disabled: bool | None) -> KeyInfo:
        """Changes what is named. Raises KeyNotFound, InvalidValue."""
        word = None if role is None else _role(role)
        _check_expiry(expires_at_ms or 0)
        async with self._catalog.change(f"key/{key_id}") as change:
            record = self._record(key_id)
            if word is not None:
                record = msgspec.structs.replace(record, role=word, admin=word is Role.ADMIN)
            if expires_at_ms is not None:
                record = msgspec.structs.replace(record, expires_at_ms=expires_at_ms)
            if disabled is not None:
                record = msgspec.structs.replace(record, disabled=disabled)
            await change.write(f"key/{key_id}", record)
        return _info(record, (await self._uses.last()).get(key_id, 0))

    async def rotate(self, key_id: str, grace_ms: int) -> str:
        """Gives a key another secret, which is returned (shown once); the one before counts for
        `grace_ms` more, and no older one. Raises KeyNotFound, InvalidValue.
        """
        check_asked("grace_ms", grace_ms)
        settings = self._settings
        async with self._catalog.change(f"key/{key_id}") as change:
            if key_id == settings.admin_key_id and settings.admin_key_secret and key_id not in self._catalog.keys:
                record = KeyRecord(key_id, settings.admin_key_secret, key_id, True, now_ms(), Role.ADMIN)
            else:
                record = self._record(key_id)
            secret = secrets.token_urlsafe(30)
            old = record.secret if grace_ms else ""
            until_ms = now_ms() + grace_ms if grace_ms else 0
            await change.write(
                f"key/{key_id}",
                msgspec.structs.replace(record, secret=secret, previous_secret=old, previous_until_ms=until_ms),
            )
        return secret

    async def delete(self, key_id: str) -> None:
        """Raises KeyNotFound."""
        async with self._catalog.change(f"key/{key_id}") as change:
            self._record(key_id)
            await change.write(f"key/{key_id}", None)
        await self._uses.forget(key_id)

    async def list(self) -> list[KeyInfo]:
        """All keys, without secrets."""
        last = await self._uses.last()
        return [_info(key, last.get(key.key_id, 0)) for key in self._catalog.keys.values()]

    def _record(self, key_id: str) -> KeyRecord:
        record = self._catalog.keys.get(key_id)
        if record is None:
            raise KeyNotFound(f"there is no key {key_id!r}", field="key_id", given=key_id)
        return record


def _role(word: str) -> Role:
    if word not in set(Role):
        raise InvalidValue(
            f"role must be one of {', '.join(Role)}, given {word[:100]!r}",
            field="role",
            limit=list(Role),
            given=word[:100],
        )
    return Role(word)


def _check_expiry(at_ms: int) -> None:
    check_asked("expires_at_ms", at_ms)
    if at_ms and at_ms <= now_ms():
        raise InvalidValue("expires_at_ms must be later than now; 0 = never", field="expires_at_ms", given=at_ms)


def _info(key: KeyRecord, last_used_at_ms: int) -> KeyInfo:
    until_ms = key.previous_until_ms if key.previous_until_ms > now_ms() else 0
    return KeyInfo(
        key.key_id,
        key.principal,
        role_of(key),
        key.created_at_ms,
        key.expires_at_ms,
        key.disabled,
        until_ms,
        last_used_at_ms,
    )
