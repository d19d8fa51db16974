"""A queue as the engine works with it: its record plus what follows from it, computed once per
change, and the ids of its messages. Immutable.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.errors import TagNotFound
from engine.rules.masks.mask import Mask
from schemas.accounts import account_of
from schemas.filters import matches
from schemas.identity import BadIdentity, Handle, MessageId, ids_of
from schemas.records import QueueRecord, TagRecord
from schemas.records.settings import BLOCK, PARK, RedrivePolicy
from schemas.topics import queue_topic
from schemas.vocabulary import DEFAULT_TAG, RetentionFrom
from state.keys import Unit

# Longer than any time of this clock, and exact in Lua's numbers.
NEVER_MS: Final = 2**52
# More often than any message is received: a redrive policy is there, and nothing dies by its count.
NEVER_COUNT: Final = 2**32


class Bounds(NamedTuple):
    """How often a message may be received under a tag: so often, then it dies, or parks its group.
    0 = however often; `dead_letter` 0 = nothing dies, for there is no redrive policy.
    """

    dead_letter: int
    park: int


class Queue:
    """One life of a queue: record, topic, units, tags."""

    __slots__ = (
        "account",
        "bounds",
        "by_name",
        "dead_letter_queues",
        "expires_from_send",
        "expires_ms",
        "hides",
        "incarnation",
        "is_limited",
        "lives",
        "name",
        "paused",
        "policies",
        "record",
        "tag_ids",
        "tag_mask",
        "tags",
        "topic",
        "units",
    )

    def __init__(self, record: QueueRecord, prefix: str) -> None:
        self.record = record
        self.name = record.name
        self.account = account_of(record.name)
        self.incarnation = record.incarnation
        # A queue that was renewed is the same to all who were given a right, or have named it.
        self.lives = frozenset((record.incarnation, *record.former_incarnations))
        self.topic = queue_topic(prefix, record.name)
        # How long after it was due, or was sent (`expires_from_send`), a message that is open under
        # a tag is received; NEVER_MS = for ever.
        self.expires_ms = NEVER_MS if record.keep_unacked else record.retention_ms
        self.expires_from_send = record.retention_from == RetentionFrom.SEND
        self.units = [Unit(record.incarnation, p) for p in range(record.partitions)]
        self.tags = record.tags
        self.tag_ids = [tag.id for tag in record.tags]
        self.by_name = {tag.name: tag for tag in record.tags}
        if record.default_tag_name:
            self.by_name[record.default_tag_name] = record.tags[0]
        # Whether it, or a tag, has a quota.
        limits = record.read_qps, record.write_qps, record.daily_bytes, record.waits
        self.is_limited = any(limits) or any(tag.read_qps for tag in record.tags)
        # When messages die under a tag, and where they go: the tag's own policy, else the queue's.
        self.policies = {tag.id: tag.redrive_policy or record.redrive_policy for tag in record.tags}
        self.bounds = {tag: _bounds(record, policy) for tag, policy in self.policies.items()}
        all_policies = (record.redrive_policy, *self.policies.values())
        self.dead_letter_queues = frozenset(policy.dead_letter_queue for policy in all_policies if policy is not None)
        # Tags under which nobody receives, by their numbers.
        self.paused = frozenset(tag.id for tag in record.tags if record.paused or tag.paused)
        # What is hidden of its messages from who only looks; None = nothing.
        self.hides = Mask(record.mask) if record.mask else None
        # Of every message; None = it depends on the message, for a tag has a filter.
        self.tag_mask = "1" * len(record.tags) if all(tag.filter is None for tag in record.tags) else None

    def plain_mask(self) -> str:
        """Returns a digit for each tag: 1 = it wants a message without attributes."""
        return "".join("1" if matches(tag.filter, {}) else "0" for tag in self.tags)

    def tag(self, name: str | None) -> TagRecord:
        """The tag of that name, None = the default tag. Raises TagNotFound."""
        tag = self.by_name.get(name or DEFAULT_TAG)
        if tag is None:
            raise TagNotFound(f"queue {self.name!r} has no tag {name!r}", field="tag", given=name)
        return tag


def _bounds(record: QueueRecord, policy: RedrivePolicy | None) -> Bounds:
    if record.on_exhausted == PARK:
        return Bounds(NEVER_COUNT if policy else 0, policy.max_receive_count if policy else record.max_receive_count)
    if policy is None:
        return Bounds(0, 0)
    return Bounds(NEVER_COUNT if record.on_exhausted == BLOCK else policy.max_receive_count, 0)


class Ids:
    """The secret that signs ids and receipt handles, and what is made and read with it. What was
    made with `old` is read, too; "" = there is none.
    """

    def __init__(self, secret: str, old: str = "") -> None:
        self.secret = secret.encode()
        self._old = old.encode()

    def message_id(self, queue: Queue, partition: int, offset: int) -> str:
        return ids_of(self.secret, queue.incarnation, partition)(offset)

    def id_of(self, address: MessageId) -> str:
        """The id of the message at an address, be its queue there or not."""
        return address.text(self.secret)

    def read_id(self, text: str) -> MessageId:
        """Raises BadIdentity."""
        try:
            return MessageId.parse(text, self.secret)
        except BadIdentity:
            if not self._old:
                raise
            return MessageId.parse(text, self._old)

    def read_handle(self, text: str) -> Handle:
        """Raises BadIdentity."""
        try:
            return Handle.parse(text, self.secret)
        except BadIdentity:
            if not self._old:
                raise
            return Handle.parse(text, self._old)
