"""Room for the bytes of requests: of those that are still coming, and of those in hand.

What comes whole in one piece is only added up. What comes in pieces has a `Share`, which grows with
its bytes; when there is no room for more, somebody else's unfinished request gives way (ADR 0030).
Neighbours: `intake` reads bodies by it, `connection` heads. This module must not know HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.errors import Overloaded

MIB = 1024 * 1024
# Of all requests of a worker.
HELD_BYTES = 128 * MIB
# A body of more is large. Large ones leave so much to the others, whatever happens.
SMALL_BYTES = 256 * 1024
SMALL_PART = 32 * MIB
# Of what is small and not whole yet: the rest of SMALL_PART is for what comes whole.
COMING_PART = 16 * MIB
COMING = 2_048  # requests that are not whole yet
COMING_COST = 4 * 1024  # what each of them is counted for besides its bytes
# A request that has been coming for so long gives way to any other.
STALE_S = 2.0
GAVE_WAY = Overloaded("The request came slowly while others had no room.")


class Share:
    """What one unfinished request holds. `give_way` is called once, when it loses its share."""

    __slots__ = ("bytes", "give_way", "holder", "is_coming", "is_large", "since")

    def __init__(self, holder: str, give_way: Callable[[], object], since: float) -> None:
        self.holder = holder
        self.give_way = give_way
        self.since = since
        self.bytes = 0
        self.is_large = False
        self.is_coming = True


class Shares:
    """The room of one worker; for one event loop. A holder is whoever is counted together: a
    principal, or an address.
    """

    def __init__(self, held_bytes: int = HELD_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = held_bytes
        self._most_large = max(held_bytes - SMALL_PART, 0)
        self._clock = clock
        self.held = 0  # all bytes
        self.large = 0  # those of them of large bodies
        self.coming_small = 0
        self.given_way = 0  # how often
        self.refused = 0
        self._coming: dict[Share, None] = {}  # the oldest first
        self._weights: dict[str, int] = {}  # of each holder's coming requests

    @property
    def is_full(self) -> bool:
        """Whether a small request that comes whole would be refused."""
        return self.held + SMALL_BYTES > self.most

    @property
    def coming(self) -> int:
        """Requests that are not whole yet."""
        return len(self._coming)

    def take(self, size: int) -> None:
        """Adds a request that came whole, to be given back by `release`. Raises Overloaded."""
        is_large = size > SMALL_BYTES
        if not is_large and self.held + size <= self.most:  # nearly all of them
            self.held += size
            return

        def fits() -> bool:
            return self.held + size <= self.most and (not is_large or self.large + size <= self._most_large)

        if not fits() and not self._make_room(None, fits, is_large=is_large or None):
            raise self._refusal()
        self.held += size
        if is_large:
            self.large += size

    def release(self, size: int) -> None:
        """A whole request is done with."""
        self.held -= size
        if size > SMALL_BYTES:
            self.large -= size

    def begin(self, holder: str, give_way: Callable[[], object]) -> Share:
        """A share for a request that begins to come, to be ended by `end` or `whole`. Raises
        Overloaded.
        """
        share = Share(holder, give_way, self._clock())
        if len(self._coming) >= COMING and not self._make_room(share, lambda: len(self._coming) < COMING, is_large=None):
            raise self._refusal()
        self._coming[share] = None
        self._weights[holder] = self._weights.get(holder, 0) + COMING_COST
        return share

    def grow(self, share: Share, size: int) -> None:
        """More of it has come. Raises Overloaded; the share is ended then."""
        if not share.is_coming:
            raise self._refusal()
        self._weights[share.holder] += size
        share.bytes += size
        self.held += size
        if share.is_large:
            self.large += size
        else:
            self.coming_small += size
            if share.bytes > SMALL_BYTES:
                share.is_large = True
                self.coming_small -= share.bytes
                self.large += share.bytes
        if not self._fits(share) and not self._make_room(share, lambda: self._fits(share), is_large=share.is_large):
            self.end(share)
            raise self._refusal()

    def whole(self, share: Share) -> None:
        """All of it has come: it gives way no more, and is to be given back by `release`. Raises
        Overloaded when it has given way already.
        """
        if not share.is_coming:
            raise self._refusal()
        self._forget(share)
        if not share.is_large:
            self.coming_small -= share.bytes

    def end(self, share: Share) -> None:
        """Nothing more will come of it, and nobody has what came."""
        if not share.is_coming:
            return
        self._forget(share)
        self.held -= share.bytes
        if share.is_large:
            self.large -= share.bytes
        else:
            self.coming_small -= share.bytes

    def _fits(self, share: Share) -> bool:
        part = self.large <= self._most_large if share.is_large else self.coming_small <= COMING_PART
        return part and self.held <= self.most

    def _make_room(self, share: Share | None, enough: Callable[[], bool], *, is_large: bool | None) -> bool:
        """Has others give way until there is `enough`: those that have been coming for long, then
        those of whoever has the most coming, if that is more than the asker has; the oldest first.

        Among large or small ones only, unless `is_large` is None. Whether there is enough.
        """
        stale = self._clock() - STALE_S
        others = [one for one in self._coming if one is not share and is_large in (None, one.is_large)]
        for one in others:
            if one.since > stale or enough():
                break
            self._evict(one)
        mine = self._weights.get(share.holder, 0) if share is not None else 0
        while not enough():
            greatest = max(self._weights, key=self._weights.__getitem__, default=None)
            if greatest is None or self._weights[greatest] <= mine or (share is not None and greatest == share.holder):
                break
            found = next((one for one in others if one.is_coming and one.holder == greatest), None)
            if found is None:
                break
            self._evict(found)
        return enough()

    def _evict(self, share: Share) -> None:
        self.end(share)
        self.given_way += 1
        share.give_way()

    def _forget(self, share: Share) -> None:
        share.is_coming = False
        del self._coming[share]
        left = self._weights[share.holder] - share.bytes - COMING_COST
        if left > 0:
            self._weights[share.holder] = left
        else:
            del self._weights[share.holder]

    def _refusal(self) -> Overloaded:
        self.refused += 1
        return Overloaded(f"There is no room for more of this request: requests may have {self.most} bytes together.")
