"""What was used stays used: queues that are purged, deleted and made again, FIFO sends that repeat,
and stale acks, over HTTP; the reports say what the client has counted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.frames.log import Log
from spark.frames.tables import Tables
from spark.live.live import Live, live_counts
from spark.reports.report import report, written
from tests.conftest import StartUp
from tests.services import Up
from tests.spark.drive import Person

pytestmark = pytest.mark.timeout(900)
NAMES = ("purged", "gone", "ordered", "ordered-purged")


class Client:
    """Counts what it does: messages by (queue, what), and handles of which it was told they are
    stale.
    """

    def __init__(self, up: Up) -> None:
        self.olga, self.alice = Person(up.endpoint, "olga"), Person(up.endpoint, "alice")
        self.messages: Counter[tuple[str, str]] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.stale: Counter[tuple[str, str]] = Counter()

    def close(self) -> None:
        self.olga.close()
        self.alice.close()

    def make(self, queue: str, **settings: Any) -> None:
        self.olga.call("POST", "/v1/queues", {"name": queue, "partitions": 1, **settings})

    def send(self, queue: str, bodies: list[str], *, repeats: bool = False, **fields: Any) -> None:
        messages = [{"body": body, **fields} for body in bodies]
        self.alice.call("POST", f"/v1/queues/{queue}/messages", {"messages": messages})
        self.requests[queue, "sent"] += 1
        self.messages[queue, "sent"] += 0 if repeats else len(bodies)

    def receive(self, queue: str, most: int) -> list[str]:
        got: list[str] = []
        while len(got) < most:
            answer = self.olga.call("POST", f"/v1/queues/{queue}/receive", {"max": most - len(got), "wait_seconds": 5})
            assert answer["messages"]
            got += [message["handle"] for message in answer["messages"]]
            self.requests[queue, "received"] += 1
        self.messages[queue, "leased"] += most
        return got

    def ack(self, queue: str, handles: list[str]) -> None:
        for result in self.olga.call("POST", f"/v1/queues/{queue}/ack", {"handles": handles})["results"]:
            if result["status"] == "ok":
                self.messages[queue, "acked"] += 1
            else:
                self.stale[queue, result["reason"]] += 1


def _story(client: Client) -> None:
    fifo = {"fifo": True, "content_dedup": True}
    for name in NAMES:
        client.make(name, **(fifo if name.startswith("ordered") else {}))
    for number in range(4):
        client.send("purged", [f"message {number} {n}" for n in range(25)])
    handles = client.receive("purged", 40)
    client.ack("purged", handles[:30])
    client.send("gone", [f"message {n}" for n in range(12)])
    client.ack("gone", client.receive("gone", 5))
    for name in NAMES[2:]:
        for text in ("a", "b", "c", "d"):
            client.send(name, [text], group="g")
        for text in ("b", "a", "b"):
            client.send(name, [text], group="g", repeats=True)
        client.ack(name, client.receive(name, 1))
    for name in ("purged", "ordered-purged"):
        client.olga.call("POST", f"/v1/queues/{name}/purge")
    client.olga.call("DELETE", "/v1/queues/gone")
    # Settled by their acks, and by the purge; one by one and together.
    for handle in handles[:6]:
        client.ack("purged", [handle])
    client.ack("purged", handles[25:])
    for number in range(20):
        client.send("purged", [f"later {number}"])
    client.make("gone")
    client.send("gone", ["another life"] * 3)


@dataclasses.dataclass
class Story:
    """The client's books, the service, its log, and the reports of it."""

    client: Client
    up: Up
    log: Log
    frames: dict[str, DataFrame]
    live: DataFrame


@pytest.fixture(scope="module")
def story(
    leaseway_up_module: StartUp, spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    up = leaseway_up_module("--workers", "1", environment={"LEASEWAY_METER_MINUTE_S": "1"})
    up.wait_ready(120)
    log = Log(up.run["kafka"]["service"], options=up.kafka_properties)
    begin = datetime.now(UTC) - timedelta(seconds=5)
    with contextlib.closing(Client(up)) as client:
        _story(client)
        # Outboxes are drained within 200 ms, and a minute of the meters is a second here.
        time.sleep(4)
        out, live = tmp_path_factory.mktemp("use"), tmp_path_factory.mktemp("live")
        report(spark_session, log, begin.replace(second=0, microsecond=0), datetime.now(UTC), out)
        Live(spark_session, log, live, None, batch_records=9).run(None)
        yield Story(client, up, log, written(spark_session, out), live_counts(spark_session, live))


def _sums(frame: DataFrame, *by: str, of: str) -> dict[tuple[Any, ...], int]:
    return {tuple(row)[:-1]: row[-1] for row in frame.groupBy(*by).sum(of).collect()}


def test_a_purge_and_a_delete_leave_in_every_report_what_was_used(story: Story) -> None:
    books, frames = story.client.messages, story.frames
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
    assert _sums(frames["tag_lag"], "queue", of="open") == {("purged",): 20, ("gone",): 3, ("ordered",): 3}


def test_the_statistics_of_a_day_have_lives_that_are_over(story: Story) -> None:
    sent = story.frames["daily_statistics"].where("subject = 'send_request'")
    requests = _sums(sent, "queue", of="requests")
    assert requests == {(queue,): story.client.requests[queue, "sent"] for queue in NAMES}
    assert sent.where("queue = 'gone'").count() == 2


def test_a_fifo_send_that_repeats_is_a_request_and_no_message(story: Story) -> None:
    sent = story.frames["tallies"].where("queue = 'ordered' AND measure = 'sent'").groupBy().sum()
    live = story.live.where("queue = 'ordered' AND measure = 'sent'").groupBy().sum()
    for row in (sent.collect()[0], live.collect()[0]):
        assert (row["sum(requests)"], row["sum(messages)"], row["sum(bytes)"]) == (7, 4, 4)


def test_stale_acks_are_counted_by_reason(story: Story, spark_session: SparkSession) -> None:
    told = _sums(story.frames["stale_handles"], "queue", "reason", of="handles")
    assert told == story.client.stale and sum(told.values()) == 6 + 15
    frame = Tables(spark_session, story.log).stale_handles()
    assert _sums(frame, "queue", "reason", of="handles") == story.client.stale


def test_the_example_notebook_runs_and_says_what_the_client_counted(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka, books = story.up.run["kafka"], story.client
    monkeypatch.setenv("LEASEWAY_KAFKA_BOOTSTRAP", kafka["service"])
    monkeypatch.setenv("LEASEWAY_KAFKA_CONFIG", kafka["config"])
    notebook = json.loads((Path(__file__).parents[2] / "examples" / "analytics.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"cell {number}", "exec"), found)

    assert found["names"] == sorted(NAMES)
    assert found["sent_by"].collect() == [("alice", "shown", 3, 36)]
    ends = _sums(found["ends"].where("how = 'acked'"), "queue", of="deliveries")
    assert ends == {("ordered",): books.messages["ordered", "acked"]}, "what was purged was sent at no time"
    sends = _sums(found["requests"].where("operation LIKE '%_send'"), "queue", of="requests")
    assert sends == {(queue,): books.requests[queue, "sent"] for queue in NAMES}
    assert _sums(found["stale"], "queue", "reason", of="handles") == books.stale
    assert _sums(found["counted"], "queue", of="count") == {("gone",): 3, ("ordered",): 7, ("purged",): 20}
