"""Who asks: access keys as control records. Who has named too many wrong secrets has to wait.

open: the claimed key id is the principal and may do everything (loopback only). required: key id
and secret must fit.

Three buckets leak: of a key at an address, of an address over all keys, of a key over all
addresses. Whoever has proved a key from an address lately is looked at in any case, and an address
that is used up stops those keys only that were guessed at from it, and keys that are not there: so
nobody keeps another out by guessing, unless at the same key from the same address before its owner
comes there. Each worker counts for itself.
"""

from __future__ import annotations

import hmac
import logging
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from engine.catalog.catalog import Catalog
from engine.errors import NotAuthenticated, NotAuthorised, TooManyAttempts
from engine.queues.callers.keys import KeyUses
from engine.rules.rights import Rights, counts, role_of
from engine.settings import EngineSettings
from engine.shapes import Principal
from runtime.asked import note_caller, note_claim
from runtime.clock import now_ms
from runtime.counters import Counters
from schemas.accounts import account_of
from schemas.records import KeyRecord
from schemas.vocabulary import ANONYMOUS, Role, Verb

logger = logging.getLogger(__name__)

# Wrong ones that a bucket takes at once, and how many a second leak out of it.
KEY_AT_ADDRESS = (10, 0.5)
ADDRESS = (50, 2.0)
KEY = (200, 5.0)
# Buckets of each kind; the one that was used least recently is forgotten first.
BUCKETS = 4096
# Who has proved a key from an address is known for so long, twice that at most.
KNOWN_S = 900.0
KNOWN = 20_000
LONGEST_S = 60
# A line in the log for an address at most each so many seconds.
LOG_S = 10.0


class Buckets:
    """Buckets of one kind, by name."""

    def __init__(self, size: int, leak: float, clock: Callable[[], float]) -> None:
        self._size = size
        self._leak = leak
        self._clock = clock
        self._levels: OrderedDict[object, tuple[float, float]] = OrderedDict()  # (level, when)

    def level(self, name: object) -> float:
        """How full it is now."""
        found = self._levels.get(name)
        return 0.0 if found is None else max(0.0, found[0] - (self._clock() - found[1]) * self._leak)

    def add(self, name: object) -> None:
        """One more. What is refused is not added, so a bucket is never fuller than full."""
        self._levels[name] = (min(self.level(name) + 1, self._size), self._clock())
        self._levels.move_to_end(name)
        while len(self._levels) > BUCKETS:
            self._levels.popitem(last=False)

    def wait_s(self, name: object) -> float:
        """How long until there is room for one more."""
        return max(0.0, (self.level(name) + 1 - self._size) / self._leak)


class Guesses:
    """Of one worker. No call waits for anything."""

    def __init__(self, counters: Counters, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters = counters
        self._clock = clock
        self._pairs = Buckets(*KEY_AT_ADDRESS, clock)
        self._addresses = Buckets(*ADDRESS, clock)
        self._keys = Buckets(*KEY, clock)
        self._wary_until = 0.0
        self._known: set[tuple[str, str]] = set()
        self._known_before: set[tuple[str, str]] = set()
        self._turns_at = clock() + KNOWN_S
        self._logged: OrderedDict[str, tuple[float, int]] = OrderedDict()  # address -> (when, refused since)

    def check(self, at: str, key_id: str, exists: Callable[[str], object]) -> None:
        """Before a secret is looked at that is named from an address for a key. Raises
        TooManyAttempts.
        """
        if not self._wary_until or self.is_known(at, key_id):
            return
        if self._clock() > self._wary_until:
            self._wary_until = 0.0  # all buckets have run dry
            return
        wait_s = max(self._pairs.wait_s((at, key_id)), self._keys.wait_s(key_id))
        if self._addresses.wait_s(at) and (self._pairs.level((at, key_id)) or not exists(key_id)):
            wait_s = max(wait_s, self._addresses.wait_s(at))
        if wait_s:
            self._refuse(at, key_id, wait_s)

    def is_known(self, at: str, key_id: str) -> bool:
        """Whether the key was proved from the address lately: no secret from there is refused
        unseen.
        """
        return (at, key_id) in self._known or (at, key_id) in self._known_before

    def failed(self, at: str, key_id: str, *, exists: bool) -> None:
        """A wrong secret, or a key that is not there."""
        self._counters.count("wrong_secrets_total")
        self._addresses.add(at)
        if exists:
            self._pairs.add((at, key_id))
            self._keys.add(key_id)
        longest = max(size / leak for size, leak in (KEY_AT_ADDRESS, ADDRESS, KEY))
        self._wary_until = self._clock() + longest

    def fitted(self, at: str, key_id: str) -> None:
        """A right one."""
        pair = (at, key_id)
        if pair not in self._known:
            if len(self._known) >= KNOWN or self._clock() > self._turns_at:
                self._known, self._known_before = set(), self._known
                self._turns_at = self._clock() + KNOWN_S
            self._known.add(pair)

    def _refuse(self, at: str, key_id: str, wait_s: float) -> None:
        self._counters.count("attempts_refused_total")
        since, refused = self._logged.pop(at, (-LOG_S, 0))
        if self._clock() - since >= LOG_S:
            logger.warning(
                "action=refuse_attempts at=%s key=%.80s more=%d reason=too many wrong secrets", at, key_id, refused
            )
            since, refused = self._clock(), 0
        else:
            refused += 1
        self._logged[at] = (since, refused)
        while len(self._logged) > BUCKETS:
            self._logged.popitem(last=False)
        after_s = min(math.ceil(wait_s), LONGEST_S)
        about = f"too many wrong secrets came from there, or for that key: wait {after_s} s"
        raise TooManyAttempts(about, retry_after_s=after_s, field="key_id", given=key_id)


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
                key_id,
                settings.admin_key_secret,
                key_id,
                True,
                0,
                previous_secret=old,
                previous_until_ms=_WHILE_SET if old else 0,
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
            raise NotAuthorised(
                f"principal {by.id!r} may not {verb} queue {queue.name!r} any more", field="principal", given=by.id
            )

    def counts_still(self, by: Principal) -> bool:
        """Whether the key of a caller counts, is theirs, and has the role and the secret that it
        had. For what goes on after a request was let in.
        """
        if not by.key_id or self._settings.auth == "open":
            return True
        key = self._key(by.key_id)
        if key is None or key.principal != by.id or role_of(key) is not by.role:
            return False
        return by.proof == hash(key.secret) or (
            by.proof == hash(key.previous_secret) and now_ms() < key.previous_until_ms
        )


def _principal(key: KeyRecord, secret: str, *, by_old_secret: bool = False) -> Principal:
    """Who has a key, by one of its secrets."""
    role, account = role_of(key), account_of(key.principal)
    return Principal(
        key.principal, role is Role.ADMIN and not account, role, key.key_id, by_old_secret, hash(secret), account
    )
