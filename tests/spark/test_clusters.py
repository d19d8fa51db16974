"""Causes that are planted among dead letters are found, each by itself."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark.clusters import letter_clusters, with_cluster, without_cluster
from spark.columns import DEAD_LETTERS
from tests.spark.planted import CAUSES, NOISE, found, planted
from tests.spark.rows import INCARNATION, at, frame, rows_of

LETTERS = 800  # `benchmarks/letters.py` does the same with 20,000.


def test_each_planted_cause_is_one_cluster_that_says_what_it_is(spark_session: SparkSession) -> None:
    letters, succeeded = planted(spark_session, LETTERS)
    clustered = with_cluster(letters, succeeded).persist()

    purity, held = found(clustered)
    rows = {row["cluster"]: row for row in letter_clusters(clustered).collect()}
    of_cause = clustered.where(F.col("cluster").isNotNull()).groupBy("cluster").agg(F.mode("group").alias("cause")).collect()

    assert purity >= 0.95, (purity, held)
    assert all(held.get(cause, 0) >= 0.95 for cause in CAUSES), held
    assert {row["cause"] for row in of_cause} - {NOISE} == set(CAUSES)
    said = {row["cause"]: {(mark["field"], mark["what"]) for mark in rows[row["cluster"]]["apart"]} for row in of_cause}
    assert ("currency", "= XXX") in said["no such currency"]
    assert ("amount", "type string") in said["amount is text"]
    assert ("customer", "is not there") in said["no customer"]
    assert ("ship.zip", "like nothing") in said["no zip code"]
    assert ("", "word reach") in said["host not reached"]
    assert sum(row["letters"] for row in rows.values()) == clustered.where(F.col("cluster").isNotNull()).count()
    clustered.unpersist()


def test_too_few_letters_have_no_cluster(spark_session: SparkSession) -> None:
    letters = frame(
        spark_session, DEAD_LETTERS,
        {"queue": "q", "partition": 0, "offset": 1, "body": b'{"a": 1}', "body_text": '{"a": 1}', "dead_at": at(0),
         "address": f"{INCARNATION}/0/1"},
    )  # fmt: skip

    few = without_cluster(letters)

    assert rows_of(few, "shape", "marks", "cluster") == [("a: number", [], None)]
    assert letter_clusters(few).count() == 0
