"""The column contract: the StructType of every frame that `tables.py` gives. Who analyses writes
against this page.

Units: `*_at` are timestamps (Kafka's log-append time or Redis' clock, to the millisecond), `*_ms`
durations in milliseconds, `*_bytes` bytes. A column is only ever added.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TEXT, BYTES, FLAG, INT, LONG, TIME = (
    StringType(),
    BinaryType(),
    BooleanType(),
    IntegerType(),
    LongType(),
    TimestampType(),
)


def row(**fields: DataType) -> StructType:
    """A StructType with these nullable fields, in this order."""
    return StructType([StructField(name, kind, True) for name, kind in fields.items()])


ATTRIBUTE = row(type=TEXT, value=BYTES)
BATCH_MARK = row(id=TEXT, index=INT, size=INT)
ORIGIN = row(
    from_id=TEXT,
    from_tag=TEXT,
    original_id=TEXT,
    original_queue=TEXT,
    original_tag=TEXT,
    reason=TEXT,
    receive_count=LONG,
    first_received_at_ms=LONG,
    original_sent_at_ms=LONG,
    moved_at_ms=LONG,
    note=TEXT,
)

# One row per record of a queue's topic, whatever is in it. Key: queue, partition, offset.
MESSAGES = row(
    queue=TEXT,
    incarnation=TEXT,  # Life of the queue now (12 hex digits); null when the control topic does not know the queue.
    partition=INT,
    offset=LONG,
    sent_at=TIME,  # Log-append time.
    due_at=TIME,  # sent_at + delay: first receivable.
    # shown | undecided | torn (atomic batch not whole yet / never) | undecodable | repeated (second
    # copy of a commit; in reports also what a FIFO queue drops, since it repeats a message). Only
    # `shown` is ever received.
    status=TEXT,
    native=FLAG,  # A Kafka-native producer wrote it: value = body, headers = attributes.
    # Id in a Confluent head, whoever registered it (null = no such head). Native and not null =
    # foreign or newer.
    schema_id=INT,
    body=BYTES,
    body_text=TEXT,  # The body as text, null when it is not text.
    body_bytes=LONG,
    attributes=MapType(TEXT, ATTRIBUTE),
    delay_ms=LONG,
    lease_ms=LONG,  # Null = the queue's setting.
    sender=TEXT,  # Principal; `native` = a Kafka-native producer, also of what the service has moved since.
    group=TEXT,
    dedup_id=TEXT,
    dedup_scope=TEXT,  # queue | group: within what the id is unique; null = of no FIFO queue that is known.
    priority=INT,
    batch=BATCH_MARK,  # Null = sent singly.
    origin=ORIGIN,  # Null = sent here first; else it was moved here (dead letter, redrive).
)

# One row per entry and offset, repeated entries dropped. Key: incarnation, partition, seq, offset.
JOURNAL = row(
    queue=TEXT,
    incarnation=TEXT,
    partition=INT,
    seq=LONG,
    at=TIME,  # Redis' clock.
    kind=TEXT,  # A word of EventKind. Of `purged` and `floor` the offset is the bound: all below it.
    tag=TEXT,  # Name; '#3' for tag 3 when the control topic no longer knows it.
    tag_id=INT,
    offset=LONG,
    until=TIME,  # The entry's time for this offset: deadline, or when receivable again; null = it has none.
    reason=TEXT,  # A word of Reason or ''; the move key of kind `copied`, the task's id of kind `moved`.
    logged_at=TIME,  # Log-append time of the journal's record.
    leads=FLAG,  # True for the first offset of an entry: counting these counts entries, which are calls.
)

# How a delivery ends. Lapsed also when nobody has noticed; killed, and each that removed the
# message from under its holder.
DELIVERY_ENDS = ("acked", "released", "lapsed", "killed", "purged", "expired", "deleted", "moved", "open")

# One row per delivery (a message leased under a tag once). Key: incarnation, partition, tag_id,
# nonce, offset.
DELIVERIES = row(
    queue=TEXT,
    incarnation=TEXT,
    tag=TEXT,
    tag_id=INT,
    partition=INT,
    offset=LONG,
    nonce=LONG,  # seq of the entry that leased it.
    receive_count=INT,  # 1 = first delivery in the range that was read.
    sent_at=TIME,  # Null when the record is not in the range that was read, or Kafka no longer has it.
    first_visible_at=TIME,  # When the message was first receivable (its due_at).
    # When it became receivable for this delivery: due_at, then the release's time or the lapsed
    # deadline.
    visible_at=TIME,
    received_at=TIME,
    deadline_at=TIME,  # Last deadline, after extensions.
    extensions=INT,  # How often the deadline was moved; to end the lease at once is a release and none.
    settled_at=TIME,  # When this delivery ended (a lapse: its deadline); null = open.
    again_at=TIME,  # Of a released one: when receivable again.
    how=TEXT,  # A word of DELIVERY_ENDS. `open`: nothing has ended it, and its deadline is to come.
    wait_ms=LONG,  # received_at - visible_at, at least 0.
    lease_ms=LONG,  # settled_at - received_at; null = open.
    body_bytes=LONG,  # Of the message; null as sent_at.
)

# One row per dead letter (first copy only) in any queue that has some, at rest or not. Key: queue,
# partition, offset.
DEAD_LETTERS = row(
    queue=TEXT,  # The dead-letter queue.
    incarnation=TEXT,
    partition=INT,
    offset=LONG,
    # incarnation/partition/offset: what the facade makes the message id of (Spark does not have the
    # secret).
    address=TEXT,
    dead_at=TIME,  # Log-append time of the dead letter.
    reason=TEXT,  # exhausted | killed.
    note=TEXT,  # What the consumer said who killed it; empty = nothing.
    source_queue=TEXT,  # Where it died; null when that queue is gone.
    source_incarnation=TEXT,
    source_tag=TEXT,
    source_partition=INT,
    source_offset=LONG,
    original_id=TEXT,
    original_queue=TEXT,
    original_tag=TEXT,
    original_sent_at=TIME,
    first_received_at=TIME,  # Null = never received.
    receive_count=LONG,
    lived_ms=LONG,  # dead_at - original_sent_at.
    body=BYTES,
    body_text=TEXT,
    body_bytes=LONG,
    attributes=MapType(TEXT, ATTRIBUTE),
    sender=TEXT,
    group=TEXT,
    priority=INT,
    # acked | moved (redriven) | deleted | expired | purged | dead | settled (no longer told how);
    # null = at rest.
    settled_how=TEXT,
    settled_at=TIME,
)

CONDITION = row(name=TEXT, type=TEXT, value=BYTES)
FILTER = row(conditions=ArrayType(CONDITION), operator=TEXT)
TAG = row(id=INT, name=TEXT, created_at_ms=LONG, start_at_ms=LONG, start_offsets=ArrayType(LONG), filter=FILTER)

# One row per queue that exists: the newest record of each control key. Key: queue.
QUEUES = row(
    queue=TEXT,
    incarnation=TEXT,
    owner=TEXT,
    created_at=TIME,
    modified_at=TIME,
    partitions=INT,
    delay_ms=LONG,
    lease_ms=LONG,
    retention_ms=LONG,
    max_message_bytes=LONG,
    dead_letter_queue=TEXT,  # Null = messages never die.
    max_receive_count=INT,
    fifo=FLAG,
    dedup_scope=TEXT,  # queue | group; null = it is no FIFO queue.
    deleting=FLAG,
    purged_at=TIME,  # Null = never.
    labels=MapType(TEXT, TEXT),
    tags=ArrayType(TAG),
)

# One row per topic, partition and reason: records that no frame shows in full. Key: topic,
# partition, reason, schema_id.
UNREAD = row(
    topic=TEXT,
    partition=INT,
    reason=TEXT,  # unknown_schema (a head that names no schema of this build) | undecodable.
    schema_id=INT,
    records=LONG,
    first_offset=LONG,
    last_offset=LONG,
)

# One row per worker, queue, minute, tag and operation: what was answered, repeated records dropped.
# Key: minute, worker, incarnation, tag, operation. Additive.
METERS = row(
    minute=TIME,  # When it began, by the worker's clock.
    worker=TEXT,
    queue=TEXT,
    incarnation=TEXT,
    tag=TEXT,  # '' for what is under no tag: sends, and handles that held nothing.
    operation=TEXT,  # A word of Operation.
    requests=LONG,  # Exact: those that were answered, and neither refused nor failed.
    messages=LONG,
    sum_us=LONG,  # Times of all of them.
    max_us=LONG,
    bounds=ArrayType(INT),  # Places in schemas.vocabulary.BOUNDS_US; behind the last = above all bounds.
    counts=ArrayType(LONG),  # Requests of each place.
)

# One row per worker, queue, minute and reason: handles that were good for nothing, repeated records
# dropped. Key: minute, worker, incarnation, reason. Additive.
STALE_HANDLES = row(
    minute=TIME,
    worker=TEXT,
    queue=TEXT,
    incarnation=TEXT,
    reason=TEXT,  # A word of StaleReason.
    handles=LONG,
)

# One row per worker, minute and what follows: who has asked for what, and what came of it, repeated
# records dropped. Key: all but requests, sum_us and max_us. Additive.
REQUESTS = row(
    minute=TIME,  # When it began, by the worker's clock.
    worker=TEXT,
    number=LONG,  # Of the records of that worker; a minute with many rows has several.
    # sqs | emq | mns | rocketmq | native, also of what no dialect has claimed.
    dialect=TEXT,
    operation=TEXT,  # What it is called in its dialect; '' = there was no room for rows of their own.
    verb=TEXT,  # A word of Verb; '' = it was answered before the engine was asked.
    principal=TEXT,  # '' = nobody who is known.
    queue=TEXT,  # '' = about none that there is.
    outcome=TEXT,  # ok | gone (its client did not wait) | the word of the error, as `error` of AUDIT.
    requests=LONG,  # Exact; of a batch one.
    sum_us=LONG,  # Times of all of them.
    max_us=LONG,
)

AUDIT = row(
    at=TIME,  # When it was answered, by the worker's clock.
    worker=TEXT,
    number=LONG,  # Of the records of that worker.
    principal=TEXT,  # '' = nobody who is known.
    key_id=TEXT,  # By which key; of a refusal: which was claimed.
    peer=TEXT,
    operation=TEXT,  # What it is called in its dialect.
    verb=TEXT,  # A word of Verb; '' = it was refused before the engine was asked.
    queue=TEXT,
    tag=TEXT,
    subject=TEXT,  # A key, a user, a copy, a destination, a producer group.
    outcome=TEXT,  # done | refused | failed.
    status=INT,
    error=TEXT,
    request_id=TEXT,
    suppressed=LONG,  # Failures before it that were not written down.
)

# Additive: rows of one key may be split over files and batches, and are summed. Key: minute, queue,
# tag, principal, measure.
COUNTS = row(
    minute=TIME,
    queue=TEXT,
    tag=TEXT,  # '' for what happens to a queue, not under a tag (sent, arrived).
    # Who sent it (`native` = a Kafka-native producer); '' = nothing tells: what consumers did, and
    # what was sent before a purge or to a queue that is gone.
    principal=TEXT,
    measure=TEXT,  # sent | arrived (moved here) | a word of EventKind.
    # About: entries of the journal, which merge calls and split them; records sent singly, and
    # atomic batches.
    requests=LONG,
    messages=LONG,  # Below 0: was taken for leased in a minute before, and given back undelivered.
    bytes=LONG,  # Of bodies; 0 for what the journal says.
)

# Additive as COUNTS. Key: minute, queue, tag, below_ms.
LEASE_HISTOGRAM = row(
    minute=TIME,  # Of the ack.
    queue=TEXT,
    tag=TEXT,
    below_ms=LONG,  # Bound of the bucket, a power of two; it begins at half of it.
    count=LONG,
    sum_ms=LONG,
)

# One row per message and tag that wants it. Key: incarnation, partition, tag_id, offset.
LIFECYCLES = row(
    queue=TEXT,
    incarnation=TEXT,
    partition=INT,
    offset=LONG,
    tag_id=INT,
    tag=TEXT,
    sent_at=TIME,
    due_at=TIME,
    body_bytes=LONG,
    settled_at=TIME,  # Null = open.
    # acked | dead | expired | deleted | moved | skipped | purged | settled (the log no longer tells
    # how); null = open.
    settled_how=TEXT,
    settled_reason=TEXT,  # As JOURNAL's reason of what settled it: why a dead one died.
)

# One row per message that is shown and tag that wants it: LIFECYCLES, and what was done with it.
LIVES = StructType([
    *LIFECYCLES.fields,
    *row(
        # settled_how; of an open one leased | delayed (due later, or released until later) | ready.
        state=TEXT,
        age_ms=LONG,  # From sent_at until it was settled, or now.
        deliveries=INT,
        first_received_at=TIME,  # Null = never, as the next two.
        last_received_at=TIME,
        last_how=TEXT,  # How the last delivery ended: a word of DELIVERY_ENDS.
    ).fields,
])  # fmt: skip

FRAMES = {
    "messages": MESSAGES,
    "journal": JOURNAL,
    "deliveries": DELIVERIES,
    "dead_letters": DEAD_LETTERS,
    "lives": LIVES,
    "queues": QUEUES,
    "meters": METERS,
    "stale_handles": STALE_HANDLES,
    "requests": REQUESTS,
    "audit": AUDIT,
    "unread": UNREAD,
}
