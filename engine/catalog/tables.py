"""The records of the control topic that count, by name: what every worker has in memory."""

from __future__ import annotations

import bisect
from typing import TypeVar

from engine.errors import EngineError, QueueNotFound, QueueRenewed
from engine.rules.queue import Queue
from runtime.signals import Signal
from schemas.accounts import account_of
from schemas.records import (
    ClaimRecord,
    GenerationRecord,
    KeyRecord,
    OutcomesRecord,
    ProducerGroupRecord,
    QueueRecord,
    TaskRecord,
    UserRecord,
)
from schemas.records.watching import WatchRecord
from schemas.wire import AnyRecord

REMEMBER_DELETED_MS = 60_000

_T = TypeVar("_T")

ControlRecord = (
    QueueRecord
    | KeyRecord
    | TaskRecord
    | OutcomesRecord
    | UserRecord
    | ProducerGroupRecord
    | WatchRecord
    | GenerationRecord
    | ClaimRecord
)


class Tables:
    """All control records that count. `changing` tells of each that is about to count, by its kind
    and name, `queue_gone` of each queue whose life is over, `rights_changed` of rights that
    somebody may have lost: with the queue of an incarnation, "" = with any; `resumed` of each queue
    with a tag that is paused no more. `changes`: how many records were taken; `key_changes`: how
    many of keys. `named` tells which life of Redis was named before, which now, and when that was
    by the log (ms); `claimed` of each claim.
    """

    def __init__(self, prefix: str, queue_gone: Signal[[Queue]]) -> None:
        self._prefix = prefix
        self._queue_gone = queue_gone
        self.changing: Signal[[str, str]] = Signal()
        self.rights_changed: Signal[[str]] = Signal()
        self.resumed: Signal[[Queue]] = Signal()
        self.queues: dict[str, Queue] = {}
        self.names: list[str] = []
        self.by_incarnation: dict[str, Queue] = {}
        self.by_life: dict[str, Queue] = {}  # also by what a queue was called before it was renewed
        self.masked: dict[str, Queue] = {}  # those with a mask, by name
        self.keys: dict[str, KeyRecord] = {}
        self.accounts: dict[str, int] = {}  # how many keys each account has but the default one
        self.tasks: dict[str, TaskRecord] = {}
        self.outcomes: dict[str, OutcomesRecord] = {}  # by <task>/<page>
        self.users: dict[str, UserRecord] = {}
        self.producer_groups: dict[str, ProducerGroupRecord] = {}
        self.watches: dict[str, WatchRecord] = {}  # by the name of the queue, which may have another life by now
        self.sources: dict[str, set[str]] = {}
        self.unfinished: dict[str, QueueRecord] = {}
        self.deleted: dict[str, int] = {}  # when (epoch ms), oldest first; at least those of the last minute
        self.named: Signal[[GenerationRecord, GenerationRecord, int]] = Signal()
        self.claimed: Signal[[ClaimRecord]] = Signal()
        self.life = GenerationRecord(0, "", 0)
        self.generation = 0
        self.changes = self.key_changes = 0

    def put(self, kind: str, name: str, value: AnyRecord | None, at_ms: int) -> None:
        """Takes a record, of which the log says `at_ms`; None = it is deleted."""
        self.changing(kind, name)
        self.changes += 1
        if kind == "queue" and (value is None or isinstance(value, QueueRecord)):
            was_there = name in self.queues
            self._apply_queue(name, value)
            if was_there and name not in self.queues:
                self._remember_deleted(name, at_ms)
        elif kind == "key" and (value is None or isinstance(value, KeyRecord)):
            self._count_account(self.keys.get(name), -1)
            put(self.keys, name, value)
            self._count_account(value, 1)
            self.key_changes += 1
            self.rights_changed("")
        elif kind == "task" and (value is None or isinstance(value, TaskRecord)):
            put(self.tasks, name, value)
        elif kind == "outcomes" and (value is None or isinstance(value, OutcomesRecord)):
            put(self.outcomes, name, value)
        elif kind == "user" and (value is None or isinstance(value, UserRecord)):
            put(self.users, name, value)
        elif kind == "producers" and (value is None or isinstance(value, ProducerGroupRecord)):
            put(self.producer_groups, name, value)
        elif kind == "watch" and (value is None or isinstance(value, WatchRecord)):
            put(self.watches, name, value)
        elif kind == "generation" and isinstance(value, GenerationRecord):
            before, self.life, self.generation = self.life, value, value.generation
            self.named(before, value, at_ms)
        elif kind == "claim" and isinstance(value, ClaimRecord):
            self.claimed(value)

    def future(self) -> Tables:
        """A copy of what is known of queues, to see what would be: nobody is told of it."""
        copied = Tables(self._prefix, Signal[[Queue]]())
        copied.queues.update(self.queues)
        copied.names.extend(self.names)
        copied.by_incarnation.update(self.by_incarnation)
        copied.by_life.update(self.by_life)
        copied.sources.update({name: set(sources) for name, sources in self.sources.items()})
        return copied

    def ended(self, queue: Queue) -> EngineError:
        """Why a life of a queue is not in the catalog: QueueNotFound, or QueueRenewed when there is
        a later one, which a verb that is repeated finds.
        """
        if queue.name in self.queues:
            return QueueRenewed(f"queue {queue.name!r} began a new life meanwhile: ask again")
        return QueueNotFound(f"queue {queue.name!r} was deleted", field="queue", given=queue.name)

    def _apply_queue(self, name: str, record: QueueRecord | None) -> None:
        old = self.queues.pop(name, None)
        if old is not None:
            self.names.remove(name)
            self.masked.pop(name, None)
            self.by_incarnation.pop(old.incarnation, None)
            for life in old.lives:
                self.by_life.pop(life, None)
            for target in old.dead_letter_queues:
                self.sources.get(target, set()).discard(name)
        self.unfinished.pop(name, None)
        if record is not None and record.deleting:
            self.unfinished[name] = record
        elif record is not None:
            queue = Queue(record, self._prefix)
            self.queues[name] = queue
            self.by_incarnation[record.incarnation] = queue
            self.by_life.update(dict.fromkeys(queue.lives, queue))
            if queue.hides is not None:
                self.masked[name] = queue
            bisect.insort(self.names, name)
            for target in queue.dead_letter_queues:
                self.sources.setdefault(target, set()).add(name)
        if old is not None and (record is None or record.deleting or record.incarnation != old.incarnation):
            self._queue_gone(old)
        elif (
            old is not None
            and record is not None
            and (old.record.grants, old.record.owner) != (record.grants, record.owner)
        ):
            self.rights_changed(record.incarnation)
        now = self.queues.get(name)
        if old is not None and now is not None and old.paused - now.paused:
            self.resumed(now)

    def _count_account(self, key: KeyRecord | None, keys: int) -> None:
        account = "" if key is None else account_of(key.principal)
        if account:
            put(self.accounts, account, self.accounts.get(account, 0) + keys or None)

    def _remember_deleted(self, name: str, at_ms: int) -> None:
        self.deleted.pop(name, None)
        self.deleted[name] = at_ms
        while (oldest := next(iter(self.deleted))) != name and self.deleted[oldest] < at_ms - REMEMBER_DELETED_MS:
            del self.deleted[oldest]


def put(table: dict[str, _T], name: str, value: _T | None) -> None:
    """Sets a row of a table; None = takes it away."""
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
