"""Fills a Kafka with the log of a day: queues, messages, dead letters and what happened to them,
written as the service writes it.

Messages carry the time of their slot of the day, so that minutes mean something.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from schemas.identity import MessageId
from schemas.records import JournalEntry, JournalRecord, Message, Origin, QueueRecord, TagRecord
from schemas.records.settings import RedrivePolicy
from schemas.wire import encode

PARTITIONS = 4
SHARES = {"orders": 0.7, "mails": 0.2, "bills": 0.1}
SENDERS = ("alice", "bob", "carol")
DAY_MS = 86_400_000
BLOCK = 200  # Messages of a unit that are leased and settled together in one record of the journal.
DEAD_SHARE, AGAIN_SHARE = 0.01, 0.24
LEASE_MS = 30_000


@dataclass
class Written:
    """What was written."""

    messages: int = 0
    dead_letters: int = 0
    entries: int = 0
    transitions: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)


@dataclass
class Unit:
    """One partition of one queue, and where its numbers are."""

    queue: str
    partition: int
    incarnation: str
    offset: int = 0
    seq: int = 0


def fill(bootstrap: str, prefix: str, messages: int, size: int, begin_ms: int, partitions: int = PARTITIONS) -> Written:
    """Writes topics `prefix`.*: `messages` bodies of `size` bytes over one day from `begin_ms` on,
    in so many partitions of each queue and of the journal; ends when Kafka has all.
    """
    return next(fill_days(bootstrap, prefix, messages, size, [begin_ms], partitions))


def fill_days(
    bootstrap: str, prefix: str, messages: int, size: int, begins: Sequence[int], partitions: int = PARTITIONS
) -> Iterator[Written]:
    """The same for several days, each when it is asked for: what has been written until its end."""
    # Idempotent, as the service's: a batch that is sent again must not come behind later ones.
    many = {"linger.ms": 20, "batch.size": 1 << 20, "queue.buffering.max.kbytes": 1 << 18}
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **many})
    _make_topics(bootstrap, prefix, partitions)
    _write_queues(producer, prefix, begins[0], partitions)
    written, chance = Written(), random.Random(1)
    units = [Unit(queue, partition, _incarnation(queue)) for queue in SHARES for partition in range(partitions)]
    for begin_ms in begins:
        for unit in units:
            count = int(messages * SHARES[unit.queue] / partitions)
            _fill_unit(producer, prefix, unit, count, size, begin_ms, written, chance)
        left = producer.flush(300)
        if left:
            raise SystemExit(f"Kafka did not take {left} records")
        yield written


def _incarnation(queue: str) -> str:
    return f"{zlib.crc32(queue.encode()):012x}"


def _names() -> Iterator[tuple[str, str | None]]:
    for queue in SHARES:
        yield queue, f"{queue}-dead"
        yield f"{queue}-dead", None


def _make_topics(bootstrap: str, prefix: str, partitions: int) -> None:
    config = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
    topics = [NewTopic(f"{prefix}.q.{queue}", partitions, 1, config=config) for queue, _ in _names()]
    topics += [
        NewTopic(f"{prefix}.journal", partitions, 1, config=config),
        NewTopic(f"{prefix}.control", 1, 1, config={"cleanup.policy": "compact"}),
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics(topics).values():
        made.result(60)


def _write_queues(producer: Producer, prefix: str, now_ms: int, partitions: int) -> None:
    for queue, dead in _names():
        policy = None if dead is None else RedrivePolicy(dead, 3)
        tags = [TagRecord(0, "default", now_ms, 0, [0] * partitions)]
        record = QueueRecord(
            queue, _incarnation(queue), "olga", now_ms, now_ms, partitions=partitions, lease_ms=LEASE_MS, tags=tags,
            next_tag_id=1,
            redrive_policy=policy,
        )  # fmt: skip
        producer.produce(f"{prefix}.control", encode(record), f"queue/{queue}".encode(), 0)


def _fill_unit(
    producer: Producer,
    prefix: str,
    unit: Unit,
    count: int,
    size: int,
    begin_ms: int,
    written: Written,
    chance: random.Random,
) -> None:
    dead_letters = Unit(f"{unit.queue}-dead", unit.partition, _incarnation(f"{unit.queue}-dead"))
    for start in range(0, count, BLOCK):
        few = min(BLOCK, count - start)
        at_ms = begin_ms + DAY_MS * start // count
        for n in range(few):
            value = encode(Message(_body(chance, size), sender=SENDERS[n % 3]))
            _produce(producer, f"{prefix}.q.{unit.queue}", unit.partition, value, at_ms + n)
        record, dead = _history(unit, few, at_ms + BLOCK, written, chance)
        _produce(producer, f"{prefix}.journal", unit.partition, record, at_ms + 120_000)
        for offset in dead:
            body = _body(chance, size, broken=True)
            _produce(
                producer,
                f"{prefix}.q.{dead_letters.queue}",
                unit.partition,
                _dead_letter(unit, offset, body, at_ms),
                at_ms + 110_000,
            )
            written.dead_letters += 1
        written.messages += few


def _produce(producer: Producer, topic: str, partition: int, value: bytes, at_ms: int) -> None:
    while True:
        try:
            producer.produce(topic, value, None, partition, timestamp=at_ms)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _history(unit: Unit, few: int, at_ms: int, written: Written, chance: random.Random) -> tuple[bytes, list[int]]:
    """One journal record: what became of the next `few` messages of the unit; the offsets of those
    that died.
    """
    offsets = list(range(unit.offset, unit.offset + few))
    unit.offset += few
    entries: list[JournalEntry] = []

    def tell(kind: str, at: int, some: list[int], until: int | None = None, reason: str = "") -> None:
        unit.seq += 1
        entries.append(JournalEntry(unit.seq, at, kind, 0, some, [] if until is None else [until] * len(some), reason))
        written.by_kind[kind] = written.by_kind.get(kind, 0) + len(some)

    dead = [o for o in offsets if chance.random() < DEAD_SHARE]
    again = [o for o in offsets if o not in dead and chance.random() < AGAIN_SHARE / (1 - DEAD_SHARE)]
    open_ = offsets
    for round_ in range(3):
        ends = set(dead) | (set(again) if round_ == 0 else set())
        began = at_ms + round_ * 35_000
        for some in _groups(open_, chance):
            took = int(chance.expovariate(1 / 40)) + 2
            tell("leased", began, some, began + LEASE_MS)
            if good := [o for o in some if o not in ends]:
                tell("acked", began + took, good)
            began += 7
        failed = [o for o in open_ if o in ends]
        last = [o for o in failed if round_ == 2]
        lapsed = [o for o in failed if not last and o % 2]
        released = [o for o in failed if not last and not o % 2]
        if released:
            tell("released", began + 900, released, began + 1_000)
        if lapsed:
            tell("lapsed", began + LEASE_MS, lapsed)
        if last:
            tell("dying", began + LEASE_MS, last, began + LEASE_MS, "exhausted")
            tell("dead", began + LEASE_MS + 40, last)
        open_ = failed
    written.entries += len(entries)
    written.transitions += sum(len(entry.offsets) for entry in entries)
    return encode(JournalRecord(unit.queue, unit.incarnation, unit.partition, entries)), dead


def _groups(offsets: list[int], chance: random.Random) -> Iterator[list[int]]:
    """One call each: a third of the messages singly, the rest in tens."""
    place = 0
    while place < len(offsets):
        most = 10 if chance.random() < 1 / 6 else 1
        yield offsets[place : place + most]
        place += most


def _body(chance: random.Random, size: int, *, broken: bool = False) -> bytes:
    order = {
        "id": f"{chance.getrandbits(64):016x}",
        "customer": chance.randint(1, 500_000),
        "currency": "XXX" if broken and chance.random() < 0.6 else chance.choice(("EUR", "USD", "GBP")),
        "amount": "much" if broken and chance.random() < 0.3 else chance.randint(1, 900),
        "pad": "",
    }
    text = json.dumps(order)
    return (text[:-2] + "x" * (size - len(text)) + '"}').encode()


def _dead_letter(unit: Unit, offset: int, body: bytes, at_ms: int) -> bytes:
    id_ = MessageId(unit.incarnation, unit.partition, offset).text(b"benchmark")
    origin = Origin(id_, "default", id_, unit.queue, "default", "exhausted", 3, at_ms + BLOCK, at_ms, at_ms + 110_000)
    return encode(Message(body, sender="alice", origin=origin))
