"""A unit's window in plain Python: what the scripts promise, written the obvious way. The property
test compares the two.

It must not share code with state/.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Message:
    offset: int
    due: int
    sent: int
    lease: int | None
    wanted: set[int]
    group: str | None = None
    bare: bool = False  # no body is kept in the window


@dataclass
class Open:
    """A message that is open under one tag."""

    visible: int
    nonce: int = 0
    count: int = 0
    first: int = 0
    flag: int = 0


@dataclass
class Tag:
    start: int
    taken: set[int] = field(default_factory=set)
    open: dict[int, Open] = field(default_factory=dict)


@dataclass
class Model:
    """All tags of one unit, by the rules of docs/explanation/architecture.md; tests move `now`."""

    tags: dict[int, Tag]
    messages: dict[int, Message] = field(default_factory=dict)
    now: int = 1_000_000

    def load(self, tags: list[int], offsets: list[int]) -> None:
        for offset in offsets:
            for number in tags:
                tag = self.tags[number]
                if offset >= tag.start and offset not in tag.taken:
                    tag.taken.add(offset)
                    message = self.messages[offset]
                    if number in message.wanted:
                        tag.open[offset] = Open(message.due)

    def due(self, number: int) -> list[int]:
        return sorted(o for o, m in self.tags[number].open.items() if m.visible <= self.now)

    def receivable(self, number: int, max_count: int, retention: int) -> tuple[list[int], list[int], list[int]]:
        """(free to be leased, dying, expired) among what is due."""
        free, dying, expired = [], [], []
        for offset in self.due(number):
            m = self.tags[number].open[offset]
            message = self.messages[offset]
            # Without a body the window knows no more than when it was receivable at first, of a
            # message that was given back too.
            due = message.due if not message.bare else m.first if m.count else m.visible
            if m.flag not in (1, 2) and due + retention <= self.now:
                expired.append(offset)
            elif max_count and (m.flag in (1, 2) or m.count >= max_count):
                dying.append(offset)
            else:
                free.append(offset)
        return free, dying, expired

    def leased(self, number: int, offset: int, nonce: int, lease: int | None, queue_lease: int) -> int:
        m = self.tags[number].open[offset]
        own = self.messages[offset].lease
        length = lease if lease is not None else (own if own is not None else queue_lease)
        if m.count == 0:
            m.first = self.now
        m.count, m.nonce, m.flag, m.visible = m.count + 1, nonce, 0, self.now + max(length, 1)
        return m.visible

    def in_flight(self, number: int) -> dict[str, int]:
        """Groups of which messages are leased, or lapsed and not met since, with how many."""
        found: dict[str, int] = {}
        for offset, m in self.tags[number].open.items():
            group = self.messages[offset].group
            if group is not None and m.nonce and not m.flag:
                found[group] = found.get(group, 0) + 1
        return found

    def noisy(self, number: int) -> set[str]:
        counts = self.in_flight(number)
        return {group for group, count in counts.items() if count * 10 > sum(counts.values())}

    def held(self, number: int, offset: int, nonce: int, late: bool) -> str:
        """What a handle that was given out is good for: ok, or a StaleReason word."""
        m = self.tags[number].open.get(offset)
        if m is None:
            return "settled"
        if m.flag:
            return {1: "dying", 2: "dying", 3: "claimed"}[m.flag]
        if m.nonce != nonce:
            return "superseded" if m.nonce else "released"
        return "ok" if m.visible > self.now or late else "expired"

    def counts(self, number: int) -> tuple[int, int, int]:
        """(ready, delayed, leased)."""
        values = self.tags[number].open.values()
        ready = sum(m.visible <= self.now for m in values)
        leased = sum(m.visible > self.now and m.nonce != 0 for m in values)
        return ready, len(values) - ready - leased, leased
