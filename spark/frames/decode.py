"""Records of Kafka to columns: Confluent heads, Avro by the schemas of `schemas/`, native records.

Every function is a pure DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from schemas.registry import schema_id, schema_text, version_id, versions
from schemas.vocabulary import HEADER_NAME_CHARS, NATIVE_SENDER

HEAD_BYTES = 5
# A field of each subject that is null only when nothing could be read.
_SIGNS = {
    "message": "body", "journal": "entries", "queue": "name", "snapshot": "tags", "meter": "rows", "audit": "worker",
    "requests": "rows",
}  # fmt: skip


def known_ids(subject: str) -> list[int]:
    """The ids of all versions of a subject that this build knows."""
    return [version_id(subject, version) for version in versions(subject)]


def head_id(value: str = "value") -> Column:
    """The schema id in a Confluent head (a zero byte, 4 bytes id); null when there is no such
    head.
    """
    hexed = F.hex(F.substring(value, 2, 4))
    headed = (F.length(value) >= HEAD_BYTES) & (F.substring(value, 1, 1) == F.lit(bytearray(b"\x00")))
    # Ids above 2^31 are nobody's: registries count from 1.
    return F.when(headed, F.conv(hexed, 16, 10).cast("long")).cast("int")


def avro_fields(subject: str, id_column: str = "schema_id", value: str = "value") -> Column:
    """`value` read as `subject` by whichever known version wrote it, in the shape of the newest.

    Null fields = the bytes could not be read; null as a whole = the id is none of the subject's.
    """
    newest = schema_text(schema_id(subject))
    body = F.expr(f"substring({value}, {HEAD_BYTES + 1})")
    found = F.lit(None)
    for number in known_ids(subject):
        read = from_avro(body, schema_text(number), {"mode": "PERMISSIVE", "avroSchema": newest})
        found = F.when(F.col(id_column) == number, read).otherwise(found)
    return found


def plus_ms(time: Column, ms: Column) -> Column:
    """A timestamp so many milliseconds later."""
    return F.timestamp_millis(F.unix_millis(time) + ms)


def time_of(ms: Column) -> Column:
    """Epoch milliseconds as a timestamp; 0 = null, as in the schemas."""
    return F.when(ms > 0, F.timestamp_millis(ms))


def messages_of(records: DataFrame, topic_prefix: str) -> DataFrame:
    """One row per record of the queues' topics: MESSAGES without `incarnation`, `due_at`; status
    `undecodable` or `shown`; delay_ms null where the queue's holds.

    Reads value, headers, topic, partition, offset, timestamp. A value without the head of a message
    schema of ours is a native producer's, as for the engine: its bytes are the body, its headers
    the attributes, also when the head is of a schema that this build does not know (`schema_id`
    tells). The batches are not judged yet (`atomic_batches.py`).
    """
    headed = records.withColumn("schema_id", head_id())
    ours = F.coalesce(F.col("schema_id").isin(known_ids("message")), F.lit(False))
    read = headed.withColumn("native", ~ours).withColumn("m", avro_fields("message"))
    broken = ~F.col("native") & F.col("m.body").isNull()
    body = F.when(F.col("native"), F.coalesce("value", F.lit(bytearray()))).otherwise(F.col("m.body"))
    # Who writes to the topic without us names no sender: the queue's own delay holds, as in the
    # engine.
    named = F.coalesce(F.col("m.sender") != "", F.lit(False))
    shaped = read.withColumn("broken", broken).withColumn("body", body)
    return shaped.select(
        F.substring("topic", len(topic_prefix) + 1, 1000).alias("queue"),
        "partition",
        "offset",
        F.col("timestamp").alias("sent_at"),
        F.when(F.col("broken"), "undecodable").otherwise("shown").alias("status"),
        "native",
        "schema_id",
        "body",
        F.when(F.col("native") | F.col("m.body_is_text"), F.try_validate_utf8(F.col("body").cast("string"))).alias(
            "body_text"
        ),
        F.length("body").cast("long").alias("body_bytes"),
        F.when(F.col("native"), native_attributes("headers")).otherwise(F.col("m.attributes")).alias("attributes"),
        F.when(named, F.col("m.delay_ms")).alias("delay_ms"),
        "m.lease_ms",
        F.when(named, F.col("m.sender")).otherwise(NATIVE_SENDER).alias("sender"),
        "m.group",
        "m.dedup_id",
        F.coalesce("m.priority", F.lit(8)).alias("priority"),
        "m.batch",
        "m.origin",
    )


def native_attributes(headers: str) -> Column:
    """Headers of a native record as attributes: no empty name, long names cut, the last of two with
    one name counts.
    """

    def attribute(header: Column) -> Column:
        content = F.coalesce(header["value"], F.lit(bytearray()))
        kind = F.when(F.is_valid_utf8(content.cast("string")), "string").otherwise("binary")
        name = F.substring(header["key"], 1, HEADER_NAME_CHARS)
        return F.struct(name.alias("key"), F.struct(kind.alias("type"), content.alias("value")).alias("value"))

    named = F.transform(F.filter(F.coalesce(headers, F.array()), lambda header: header["key"] != ""), attribute)

    def is_last(header: Column, place: Column) -> Column:
        later = F.slice(named, place + 2, F.size(named))
        return ~F.exists(later, lambda other: other["key"] == header["key"])

    return F.map_from_entries(F.filter(named, is_last))


def entries_of(records: DataFrame) -> DataFrame:
    """One row per journal entry, repeated ones included: the record's place and the entry's fields,
    offsets still an array.

    Reads value, partition, offset, timestamp. Records of unknown schemas and broken ones give no
    row (`unread_of` counts them).
    """
    headed = records.withColumn("schema_id", head_id()).withColumn("j", avro_fields("journal"))
    entries = headed.select(
        "j.queue",
        "j.incarnation",
        F.col("j.partition").alias("partition"),
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        F.col("timestamp").alias("logged_at"),
        F.posexplode("j.entries").alias("place", "e"),
    )
    return entries.select(
        "queue", "incarnation", "partition", "log_partition", "log_offset", "place", "logged_at",
        "e.seq", F.timestamp_millis("e.at_ms").alias("at"), "e.kind", F.col("e.tag").alias("tag_id"), "e.offsets",
        "e.times", "e.reason",
    )  # fmt: skip


def meters_of(records: DataFrame) -> DataFrame:
    """METERS from records of the meter topic; a record that a worker has written twice counts once.

    Reads value.
    """
    fields = ("tag", "operation", "requests", "messages", "sum_us", "max_us", "bounds", "counts")
    return _metered(records, "rows", fields)


def stale_handles_of(records: DataFrame) -> DataFrame:
    """STALE_HANDLES from records of the meter topic, as `meters_of`."""
    return _metered(records, "stale", ("reason", "handles"))


def _metered(records: DataFrame, part: str, fields: tuple[str, ...]) -> DataFrame:
    """The rows of an array of the meters' records, with what the record itself says."""
    read = records.withColumn("schema_id", head_id()).withColumn("m", avro_fields("meter"))
    head = ("worker", "queue", "incarnation")
    once = read.where(F.col("m.rows").isNotNull()).select("m.minute_ms", *(f"m.{name}" for name in head), f"m.{part}")
    rows = once.dropDuplicates(["minute_ms", "worker", "incarnation"]).select(
        F.timestamp_millis("minute_ms").alias("minute"), *head, F.explode(part).alias("r")
    )
    return rows.select("minute", *head, *(f"r.{name}" for name in fields))


def requests_of(records: DataFrame) -> DataFrame:
    """REQUESTS from records of the requests topic; a record that a worker has written twice counts
    once.

    Reads value.
    """
    read = records.withColumn("schema_id", head_id()).withColumn("m", avro_fields("requests"))
    once = read.where(F.col("m.rows").isNotNull()).select("m.*").dropDuplicates(["worker", "number"])
    return once.select(F.timestamp_millis("minute_ms").alias("minute"), "worker", "number", F.inline("rows"))


def audit_of(records: DataFrame) -> DataFrame:
    """AUDIT from records of the audit topic; a record that a worker has written twice counts once.

    Reads value.
    """
    headed = (
        records.withColumn("schema_id", head_id())
        .withColumn("a", avro_fields("audit"))
        .where(F.col("a.worker").isNotNull())
    )
    once = headed.select("a.*").dropDuplicates(["worker", "number"])
    return once.select(F.timestamp_millis("at_ms").alias("at"), *(name for name in once.columns if name != "at_ms"))


def unread_rows(records: DataFrame, subject: str) -> DataFrame:
    """The records that the frame of `subject` does not show in full, as they are, with schema_id
    and `reason` (a word of UNREAD).

    Reads value. A raw record of a queue's topic is not unread; one whose head names an unknown
    schema is: a native producer's own Avro, or a newer Leaseway's. Tombstones are nothing to read.
    """
    headed = records.where(F.col("value").isNotNull()).withColumn("schema_id", head_id())
    known = F.coalesce(F.col("schema_id").isin(known_ids(subject)), F.lit(False))
    read = headed.withColumn("known", known).withColumn("sign", avro_fields(subject)[_SIGNS[subject]])
    claims = F.col("schema_id").isNotNull() | F.lit(subject != "message")
    reason = F.when(F.col("known") & F.col("sign").isNull(), "undecodable").when(
        ~F.col("known") & claims, "unknown_schema"
    )
    return read.withColumn("reason", reason).where(F.col("reason").isNotNull()).drop("known", "sign")


def unread_of(records: DataFrame, subject: str) -> DataFrame:
    """UNREAD: per topic, partition, reason and schema id how many records the frame of `subject`
    does not show in full.

    Reads value, topic, partition, offset.
    """
    return counted_unread(unread_rows(records, subject))


def counted_unread(rows: DataFrame) -> DataFrame:
    """UNREAD from rows of topic, partition, reason, schema_id, offset."""
    return rows.groupBy("topic", "partition", "reason", "schema_id").agg(
        F.count("*").alias("records"), F.min("offset").alias("first_offset"), F.max("offset").alias("last_offset")
    )  # fmt: skip
