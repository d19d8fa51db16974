"""The queues of a run, and what is promised of each beyond what is promised of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MANY = 40


@dataclass(frozen=True)
class Lane:
    """A queue; `dead` is its dead-letter queue and `dies_after` the deliveries that lead there."""

    name: str
    fifo: bool = False
    dead: str = ""
    dies_after: int = 0
    durable: bool = False
    tags: tuple[str, ...] = ("",)
    is_dead: bool = False
    still: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, Any]:
        """What a native creation of it says."""
        more: dict[str, Any] = dict(self.settings)
        if self.fifo:
            more["fifo"] = True
        if self.durable:
            more["durable_acks"] = True
        if self.dead:
            more["redrive_policy"] = {"dead_letter_queue": self.dead, "max_receive_count": self.dies_after}
        return more

    @property
    def plan(self) -> dict[str, Any]:
        """What the judge is told of it."""
        return {
            "fifo": self.fifo,
            "durable": self.durable,
            "dead_letters": self.dead,
            "max_count": self.dies_after,
            "kept": self.still,
            "tags": {"default": "", **{tag: "*" for tag in self.tags if tag}},
            **{name: self.settings[name] for name in ("content_dedup", "dedup_scope") if name in self.settings},
        }

    def places(self) -> list[str]:
        """Under which names it is received: `queue`, `queue@tag`."""
        return [f"{self.name}@{tag}" if tag else self.name for tag in self.tags]


def _dying(name: str, after: int) -> list[Lane]:
    dead = f"{name}-dead"
    return [Lane(dead, is_dead=True), Lane(name, dead=dead, dies_after=after)]


LANES: list[Lane] = [
    Lane("plain"),
    Lane("late"),
    Lane("firm", durable=True),
    Lane("line.fifo", fifo=True),
    Lane("wide.fifo", fifo=True, settings={"content_dedup": True, "dedup_scope": "group"}),
    *_dying("brief", 1),
    *_dying("gone", 1),
    *_dying("worn", 3),
    Lane("pair", tags=("", "b")),
    Lane("wiped"),
    Lane("wrong"),
    Lane("rest", still=True),
    *(Lane(f"m-{i:02}", settings={"partitions": 1 + i % 4}) for i in range(MANY)),
]
PROBES = [f"probe-{i}" for i in range(3)]
# It must be there: by value a filter asks for a type too, and SQS has `String` where the native
# dialect has `string`.
TAG_FILTER = {"conditions": [{"name": "kind"}]}
