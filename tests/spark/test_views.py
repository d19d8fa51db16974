"""The views as functions: they give what the views of SQL give, and read no more for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark import views
from spark.frames.columns import FRAMES
from spark.frames.log import BadOption, Log
from spark.frames.tables import Tables
from tests.spark.lake_log import BEGIN_MS
from tests.spark.plans import scans, times_read
from tests.spark.test_questions import EARLIEST, NOON_MS

NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)
TIMES = {
    "messages": "sent_at",
    "deliveries": "sent_at",
    "dead_letters": "dead_at",
    "journal": "logged_at",
    "lives": "sent_at",
}


def _plain(frame: DataFrame) -> list[str]:
    # The age of what is open is as of now.
    return sorted(str(row) for row in frame.drop("age_ms").collect())


@pytest.mark.parametrize("name", TIMES)
def test_a_function_gives_the_rows_of_its_queue_and_time(name: str, log: Log, spark_session: SparkSession) -> None:
    queue = "orders-dead" if name == "dead_letters" else "orders"
    view: Callable[..., DataFrame] = getattr(views, name)
    whole: DataFrame = getattr(Tables(spark_session, log, names=[queue]), name)().where(f"queue = '{queue}'").persist()
    time = f"unix_millis({TIMES[name]})"
    times = sorted(row[0] for row in whole.selectExpr(time).collect())
    split = times[len(times) // 2]

    assert _plain(view(spark_session, queue, since=split, log=log)) == _plain(whole.where(f"{time} >= {split}"))
    assert _plain(view(spark_session, queue, until=split, log=log)) == _plain(whole.where(f"{time} < {split}"))
    assert view(spark_session, [], log=log).count() == 0
    assert view(spark_session, [queue], log=log).columns == FRAMES[name].names
    whole.unpersist()


def test_a_function_reads_the_topics_and_offsets_that_it_is_asked_for(log: Log, spark_session: SparkSession) -> None:
    late = views.messages(spark_session, "orders", since="2026-03-01T06:00", log=log)
    assert times_read(late).keys() - {f"{log.prefix}.control"} == {f"{log.prefix}.q.orders"}
    (some,), (whole,) = _of_queues(late), _of_queues(views.messages(spark_session, "orders", log=log))
    assert ({low for *_, low, _ in some}, {low for *_, low, _ in whole}) == ({200}, {EARLIEST})
    two = times_read(views.deliveries(spark_session, ["mails", "bills"], log=log))
    assert {topic for topic in two if ".q." in topic} == {f"{log.prefix}.q.mails", f"{log.prefix}.q.bills"}
    assert all(times == 1 for topic, times in two.items() if ".q." in topic)


def _of_queues(frame: DataFrame) -> list[Any]:
    return [scan for scan in scans(frame) if any(".q." in topic for topic, *_ in scan)]


def test_a_time_may_be_said_in_any_usual_way(log: Log, spark_session: SparkSession) -> None:
    counts = {
        views.messages(spark_session, "orders", since=since, log=log).count()
        for since in (NOON, NOON.replace(tzinfo=None), NOON_MS, "2026-03-01T12:00", "2026-03-01T13:00+01:00")
    }
    assert len(counts) == 1 and 0 not in counts
    with pytest.raises(BadOption):
        views.messages(spark_session, since="yesterday", log=log)


def test_the_stream_of_messages_is_that_of_its_queue(log: Log, spark_session: SparkSession) -> None:
    stream = views.message_stream(spark_session, "mails", log=log, most_records=100)
    assert stream.isStreaming and stream.columns == FRAMES["messages"].names
    writer = stream.groupBy("queue").count().writeStream.outputMode("complete").format("memory").queryName("of_mails")
    writer.trigger(availableNow=True).start().awaitTermination()
    there = views.messages(spark_session, "mails", log=log).count()
    assert [tuple(row) for row in spark_session.table("of_mails").collect()] == [("mails", there)]


def test_queues_are_those_of_the_control_topic(log: Log, spark_session: SparkSession) -> None:
    assert views.queues(spark_session, "mails", log=log).select("queue").collect() == [("mails",)]
    assert views.queues(spark_session, log=log).count() == Tables(spark_session, log).queues().count() > 3
    for name in ("meters", "stale_handles", "requests", "audit"):
        assert getattr(views, name)(spark_session, "mails", since=BEGIN_MS, log=log).columns == FRAMES[name].names
