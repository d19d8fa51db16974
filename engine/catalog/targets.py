"""Where the dead letters of a queue go: to the life of the dead-letter queue that its policy names,
and only while somebody may send there who answers for the policy.

A name alone is no right: whoever creates a queue of the name of a deleted one would get what was
meant for the old one. A policy whose target is not the one it means moves nothing, and has no other
effect; `fault` says why. Records of before noted no life: such a policy means the queue that was
there when its queue was last changed (docs/decisions/0031). Neighbours: receives, kills and moves
ask each time.
"""

from __future__ import annotations

import msgspec

from engine.catalog.catalog import Catalog
from engine.catalog.rights import Rights
from engine.rules.queue import Queue
from schemas.records import QueueRecord, RedrivePolicy
from schemas.vocabulary import NO_INCARNATION, PolicyFault, Verb


class Targets:
    """Dead-letter queues, as the records of now name them. No call waits for anything."""

    def __init__(self, catalog: Catalog, rights: Rights) -> None:
        self._catalog = catalog
        self._rights = rights

    def of(self, queue: Queue, tag: int) -> Queue | None:
        """Where what dies under a tag goes now; None = nothing is moved."""
        policy = queue.policies[tag]
        if policy is None or self.fault(queue.record, policy):
            return None
        return self._catalog.queues.get(policy.dead_letter_queue)

    def most_receives(self, queue: Queue, tag: int) -> int:
        """After how many deliveries a message dies under a tag; 0 = never."""
        policy = queue.policies[tag]
        return 0 if policy is None or self.fault(queue.record, policy) else policy.max_receive_count

    def fault(self, record: QueueRecord, policy: RedrivePolicy) -> str:
        """Why a policy moves nothing, a PolicyFault word; empty = it does."""
        target = self._catalog.queues.get(policy.dead_letter_queue)
        if target is None:
            return PolicyFault.MISSING
        if not _means(record, policy, target):
            return PolicyFault.ANOTHER
        # Who set it, or whose messages they are: that an administrator leaves must stop no dead
        # letters that the owner may send.
        return "" if any(self._may_send(who, target) for who in (record.owner, policy.set_by) if who) else PolicyFault.FORBIDDEN

    def stopped(self, queue: Queue) -> int:
        """How many policies of a queue and its tags move nothing."""
        policies = (queue.record.redrive_policy, *(tag.redrive_policy for tag in queue.tags))
        return sum(policy is not None and bool(self.fault(queue.record, policy)) for policy in policies)

    def _may_send(self, principal: str, target: Queue) -> bool:
        return self._rights.still_may(principal, Verb.SEND, target)

    def sources(self, target: Queue) -> list[str]:
        """Queues with a policy that means this life of a queue, in order."""
        names = self._catalog.sources.get(target.name, ())
        return sorted(name for name in names if self._is_source(self._catalog.queues[name].record, target))

    def _is_source(self, record: QueueRecord, target: Queue) -> bool:
        policies = (record.redrive_policy, *(tag.redrive_policy for tag in record.tags))
        return any(p is not None and p.dead_letter_queue == target.name and _means(record, p, target) for p in policies)

    def noted(self, record: QueueRecord) -> QueueRecord:
        """The record with the lives that its policies mean: to be called before it is written, for
        what is not noted is judged by when that was last.
        """
        policy = self._noted(record, record.redrive_policy)
        tags = [msgspec.structs.replace(tag, redrive_policy=self._noted(record, tag.redrive_policy)) for tag in record.tags]
        if policy == record.redrive_policy and tags == record.tags:
            return record
        return msgspec.structs.replace(record, redrive_policy=policy, tags=tags)

    def _noted(self, record: QueueRecord, policy: RedrivePolicy | None) -> RedrivePolicy | None:
        if policy is None or policy.dead_letter_incarnation:
            return policy
        target = self._catalog.queues.get(policy.dead_letter_queue)
        known = target is not None and _means(record, policy, target)
        return msgspec.structs.replace(policy, dead_letter_incarnation=target.incarnation if target and known else NO_INCARNATION)


def _means(record: QueueRecord, policy: RedrivePolicy, target: Queue) -> bool:
    """Whether a policy of a queue means this life of its dead-letter queue."""
    if policy.dead_letter_incarnation:
        return policy.dead_letter_incarnation in target.lives
    return target.record.created_at_ms <= record.modified_at_ms


def as_asked(policy: RedrivePolicy | None) -> RedrivePolicy | None:
    """What a caller asks for, and is shown: without what was noted of it."""
    return None if policy is None else RedrivePolicy(policy.dead_letter_queue, policy.max_receive_count)
