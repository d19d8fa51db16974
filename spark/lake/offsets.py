"""How far a table has got in each topic, and what to copy next. Pure: no Spark, no Kafka.

A snapshot carries this as a property, so rows and offsets are committed together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

PROPERTY = "leaseway.offsets"
# A topic that no broker knows is forgotten after this long: a broker that has just started may not
# know all of them.
_GONE_MS = 24 * 3_600_000

Ends = dict[str, dict[int, int]]  # topic -> partition -> one after the last offset


@dataclass(frozen=True)
class Held:
    """What a table has of a topic: of the topic with this `id`, all before `next` of each
    partition. `gone_ms`: since when there is no such topic.
    """

    id: str
    next: Mapping[int, int]
    gone_ms: int | None = None


@dataclass(frozen=True)
class Topic:
    """A topic as it is: its id, the `first` offset that each partition still has, and the `end` of
    what may be read.
    """

    id: str
    first: Mapping[int, int]
    end: Mapping[int, int]


@dataclass
class Plan:
    """What one commit is to take: offsets `begin` to before `end` of each partition."""

    begin: Ends = field(default_factory=dict)
    end: Ends = field(default_factory=dict)
    cut: set[tuple[str, int]] = field(default_factory=set)  # Partitions that have more than `end`.
    lost: dict[str, int] = field(default_factory=dict)  # Offsets that retention took before we came, by topic.
    remade: list[str] = field(default_factory=list)  # Topics that are others than those we knew by the name.

    @property
    def records(self) -> int:
        """How many offsets it takes."""
        return sum(end - self.begin[topic][p] for topic, ends in self.end.items() for p, end in ends.items())


def parse(text: str) -> dict[str, Held]:
    """The offsets of a property, by topic."""
    return {
        topic: Held(given["id"], dict(enumerate(given["next"])), given.get("gone"))
        for topic, given in json.loads(text).items()
    }


def text_of(held: Mapping[str, Held]) -> str:
    """The property for these offsets: {topic: {"id": ..., "next": [offset of each partition]}}."""
    told = {}
    for topic, has in sorted(held.items()):
        numbers = [has.next.get(partition, 0) for partition in range(max(has.next, default=-1) + 1)]
        told[topic] = {"id": has.id, "next": numbers, **({} if has.gone_ms is None else {"gone": has.gone_ms})}
    return json.dumps(told, separators=(",", ":"))


def planned(held: Mapping[str, Held], topics: Mapping[str, Topic], most: int) -> Plan:
    """What to take next: all that is there, or about `most` records of it, of each partition its
    share.
    """
    plan = Plan()
    behind: dict[tuple[str, int], tuple[int, int]] = {}
    for topic, now in topics.items():
        had = held.get(topic)
        if had is not None and had.id != now.id:
            plan.remade.append(topic)
            had = None
        for partition, end in now.end.items():
            begin = now.first[partition]
            if had is not None and partition in had.next:
                plan.lost[topic] = plan.lost.get(topic, 0) + max(0, begin - had.next[partition])
                begin = max(begin, had.next[partition])
            if begin < end:
                behind[topic, partition] = begin, end
    plan.lost = {topic: records for topic, records in plan.lost.items() if records}
    whole = sum(end - begin for begin, end in behind.values())
    for (topic, partition), (begin, end) in behind.items():
        # Rounded up: each partition gets on.
        share = end if whole <= most else min(end, begin + (end - begin) * most // whole + 1)
        plan.begin.setdefault(topic, {})[partition] = begin
        plan.end.setdefault(topic, {})[partition] = share
        if share < end:
            plan.cut.add((topic, partition))
    return plan


def advanced(held: Mapping[str, Held], topics: Mapping[str, Topic], ends: Ends, now_ms: int) -> dict[str, Held]:
    """The offsets after a commit of what is before `ends`; what has no end there stays where it
    is.
    """
    found = {}
    for topic, had in held.items():
        since = had.gone_ms or now_ms
        if topic not in topics and now_ms - since <= _GONE_MS:
            found[topic] = Held(had.id, had.next, since)
    for topic, now in topics.items():
        before = held.get(topic)
        kept = before.next if before is not None and before.id == now.id else {}
        found[topic] = Held(now.id, {**kept, **ends.get(topic, {})})
    return found
