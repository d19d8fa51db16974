"""Wrong secrets: who has named too many has to wait before the next one is looked at.

Three buckets leak: of a key at an address, of an address over all keys, of a key over all
addresses. Whoever has proved a key from an address lately is looked at in any case, and an address
that is used up stops those keys only that were guessed at from it, and keys that are not there: so
nobody keeps another out by guessing, unless at the same key from the same address before its owner
comes there. Each worker counts for itself.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from engine.errors import TooManyAttempts
from runtime.counters import Counters

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
            logger.warning("action=refuse_attempts at=%s key=%.80s more=%d reason=too many wrong secrets", at, key_id, refused)
            since, refused = self._clock(), 0
        else:
            refused += 1
        self._logged[at] = (since, refused)
        while len(self._logged) > BUCKETS:
            self._logged.popitem(last=False)
        after_s = min(math.ceil(wait_s), LONGEST_S)
        about = f"too many wrong secrets came from there, or for that key: wait {after_s} s"
        raise TooManyAttempts(about, retry_after_s=after_s, field="key_id", given=key_id)
