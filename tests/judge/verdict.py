"""What a checker says: whether a promise was kept, what it counted, and the first breaches with
their lines.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

SHOWN = 5


@dataclasses.dataclass(slots=True)
class Verdict:
    """Of one checker. `counts` has what was looked at and what was excused; a breach is counted
    under its kind.
    """

    name: str
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    breaches: list[str] = dataclasses.field(default_factory=list)
    broken: int = 0

    @property
    def valid(self) -> bool:
        return self.broken == 0

    @property
    def looked(self) -> int:
        """How many things were looked at, of all kinds together."""
        return self.counts.total() - self.broken - self.excused

    @property
    def excused(self) -> int:
        """How many times the documents let the promise bend."""
        return sum(count for what, count in self.counts.items() if what.endswith("excused"))

    def breach(self, kind: str, text: str) -> None:
        """A promise was broken; the first few texts are kept of each kind."""
        self.broken += 1
        self.counts[kind] += 1
        if self.counts[kind] <= SHOWN:
            self.breaches.append(f"{kind}: {text}")

    def saw(self, what: str, times: int = 1) -> None:
        self.counts[what] += times

    def judge(self, excused: bool, kind: str, text: str) -> None:
        """A promise was not kept: an excuse, or a breach."""
        if excused:
            self.saw(f"{kind}, excused")
        else:
            self.breach(kind, text)

    def line(self) -> str:
        """One line for people."""
        told = " ".join(f"{name}={count}" for name, count in self.counts.items())
        return f"{'ok    ' if self.valid else 'BROKEN'} {self.name}: {told}"
