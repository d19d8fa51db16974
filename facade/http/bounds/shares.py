"""Room for the bytes of requests: of those that are still coming, and of those in hand.

What comes whole in one piece is only added up. What comes in pieces has a `Share`, which grows with
its bytes; when there is no room for more, somebody's unfinished request gives way (ADR 0030).
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
COMING = 8_192  # small requests that are not whole yet
COMING_COST = 4 * 1024  # what each of them is counted for besides its bytes
# A large request that has been coming for so long gives way to any other.
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


class Line:
    """Unfinished requests of one kind, small or large: the oldest first, of all and of each holder.
    Finding the next to give way takes a look at each holder, and at no request.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.shares: dict[Share, None] = {}
        self._of: dict[str, dict[Share, None]] = {}
        self._weights: dict[str, int] = {}

    def add(self, share: Share) -> None:
        self.shares[share] = None
        self._of.setdefault(share.holder, {})[share] = None
        self._weights.setdefault(share.holder, 0)
        self.grow(share, share.bytes + COMING_COST)
        self.bytes -= COMING_COST

    def grow(self, share: Share, size: int) -> None:
        self.bytes += size
        self._weights[share.holder] += size

    def remove(self, share: Share) -> None:
        self.bytes -= share.bytes
        self._weights[share.holder] -= share.bytes + COMING_COST
        del self.shares[share]
        of_holder = self._of[share.holder]
        del of_holder[share]
        if not of_holder:
            del self._of[share.holder], self._weights[share.holder]

    def weight(self, holder: str) -> int:
        """What a holder has coming."""
        return self._weights.get(holder, 0)

    def oldest(self, but: Share | None) -> Share | None:
        return next((one for one in self.shares if one is not but), None)

    def of_greatest(self, but: Share | None) -> Share | None:
        """The oldest of the holder who has the most coming."""
        if not self._weights:
            return None
        greatest = max(self._weights, key=self._weights.__getitem__)
        return next((one for one in self._of[greatest] if one is not but), None)


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
        self.small_line, self.large_line = Line(), Line()
        self.given_way = 0  # how often
        self.refused = 0

    @property
    def is_full(self) -> bool:
        """Whether a small request that comes whole would be refused."""
        return self.held + SMALL_BYTES > self.most

    @property
    def coming(self) -> int:
        """Requests that are not whole yet."""
        return len(self.small_line.shares) + len(self.large_line.shares)

    def take(self, size: int) -> None:
        """Adds a request that came whole, to be given back by `release`. Raises Overloaded."""
        is_large = size > SMALL_BYTES
        self.held += size
        self.large += size if is_large else 0
        if (self.held > self.most or self.large > self._most_large) and not self._make_room(None, is_large=is_large):
            self.release(size)
            raise self._refusal()

    def release(self, size: int) -> None:
        """A whole request is done with."""
        self.held -= size
        if size > SMALL_BYTES:
            self.large -= size

    def begin(self, holder: str, give_way: Callable[[], object]) -> Share:
        """A share for a request that begins to come, to be ended by `end` or `whole`."""
        share = Share(holder, give_way, self._clock())
        self.small_line.add(share)
        if len(self.small_line.shares) > COMING:
            self._make_room(share, is_large=False)
        return share

    def grow(self, share: Share, size: int) -> None:
        """More of it has come. Raises Overloaded; the share is ended then."""
        if not share.is_coming:
            raise self._refusal()
        share.bytes += size
        self.held += size
        if share.is_large:
            self.large += size
            self.large_line.grow(share, size)
        else:
            self.small_line.grow(share, size)
            if share.bytes > SMALL_BYTES:
                self.small_line.remove(share)
                share.is_large = True
                self.large += share.bytes
                self.large_line.add(share)
        if not self._fits(is_large=share.is_large) and not self._make_room(share, is_large=share.is_large):
            self.end(share)
            raise self._refusal()

    def whole(self, share: Share) -> None:
        """All of it has come: it gives way no more, and is to be given back by `release`. Raises
        Overloaded when it has given way already.
        """
        if not share.is_coming:
            raise self._refusal()
        self._forget(share)

    def end(self, share: Share) -> None:
        """Nothing more will come of it, and nobody has what came."""
        if share.is_coming:
            self._forget(share)
            self.release(share.bytes)

    def _fits(self, *, is_large: bool) -> bool:
        if self.held > self.most:
            return False
        if is_large:
            return self.large <= self._most_large
        return self.small_line.bytes <= COMING_PART and len(self.small_line.shares) <= COMING

    def _make_room(self, share: Share | None, *, is_large: bool) -> bool:
        """Has others give way until all is within its bounds; whether it is.

        For a small one the oldest of whoever has the most small ones coming, then of whoever has
        the most large ones: it comes in a moment, so it is not among the oldest. For a large one
        those that have been coming for long, then those of whoever has the most, if that is more
        than the asker has: else many that come quickly would end each other.
        """
        while not self._fits(is_large=is_large):
            found = self._next_large(share) if is_large else self._next_small(share)
            if found is None:
                return False
            self.end(found)
            self.given_way += 1
            found.give_way()
        return True

    def _next_small(self, share: Share | None) -> Share | None:
        return self.small_line.of_greatest(share) or self.small_line.oldest(share) or self.large_line.of_greatest(share)

    def _next_large(self, share: Share | None) -> Share | None:
        line = self.large_line
        oldest = line.oldest(share)
        if oldest is not None and oldest.since <= self._clock() - STALE_S:
            return oldest
        found = line.of_greatest(share)
        if found is None or share is None:
            return found
        return found if found.holder != share.holder and line.weight(found.holder) > line.weight(share.holder) else None

    def _forget(self, share: Share) -> None:
        share.is_coming = False
        (self.large_line if share.is_large else self.small_line).remove(share)

    def _refusal(self) -> Overloaded:
        self.refused += 1
        return Overloaded(f"There is no room for more of this request: requests may have {self.most} bytes together.")
