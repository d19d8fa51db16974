"""Causes that are planted among dead letters are found, each by itself; the dead letters are made
by the service on the real Kafka.

`pytest -s` prints the figures; `benchmarks/dead_letters.py` does the same with as many dead letters
as one likes.
"""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from spark.dead_letters.bodies import dead_letters_with_bodies, succeeded_of_sources
from spark.dead_letters.clusters import dead_letter_clusters, with_cluster, without_cluster
from spark.dead_letters.markers import with_marks
from spark.frames.columns import DEAD_LETTERS, MESSAGES
from spark.frames.log import Log
from spark.reports.sources.log import LogSource
from spark.reports.sources.staging import kept
from tests.conftest import StartUp
from tests.spark.planted import CAUSES, GOOD, NOISE, plant
from tests.spark.purity import found_of
from tests.spark.rows import INCARNATION, at, frame, rows_of

# Partitions of `mixed` have more than MOST_SUCCEEDED messages: a report reads some that succeeded.
PLANTED = {"mixed": 1_500, "orders": 800}
# What each cause has to say of itself, among other things.
TOLD = {
    "mixed": {
        "json without customer": ("customer", "is not there"),
        "csv with text for amount": ("", "word Euro"),
        "xml with an empty zip": ("", "word <zip/>"),
        "binary of another kind": ("", "binary 1f8b0800"),
        "host not reached": ("", "word reach"),
    },
    "orders": {
        "no such currency": ("currency", "= XXX"),
        "amount is text": ("amount", "type string"),
        "no customer": ("customer", "is not there"),
        "no zip code": ("ship.zip", "like nothing"),
        "host not reached": ("", "word reach"),
    },
}


@dataclasses.dataclass
class Service:
    """What a service has after traffic: where its log is, and why each dead letter died, by queue
    and by the id of the message.
    """

    log: Log
    causes: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def service(leaseway_up_module: StartUp) -> Service:
    up = leaseway_up_module("--workers", "1")
    up.wait_ready(120)
    causes = {queue: plant(up.endpoint, queue, dead_letters) for queue, dead_letters in PLANTED.items()}
    # Outboxes are drained within 200 ms.
    time.sleep(1)
    return Service(Log(up.run["kafka"]["service"], options=up.kafka_properties), causes)


@pytest.fixture(scope="module")
def read(
    spark_session: SparkSession, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> tuple[DataFrame, DataFrame]:
    """What a report reads of the log for this, of both queues: DEAD_LETTERS, and MESSAGES that
    succeeded.
    """
    folder = tmp_path_factory.mktemp("letters")
    source = LogSource(spark_session, service.log, datetime.fromtimestamp(0, UTC), datetime.now(UTC))
    staging = source.staging(str(folder), lambda stage: None)
    dead_letters = kept(dead_letters_with_bodies(source, staging, staging.messages), f"{folder}/letters")
    return dead_letters, kept(succeeded_of_sources(source, staging, dead_letters), f"{folder}/succeeded")


def _told(rows: dict[int, Row], cluster: int) -> set[tuple[str, str]]:
    return {(mark["field"], mark["what"]) for mark in rows[cluster]["apart"]}


@pytest.mark.parametrize("queue", list(PLANTED))
def test_each_planted_cause_is_one_cluster_that_says_what_it_is(
    spark_session: SparkSession, service: Service, read: tuple[DataFrame, DataFrame], queue: str
) -> None:
    began = time.monotonic()
    causes = spark_session.createDataFrame(list(service.causes[queue].items()), "original_id string, cause string")
    dead_letters = read[0].where(F.col("source_queue") == queue).join(F.broadcast(causes), on="original_id")
    succeeded = read[1].where(F.col("queue") == queue)
    clustered = with_cluster(dead_letters, succeeded).persist()
    purity, held = found_of(clustered)
    rows = {row["cluster"]: row for row in dead_letter_clusters(clustered).collect()}
    of_cause = (
        clustered.where(F.col("cluster").isNotNull()).groupBy("cluster").agg(F.mode("cause").alias("cause")).collect()
    )
    found, good = clustered.count(), succeeded.count()
    clustered.unpersist()
    print(f"\n{queue}: {found} died, {good} succeeded, purity {purity:.4f}, {held}, {time.monotonic() - began:.0f} s")

    assert found == PLANTED[queue] and 100 < good <= found
    assert (good < found) is (queue == "mixed")
    assert purity >= 0.95, (purity, held)
    assert all(held.get(cause, 0) >= 0.95 for cause in CAUSES[queue]), held
    assert {row["cause"] for row in of_cause} - {NOISE} == set(CAUSES[queue])
    for cause, mark in TOLD[queue].items():
        assert any(mark in _told(rows, row["cluster"]) for row in of_cause if row["cause"] == cause), (cause, mark)
    assert GOOD not in held
    assert not [mark for row in rows.values() for mark in row["apart"] if mark["field"] == "@DLQ.sourceQueue"]


def test_like_is_compared_with_like(spark_session: SparkSession) -> None:
    """A tenth of what succeeds is JSON; all that dies is JSON, most of it for want of a field, some
    for no reason.
    """

    def message(place: int, body: str) -> dict[str, object]:
        return {"queue": "q", "partition": 0, "offset": place, "body": body.encode(), "body_text": body}

    whole, lame = '{"a": 1, "b": 2}', '{"a": 1}'
    good = [message(n, whole if n % 10 == 0 else f"line {n} is well") for n in range(1_200)]
    dead = [{**message(n, whole if n % 4 == 0 else lame), "queue": "q.dead", "source_queue": "q"} for n in range(200)]
    marked = with_marks(frame(spark_session, DEAD_LETTERS, *dead), frame(spark_session, MESSAGES, *good))

    marks = F.transform("marks", lambda mark: F.concat(mark["field"], F.lit(" "), mark["what"])).alias("marks")
    found = marked.select("body_text", F.array_sort(marks).alias("marks")).distinct().collect()
    assert sorted(tuple(row["marks"]) for row in found) == [(" format json",), (" format json", "b is not there")]


def test_without_a_message_that_succeeded_no_mark_has_a_share(spark_session: SparkSession) -> None:
    dead = [
        {
            "queue": "q.dead",
            "source_queue": "q",
            "partition": 0,
            "offset": n,
            "body": b'{"a": 1}',
            "body_text": '{"a": 1}',
        }
        for n in range(40)
    ]
    marked = with_marks(frame(spark_session, DEAD_LETTERS, *dead), frame(spark_session, MESSAGES))

    found = marked.select(F.explode("marks").alias("mark")).select("mark.*").distinct().collect()
    assert found and {row["usual"] for row in found} == {None}


def test_too_few_dead_letters_have_no_cluster(spark_session: SparkSession) -> None:
    dead_letters = frame(
        spark_session, DEAD_LETTERS,
        {"queue": "q", "partition": 0, "offset": 1, "body": b'{"a": 1}', "body_text": '{"a": 1}', "dead_at": at(0),
         "address": f"{INCARNATION}/0/1"},
    )  # fmt: skip

    few = without_cluster(dead_letters)

    assert rows_of(few, "shape", "marks", "cluster") == [("a: number", [], None)]
    assert dead_letter_clusters(few).count() == 0
