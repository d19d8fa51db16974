"""The topics that every installation has from its first start: how Kafka is to keep them."""

from __future__ import annotations

from typing import Final

from engine.log import MAX_RECORD_BYTES, TopicSpec
from engine.settings import EngineSettings
from schemas.topics import (
    METER_DAYS,
    METER_PARTITIONS,
    control_topic,
    history_topic,
    journal_topic,
    meter_topic,
    requests_topic,
    snapshot_topic,
)

# Rebuilds need the journal since the last snapshots only; the rest of this time is for analytics.
JOURNAL_KEEP_MS = str(30 * 86_400_000)
METER_KEEP_MS = str(METER_DAYS * 86_400_000)

# Kafka must not compact a control record away before what came after it was found not to count, nor
# a snapshot under its reader.
CONTROL_LAG_MS = 86_400_000
SNAPSHOT_LAG_MS = 3_600_000
_TIMES: Final = {"message.timestamp.type": "LogAppendTime"}
_LAG: Final = "min.compaction.lag.ms"
# What is set again on a topic that was there and has both.
KEPT: Final = {_LAG, *_TIMES}


def topics_of(s: EngineSettings) -> list[TopicSpec]:
    """The control topic, the journal, the meters, the requests, the snapshots and the histories."""
    replicas = {"min.insync.replicas": "2"} if s.replication_factor >= 3 else {}
    flush = {"flush.messages": str(s.flush_messages)} if s.flush_messages else {}
    common = {**_TIMES, "retention.bytes": "-1", **replicas, **flush}
    compact = {"cleanup.policy": "compact", "segment.ms": "3600000", **common}
    control = {**compact, _LAG: str(CONTROL_LAG_MS)}
    snapshots = {**compact, _LAG: str(SNAPSHOT_LAG_MS), "max.message.bytes": str(MAX_RECORD_BYTES)}
    rows = [
        (control_topic(s.topic_prefix), 1, control),
        (journal_topic(s.topic_prefix), s.journal_partitions, {**common, "retention.ms": JOURNAL_KEEP_MS}),
        (meter_topic(s.topic_prefix), METER_PARTITIONS, {**common, "retention.ms": METER_KEEP_MS}),
        (requests_topic(s.topic_prefix), 1, {**common, "retention.ms": METER_KEEP_MS}),
        (snapshot_topic(s.topic_prefix), s.journal_partitions, snapshots),
        (history_topic(s.topic_prefix), 1, compact),
    ]
    return [TopicSpec(name, partitions, s.replication_factor, config) for name, partitions, config in rows]
