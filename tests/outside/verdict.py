"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Verdict:
    """A promise: how often it was looked at, how often it was broken, and how often the documents
    let it bend.
    """

    name: str
    looked: int = 0
    excused: int = 0
    breaches: list[str] = field(default_factory=list)

    def hit(self, text: str) -> None:
        """A breach."""
        self.breaches.append(text)

    def judge(self, broken: bool, excuse: bool, text: str) -> None:
        """Look once: a breach unless there is an excuse."""
        self.looked += 1
        if broken and excuse:
            self.excused += 1
        elif broken:
            self.hit(text)
