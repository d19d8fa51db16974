"""What was used stays used: queues that are purged, deleted and made again, FIFO sends that repeat,
and stale acks, over HTTP; the reports say what the client has counted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.frames.tables import Tables
from spark.live.live import live_counts
from tests.spark.drive import DEAD, QUEUE
from tests.spark.service.client import NAMES
from tests.spark.service.conftest import Reports, Story

pytestmark = pytest.mark.timeout(900)
OURS = f"queue IN {NAMES}"


def _sums(frame: DataFrame, *by: str, of: str) -> dict[tuple[Any, ...], int]:
    return {tuple(row)[:-1]: row[-1] for row in frame.groupBy(*by).sum(of).collect()}


def test_a_purge_and_a_delete_leave_in_every_report_what_was_used(story: Story, reports: Reports) -> None:
    books, (frames, _) = story.client.messages, reports
    tallies = _sums(frames["tallies"], "queue", "measure", of="messages")
    days = {row["queueName"]: row for row in frames["daily"].groupBy("queueName").sum().collect()}
    owners = frames["metering"].where("role = 'owner'")
    metered = _sums(frames["metering"].where("role = 'sender'"), "queueName", of="messages")
    given = _sums(owners, "queueName", of="messages")

    assert books["purged", "sent"] == 120 and books["gone", "sent"] == 15
    for queue in NAMES:
        assert {what: tallies[queue, what] for what in ("sent", "leased", "acked")} == {
            what: books[queue, what] for what in ("sent", "leased", "acked")
        }, queue
        assert days[queue]["sum(sentMessageNumber)"] == metered[queue,] == books[queue, "sent"], queue
        assert days[queue]["sum(receivedMessageNumber)"] == given[queue,] == books[queue, "leased"], queue
        assert days[queue]["sum(deletedMessageNumber)"] == books[queue, "acked"], queue
    assert _sums(frames["tag_lag"].where(OURS), "queue", of="open") == {("purged",): 20, ("gone",): 3, ("ordered",): 3}


def test_the_statistics_of_a_day_have_lives_that_are_over(story: Story, reports: Reports) -> None:
    sent = reports[0]["daily_statistics"].where(f"subject = 'send_request' AND {OURS}")
    requests = _sums(sent, "queue", of="requests")
    assert requests == {(queue,): story.client.requests[queue, "sent"] for queue in NAMES}
    assert sent.where("queue = 'gone'").count() == 2


def test_a_fifo_send_that_repeats_is_a_request_and_no_message(
    streamed: Path, reports: Reports, spark_session: SparkSession
) -> None:
    sent = reports[0]["tallies"].where("queue = 'ordered' AND measure = 'sent'").groupBy().sum()
    live = live_counts(spark_session, streamed).where("queue = 'ordered' AND measure = 'sent'").groupBy().sum()
    for row in (sent.collect()[0], live.collect()[0]):
        assert (row["sum(requests)"], row["sum(messages)"], row["sum(bytes)"]) == (7, 4, 4)


def test_stale_acks_are_counted_by_reason(story: Story, reports: Reports, spark_session: SparkSession) -> None:
    told = _sums(reports[0]["stale_handles"], "queue", "reason", of="handles")
    assert told == story.client.stale and sum(told.values()) == 6 + 15
    frame = Tables(spark_session, story.log).stale_handles()
    assert _sums(frame, "queue", "reason", of="handles") == story.client.stale


def test_the_example_notebook_runs_and_says_what_the_client_counted(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka, books = story.up.run["kafka"], story.client
    monkeypatch.setenv("LEASEWAY_KAFKA_BOOTSTRAP", kafka["service"])
    monkeypatch.setenv("LEASEWAY_KAFKA_CONFIG", kafka["config"])
    notebook = json.loads((Path(__file__).parents[3] / "examples" / "analytics.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"cell {number}", "exec"), found)

    assert found["names"] == sorted([*NAMES, QUEUE, DEAD])
    assert found["sent_by"].collect() == [("alice", "shown", 3, 36)]
    ends = _sums(found["ends"].where(f"how = 'acked' AND {OURS}"), "queue", of="deliveries")
    assert ends == {("ordered",): books.messages["ordered", "acked"]}, "what was purged was sent at no time"
    sends = _sums(found["requests"].where(f"operation LIKE '%_send' AND {OURS}"), "queue", of="requests")
    assert sends == {(queue,): books.requests[queue, "sent"] for queue in NAMES}
    assert _sums(found["stale"], "queue", "reason", of="handles") == books.stale
    assert _sums(found["counted"].where(OURS), "queue", of="count") == {("gone",): 3, ("ordered",): 7, ("purged",): 20}
