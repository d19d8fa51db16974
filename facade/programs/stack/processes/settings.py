"""What the stack's broker, redis-server and JVM are told, as tables."""

from __future__ import annotations

from typing import Final

# Holds for one broker and for three; what differs by the number of brokers is in `replication`.
BROKER_PROPERTIES: Final[dict[str, str]] = {
    # A typing error in a queue's name must not make a topic.
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    # Windows, retention and replay count from when the log took the record, not from a client's
    # clock.
    "log.message.timestamp.type": "LogAppendTime",
    # The largest batch of records; the largest message of any dialect is well below it.
    "message.max.bytes": "4194304",
    "replica.fetch.max.bytes": "4194304",
    # Fewer than Kafka's 50: every internal partition is two open files and a start-up cost.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "500",
    # The cleaner takes this at start; Kafka's 128 MiB is an eighth of our heap.
    "log.cleaner.dedupe.buffer.size": "33554432",
    # A partition's first records write to two index files of this size. Linux (6.18, ext4) gives
    # the whole of Kafka's 10 MiB a page of its own then: 3 ms, and up to 26 with many at once, so
    # 500 queues in use made 30 cycles a second. Indexes full, a segment ends at 85 MiB.
    "log.index.size.max.bytes": "262144",
}

REDIS_OPTIONS: Final[dict[str, str]] = {
    "appendonly": "yes",
    # With everysec it answers before it writes while it syncs, so one that is killed forgets
    # acks. What a power cut takes from the file is rebuilt from Kafka.
    "appendfsync": "no",
    # Snapshots would be a second, older truth beside the append-only file.
    "save": "",
    "maxmemory": "1gb",
    # Evicting a key would lose leases in silence: a full Redis must refuse instead.
    "maxmemory-policy": "noeviction",
}

# After so long without a heartbeat the controller fences a broker: others lead its partitions then.
# Of three, one that is gone is to be replaced soon.
SESSION_MS: Final = "3000"
# The only one can't be replaced: to fence it, because a busy machine kept its heartbeats waiting,
# only takes it away.
ONLY_SESSION_MS: Final = "18000"
# A broker that was killed can't register again until its session of before ends, by what the
# setting is now. So the only one has this for the life after: it is back within a send's 10 s.
AFTER_KILL: Final[dict[str, str]] = {"broker.session.timeout.ms": SESSION_MS}

# Serial: on two cores it starts as fast as G1 (2.0 s) and leaves the second core to the others.
JVM_FLAGS: Final[tuple[str, ...]] = (
    "-Xms256m",
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)


def replication(brokers: int) -> dict[str, str]:
    """Properties that depend on how many brokers there are (1 or more): copies and how many of them
    must have a record, and how soon one that says nothing is replaced.
    """
    copies = str(min(3, brokers))
    in_sync = "2" if brokers >= 3 else "1"
    return {
        "broker.session.timeout.ms": SESSION_MS if brokers > 1 else ONLY_SESSION_MS,
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
    }
