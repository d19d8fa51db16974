"""What a question of SQL reads of Kafka: the topics and offsets that its conditions leave, each
once; and that its answer is that of the whole log.
"""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.frames.log import Log
from spark.frames.questions import open_views
from spark.frames.tables import Tables
from spark.frames.wanted import Wanted, empty_views, plan_of_sql, wanted_of
from tests.spark.lake_log import BEGIN_MS
from tests.spark.plans import scans, times_read

NOON_MS = BEGIN_MS + 12 * 3_600_000
EARLIEST, LATEST = -2, -1  # As Kafka's source says it.


def _asked(spark_session: SparkSession, log: Log, query: str) -> DataFrame:
    open_views(Tables(spark_session, log), lambda session: plan_of_sql(session, query), query)
    return spark_session.sql(query)


def _whole(spark_session: SparkSession, log: Log, query: str) -> list[tuple[object, ...]]:
    Tables(spark_session, log).create_views(query)
    return sorted(map(tuple, spark_session.sql(query).collect()), key=repr)


QUESTIONS = {
    "SELECT queue, status, count(*), sum(length(body)), max(sent_at) FROM messages "
    "WHERE queue = 'mails' AND sent_at >= '2026-03-01T12:00' GROUP BY 1, 2": {"q.mails"},
    "SELECT tag, how, count(*), sum(wait_ms), sum(lease_ms), max(receive_count) FROM deliveries "
    "WHERE queue IN ('mails', 'bills') AND sent_at < '2026-03-01T12:00' GROUP BY 1, 2": {
        "q.mails",
        "q.bills",
        "journal",
    },
    "SELECT d.queue, d.settled_how, count(*), max(j.seq) FROM dead_letters d "
    "LEFT JOIN journal j ON j.incarnation = d.source_incarnation AND j.partition = d.source_partition "
    "AND j.offset = d.source_offset WHERE d.queue LIKE '%-dead' AND d.queue <> 'mails-dead' GROUP BY 1, 2": {
        "q.orders-dead",
        "q.bills-dead",
        "journal",
    },
}


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_question_reads_each_topic_that_it_needs_once_and_gets_what_the_whole_log_tells(
    spark_session: SparkSession, log: Log, query: str
) -> None:
    whole = _whole(spark_session, log, query)
    asked = _asked(spark_session, log, query)

    read = times_read(asked)
    assert read == {f"{log.prefix}.{topic}": 1 for topic in (*QUESTIONS[query], "control")}
    assert sorted(map(tuple, asked.collect()), key=repr) == whole
    assert len(whole) > 1
    spark_session.catalog.clearCache()


def test_a_question_that_names_no_view_asks_nobody(spark_session: SparkSession) -> None:
    def plan(_: SparkSession) -> object:
        raise AssertionError("nothing is planned")

    assert open_views(Tables(spark_session, Log("127.0.0.1:1", "nowhere")), plan, "SELECT 1") == []


def test_times_in_a_condition_bound_the_offsets(spark_session: SparkSession, log: Log) -> None:
    def offsets(condition: str) -> tuple[int, int]:
        asked = _asked(spark_session, log, f"SELECT offset FROM messages WHERE queue = 'orders' AND {condition}")
        [found] = [scan for scan in scans(asked) if any(".q." in topic for topic, *_ in scan)]
        low, high = next((low, high) for _, partition, low, high in found if partition == 1)
        spark_session.catalog.clearCache()
        return low, high

    # 200 messages at the beginning of the day, and the others in its last hours.
    assert offsets("true") == (EARLIEST, LATEST)
    assert offsets("sent_at >= '2026-03-01T12:00'") == (200, LATEST)
    assert offsets("sent_at < '2026-03-01T12:00'") == (EARLIEST, 200)
    assert offsets("sent_at BETWEEN '2026-03-01' AND '2026-03-01T12:00'") == (0, 200)


def test_queues_that_a_question_can_see(spark_session: SparkSession) -> None:
    empty_views(spark_session)

    def seen(query: str) -> dict[str, list[str] | None]:
        found = wanted_of(plan_of_sql(spark_session, query))
        return {name: view.names(spark_session, ["a", "b", "c", "it.s"]) for name, view in found.items()}

    def of_messages(condition: str) -> list[str] | None:
        [(name, found)] = seen(f"SELECT * FROM messages WHERE {condition}").items()
        assert name == "messages"
        return found

    assert seen("SELECT 1") == {}
    assert seen("EXPLAIN SELECT * FROM messages WHERE queue = 'a'") == {"messages": ["a"]}
    assert of_messages("true") is of_messages("body_text = 'queue'") is of_messages("queue = 'a' OR native") is None
    assert of_messages("queue = 'a'") == ["a"]
    assert of_messages("(queue = 'a' AND offset > 3) OR (queue = 'b' AND native)") == ["a", "b"]
    assert of_messages("NOT queue RLIKE '[ab]' AND upper(queue) <> 'C'") == ["it.s"]
    assert of_messages("queue = 'nowhere' OR queue = concat('messages.queue', body_text)") is None
    assert of_messages("queue IN ('nowhere', 'messages.queue', '\\'')") == []
    both = "SELECT * FROM messages WHERE queue = 'a' UNION ALL SELECT * FROM messages WHERE queue = 'c'"
    assert seen(both) == {"messages": ["a", "c"]}
    assert seen("SELECT * FROM messages WHERE queue = (SELECT max(queue) FROM queues)")["messages"] is None
    joined = (
        "SELECT * FROM messages JOIN deliveries USING (queue, partition, offset) WHERE how = 'acked' AND queue = 'b'"
    )
    assert seen(joined) == {"messages": ["b"], "deliveries": ["b"]}
    inner = "WITH few AS (SELECT offset FROM dead_letters WHERE queue = 'a') SELECT * FROM journal WHERE queue > 'b'"
    assert seen(f"{inner} AND offset IN (SELECT * FROM few)") == {"dead_letters": ["a"], "journal": ["c", "it.s"]}


def test_times_that_a_question_can_see(spark_session: SparkSession) -> None:
    empty_views(spark_session)

    def span(condition: str, view: str = "messages") -> tuple[int | None, int | None]:
        [seen] = wanted_of(plan_of_sql(spark_session, f"SELECT * FROM {view} WHERE {condition}")).values()
        return seen.span.from_ms, seen.span.to_ms

    assert span("sent_at BETWEEN '2026-03-01' AND '2026-03-01T12:00'") == (BEGIN_MS, NOON_MS + 1)
    assert span("TIMESTAMP '2026-03-01T12:00' > sent_at") == (None, NOON_MS + 1)
    assert span("sent_at > '2026-03-01' OR native") == (None, None)
    assert span("due_at > '2026-03-01'") == (None, None)
    assert span("dead_at >= '2026-03-01'", "dead_letters") == (BEGIN_MS, None)
    assert Wanted().either(Wanted("queue = 'a'")) == Wanted()
