"""What receives without an answer may have delivered: each explains as many deliveries as it asked
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.outside.book import Entry

# How soon a worker may be expected to notice that a client has gone.
UNNOTICED_S = 1.0


class Claim(NamedTuple):
    """So many deliveries of one message between two times that no client knows of."""

    missing: int
    begin: float
    end: float


class Carried:
    """Deliveries that may have been in answers nobody has: each such receive explains one delivery
    of as many messages as it asked for, no more.
    """

    def __init__(self, rows: list[Entry]) -> None:
        self._rows = [(row["t0"], row["t1"] + UNNOTICED_S, row["max"]) for row in rows]

    def explained(self, claims: Sequence[Claim]) -> list[bool]:
        """Which claims the receives explain, as many at once as can be: a receive that one claim
        took is left to another, if the first has a second choice.
        """
        holders: list[list[int]] = [[] for _ in self._rows]
        found = []
        for number, claim in enumerate(claims):
            before = [list(some) for some in holders]
            found.append(all(self._place(number, claims, holders, set()) for _ in range(claim.missing)))
            if not found[-1]:
                holders = before
        return found

    def _place(self, number: int, claims: Sequence[Claim], holders: list[list[int]], tried: set[int]) -> bool:
        claim = claims[number]
        for at, (begin, end, most) in enumerate(self._rows):
            if at in tried or number in holders[at] or begin >= claim.end or end <= claim.begin:
                continue
            tried.add(at)
            moved = (
                None
                if len(holders[at]) < most
                else next((n for n in holders[at] if self._place(n, claims, holders, tried)), -1)
            )
            if moved == -1:
                continue
            if moved is not None:
                holders[at].remove(moved)
            holders[at].append(number)
            return True
        return False
