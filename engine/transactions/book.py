"""Transactions as the topic of half messages tells of them, in the memory of each worker.

The topic is read in its order, and **the first decision about a transaction counts**: so every
worker comes to the same outcome, whoever wrote what when. Each decision has a key of its own, so
Kafka's compaction drops none before the transaction is forgotten. A decision without its half is
either old (Kafka has dropped the half since) or comes from a worker that was stopped until the
transaction was forgotten: it counts once a step `done` follows, which only a finished one has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from engine.log import Record
from schemas.records import TransactionRecord
from schemas.vocabulary import DecisionReason, TransactionStatus, TransactionStep
from schemas.wire import UndecodableRecord, decode

_OUTCOMES = {
    TransactionStep.COMMIT: TransactionStatus.COMMITTED,
    TransactionStep.ROLLBACK: TransactionStatus.ROLLED_BACK,
}

# Of open half messages a worker keeps so many bytes in memory.
HALF_BYTES = 32_000_000


class Transaction:
    """A transaction. Times are epoch ms; those of appends are the log's.

    `offset`: of its half, -1 = Kafka has dropped it. `checks`: how often its producers could be
    asked, the last time at `checked_at_ms`. `keys`: of its records other than the half, the
    decision that counts last. `value`: its half, if this worker keeps it. `decided_read_at`: when
    this worker read the decision, by its own clock. `is_given_up`: it has begun to carry it out,
    and failed.
    """

    __slots__ = (
        "attempts", "checked_at_ms", "checks", "count", "decided_at_ms", "decided_by", "decided_read_at", "done",
        "half_dropped", "id", "immunity_ms", "incarnation", "is_given_up", "keys", "offset", "places",
        "prepared_at_ms", "principal", "producer_group", "queue", "reason", "shard", "status", "value",
    )  # fmt: skip

    def __init__(self, record: TransactionRecord, shard: int, offset: int, prepared_at_ms: int) -> None:
        self.id = record.id
        self.shard = shard
        self.offset = offset
        self.queue = record.queue
        self.incarnation = record.incarnation
        self.producer_group = record.producer_group
        self.principal = record.principal
        self.prepared_at_ms = prepared_at_ms
        self.immunity_ms = record.immunity_ms
        self.count = record.count
        self.checks = 0
        self.checked_at_ms = 0
        self.status = TransactionStatus.OPEN
        self.reason = ""
        self.decided_at_ms = 0
        self.decided_read_at = 0.0
        self.decided_by = ""
        self.attempts = 0
        self.done = self.half_dropped = self.is_given_up = False
        self.places: list[tuple[int, int]] = []
        self.keys: list[bytes] = []
        self.value: bytes | None = None

    @property
    def is_open(self) -> bool:
        return self.status == TransactionStatus.OPEN

    @property
    def is_finished(self) -> bool:
        """Nothing is left to do for it."""
        return self.done and self.half_dropped

    def give_up(self) -> None:
        """This worker failed to carry it out: nobody need wait for it."""
        self.is_given_up = True

    def next_check_ms(self, interval_ms: int) -> int:
        """When its producers may be asked next."""
        return self.checked_at_ms + interval_ms if self.checks else self.prepared_at_ms + self.immunity_ms


class Book:
    """The transactions of all shards; `apply` is called in the order of each shard.

    `asked(transaction)` hears of each check as it is read. Of halves that are open it keeps
    `most_bytes` in memory, so that most commits need not read Kafka again.
    """

    def __init__(self, most_bytes: int, asked: Callable[[Transaction], None]) -> None:
        self._most_bytes = most_bytes
        self._asked = asked
        self.of: dict[str, Transaction] = {}
        self.open: dict[int, dict[str, Transaction]] = {}
        self.unfinished: dict[int, dict[str, Transaction]] = {}
        self.decided: dict[int, dict[str, Transaction]] = {}
        self.open_of: Counter[str] = Counter()
        self._orphans: dict[str, Transaction] = {}  # decided, without a half and not known to be done
        self.kept_bytes = 0
        self.unreadable = 0

    @property
    def open_count(self) -> int:
        return sum(map(len, self.open.values()))

    def apply(self, record: Record, read_at: float = 0.0) -> None:
        """Takes in the next record of a shard, and when it was read."""
        key = record.key or b""
        of, _, rest = key.decode("utf-8", "replace").partition("/")
        if not record.value:
            self._drop(record.partition, of, key, rest)
            return
        try:
            step = decode(record.value)
        except UndecodableRecord:
            self.unreadable += 1
            return
        if not isinstance(step, TransactionRecord) or step.id != of:
            self.unreadable += 1
        elif step.step == TransactionStep.HALF:
            self._prepare(record, step)
        elif step.step in _OUTCOMES:
            self._decide(record, step, read_at)
        else:
            self._note(record, step)

    def _prepare(self, record: Record, step: TransactionRecord) -> None:
        if step.id in self.of:
            return  # written twice by Kafka's client: the first counts
        one = self.of[step.id] = Transaction(step, record.partition, record.offset, record.timestamp_ms)
        self.open.setdefault(record.partition, {})[one.id] = one
        self.open_of[one.incarnation] += 1
        value = record.value or b""
        if self.kept_bytes + len(value) <= self._most_bytes:
            one.value = value
            self.kept_bytes += len(value)

    def _decide(self, record: Record, step: TransactionRecord, read_at: float) -> None:
        key = record.key or b""
        one = self.of.get(step.id) or self._orphans.get(step.id)
        if one is None:
            one = self._orphans[step.id] = Transaction(step, record.partition, -1, step.prepared_at_ms)
            one.half_dropped = True
        if not one.is_open:
            one.keys.insert(0, key)
            return
        self._close(record.partition, one)
        one.status = _OUTCOMES[TransactionStep(step.step)]
        one.reason, one.decided_by, one.decided_at_ms = step.reason, step.decided_by, record.timestamp_ms
        one.decided_read_at = read_at
        one.keys.append(key)
        if step.id in self.of:
            self.unfinished.setdefault(record.partition, {})[one.id] = one
            self.decided.setdefault(record.partition, {})[one.id] = one

    def _close(self, shard: int, one: Transaction) -> None:
        if self.open.get(shard, {}).pop(one.id, None) is not None:
            self.open_of[one.incarnation] -= 1
            if self.open_of[one.incarnation] <= 0:
                del self.open_of[one.incarnation]

    def _note(self, record: Record, step: TransactionRecord) -> None:
        one = self.of.get(step.id) or self._orphans.get(step.id)
        if one is None:
            return
        key = record.key or b""
        if key not in one.keys:
            one.keys.insert(0, key)
        if step.step == TransactionStep.CHECK:
            if one.is_open and step.check > one.checks:
                one.checks, one.checked_at_ms = step.check, record.timestamp_ms
                self._asked(one)
        elif step.step == TransactionStep.ATTEMPT:
            one.attempts += 1
        elif not one.done:
            self._end(record.partition, one, step)

    def _end(self, shard: int, one: Transaction, step: TransactionRecord) -> None:
        one.done = True
        one.places = list(zip(step.partitions, step.offsets, strict=False))
        if step.reason == DecisionReason.QUEUE_GONE:
            one.reason = step.reason
        self._settle(shard, one)

    def _settle(self, shard: int, one: Transaction) -> None:
        """It is known to be done."""
        self._release(one)
        if self._orphans.pop(one.id, None) is not None:
            self.of[one.id] = one
            self.decided.setdefault(shard, {})[one.id] = one
        if one.is_finished:
            self.unfinished.get(shard, {}).pop(one.id, None)

    def _release(self, one: Transaction) -> None:
        if one.value is not None:
            self.kept_bytes -= len(one.value)
            one.value = None

    def _drop(self, shard: int, id: str, key: bytes, rest: str) -> None:
        one = self.of.get(id) or self._orphans.get(id)
        if one is None:
            return
        if not rest:  # only of what is done, also when the step that says so is forgotten already
            one.half_dropped = one.done = True
            self._settle(shard, one)
        elif key in one.keys:
            one.keys.remove(key)
        if one.half_dropped and not one.keys:
            self._forget(shard, one)

    def _forget(self, shard: int, one: Transaction) -> None:
        self._close(shard, one)
        self._release(one)
        for kept in (self.of, self._orphans, self.unfinished.get(shard, {}), self.decided.get(shard, {})):
            kept.pop(one.id, None)

    def forget_shard(self, shard: int) -> None:
        """All of a shard is to be read again."""
        for one in list(self.of.values()):
            if one.shard == shard:
                self._forget(shard, one)
        for one in self.orphans():
            if one.shard == shard:
                self._forget(shard, one)

    def orphans(self) -> list[Transaction]:
        """Decisions about transactions that are not known: to be dropped when they are old."""
        return list(self._orphans.values())
