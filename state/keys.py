"""Spells every key in Redis. All keys of a unit share one hash tag, so that Redis Cluster keeps
them together.
"""

from __future__ import annotations

from msgspec import Struct


class Unit(Struct, frozen=True):
    """A partition of one life of a queue: the grain of scripts. `incarnation` is 12 hex digits."""

    incarnation: str
    partition: int


class UnitKeys:
    """Keys of one unit, spelled once."""

    __slots__ = (
        "_base",
        "_tags",
        "body",
        "dedup",
        "except_",
        "far",
        "ids",
        "meta",
        "origins",
        "outbox",
        "pending",
        "pointers",
        "refs",
    )

    def __init__(self, prefix: str, unit: Unit) -> None:
        self._base = f"{prefix}:{{{unit.incarnation}:{unit.partition}}}:"
        self.meta = self._base + "meta"
        self.body = self._base + "body"
        self.refs = self._base + "refs"
        self.outbox = self._base + "outbox"
        self.origins = self._base + "origins"
        self.dedup = self._base + "dedup"
        self.ids = self._base + "ids"
        self.pending = self._base + "pending"
        self.far = self._base + "far"
        self.except_ = self._base + "except"
        self.pointers = self._base + "pointers"
        self._tags: dict[int, TagKeys] = {}

    def tag(self, tag: int) -> TagKeys:
        keys = self._tags.get(tag)
        if keys is None:
            keys = self._tags[tag] = TagKeys(self._base, tag)
        return keys

    def all(self) -> list[str]:
        """Every key of the unit that is not a tag's."""
        return [
            self.meta, self.body, self.refs, self.outbox, self.origins, self.dedup, self.ids, self.pending,
            self.far, self.except_, self.pointers,
        ]  # fmt: skip


class TagKeys:
    """Keys of one tag of a unit."""

    __slots__ = ("ahead", "delayed", "delivery", "groups", "order", "visible")

    def __init__(self, base: str, tag: int) -> None:
        self.visible = f"{base}visible:{tag}"
        self.delivery = f"{base}delivery:{tag}"
        self.ahead = f"{base}ahead:{tag}"
        self.delayed = f"{base}delayed:{tag}"
        self.order = f"{base}order:{tag}"
        self.groups = f"{base}groups:{tag}"

    def all(self) -> list[str]:
        """Every key of the tag, in the order of the scripts that take all of them (load, purge,
        delete).
        """
        return [self.visible, self.ahead, self.delayed, self.delivery, self.order, self.groups]


def wake_channel(prefix: str, incarnation: str) -> str:
    """Channel of a queue's wake-ups; the payload is a partition number, with who wakes (`wake_up`)
    and, after a load, since when the first message is visible.
    """
    return f"{prefix}:wake:{incarnation}"


def wake_up(partition: int, name: str) -> str:
    """Payload of a wake-up that the worker of that name need not hear."""
    return f"{partition} {name}"


def lock_key(prefix: str, name: str) -> str:
    """A lock among workers: a string with the holder's token and its time."""
    return f"{prefix}:lock:{name}"


def clock_key(prefix: str) -> str:
    """What the time of the service is, against the clock of Redis: a hash."""
    return f"{prefix}:clock"


def quota_key(prefix: str, name: str) -> str:
    """What was used of a quota within this second: a hash with a time to live."""
    return f"{prefix}:quota:{name}"


def last_uses_key(prefix: str) -> str:
    """When each access key was used last: a hash of epoch ms by key id."""
    return f"{prefix}:key-uses"


def overview_key(prefix: str) -> str:
    """What was counted in each queue: a hash of packed numbers by incarnation."""
    return f"{prefix}:overview"


def changed_key(prefix: str) -> str:
    """The incarnations of queues that may have changed since they were counted: a set."""
    return f"{prefix}:changed"


def history_key(prefix: str, incarnation: str = "") -> str:
    """What a queue's numbers were: a hash of packed chunks by span and number; without a queue,
    when numbers were noted: bit maps by the same.
    """
    return f"{prefix}:history:{incarnation}" if incarnation else f"{prefix}:history"


def unsaved_key(prefix: str) -> str:
    """Names of chunks and bit maps of histories that the log does not have as they are: a set."""
    return f"{prefix}:history-unsaved"
