"""Counts the messages of a queue in its Kafka topic with Spark, by attribute `kind`: no facade in
the way.

    leaseway spark examples/count_messages.py 127.0.0.1:9092 orders

The value of a record is Avro in Confluent wire format: five bytes of header, then the schema of
schemas/avro/message.1.avsc.
"""

from __future__ import annotations

import sys
from importlib.resources import files

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import coalesce, col, count, lit


def main() -> None:
    bootstrap, queue = sys.argv[1], sys.argv[2]
    topic = sys.argv[3] if len(sys.argv) > 3 else f"lw.q.{queue}"
    schema = (files("schemas") / "avro" / "message.1.avsc").read_text()
    spark_session = SparkSession.builder.appName("count messages").master("local[2]").getOrCreate()
    spark_session.sparkContext.setLogLevel("ERROR")
    records = (
        spark_session.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    messages = records.select(from_avro(col("value").substr(6, 2**30), schema).alias("message"))
    kinds = messages.select(coalesce(col("message.attributes")["kind"]["value"].cast("string"), lit("-")).alias("kind"))
    for row in kinds.groupBy("kind").agg(count("*").alias("messages")).orderBy("kind").collect():
        print(f"{row['kind']}\t{row['messages']}")
    spark_session.stop()


if __name__ == "__main__":
    main()
