"""Traffic over HTTP through the real stack; then the reports, the SQL views and the stream say what
the client counted.

The live job is killed with SIGKILL in mid-work, goes on from its checkpoint, and must come to the
totals of the batch.
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

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from facade.programs.console.web.reports import Report
from spark.frames.columns import FRAMES
from spark.frames.log import Log
from spark.frames.source import one_topic, read
from spark.frames.tables import Tables
from spark.live.live import Live, live_counts, live_leases
from spark.reports.counts import daily_of
from spark.reports.report import report, written
from tests.browser.chromium import Page
from tests.conftest import StartUp
from tests.spark.drive import DEAD, QUEUE, Books
from tests.spark.rows import rows_of
from tests.spark.story import (
    NATIVE,
    Jobs,
    kill_live_job_in_mid_work,
    receive_the_rest,
    redrive_some,
    report_two_days,
    send_and_kill,
)

TILES = """Object.fromEntries([...document.querySelectorAll('.tiles div')]
  .map(tile => [tile.querySelector('span').textContent, tile.querySelector('b').textContent]))"""

# The report of a story takes minutes, and longer beside other tests.
pytestmark = pytest.mark.timeout(1200)


@dataclasses.dataclass
class Story:
    """What happened: the client's books, what the redrive commands said, where the log is."""

    books: Books
    said: list[list[str]]
    log: Log
    begin: datetime
    end: datetime
    live_folder: Path
    two_days: list[list[str]]
    two_days_out: Path


@pytest.fixture(scope="module")
def story(leaseway_up_module: StartUp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    up = leaseway_up_module("--workers", "1")
    jobs = Jobs(tmp_path_factory.mktemp("jobs"), up.data)
    try:
        up.wait_ready(120)
        begin = datetime.now(UTC) - timedelta(seconds=5)
        with contextlib.closing(Books(up.endpoint)) as books:
            send_and_kill(books, up)
            said = redrive_some(books, jobs)
            books.redrive()
            receive_the_rest(books, up)
            # Outboxes are drained within 200 ms.
            time.sleep(1)
            folder = tmp_path_factory.mktemp("live")
            out = tmp_path_factory.mktemp("days")
            two_days = report_two_days(jobs, out)
            kill_live_job_in_mid_work(jobs, folder)
            yield Story(
                books,
                said,
                Log(up.run["kafka"]["service"], options=up.kafka_properties),
                begin,
                datetime.now(UTC),
                folder,
                two_days,
                out,
            )
    finally:
        jobs.kill()


@pytest.fixture(scope="module")
def folder(story: Story, spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    with (out / "said").open("w") as said, contextlib.redirect_stderr(said):
        report(spark_session, story.log, story.begin, story.end, out)
    return out


@pytest.fixture(scope="module")
def reports(folder: Path, spark_session: SparkSession) -> tuple[dict[str, DataFrame], Any]:
    return written(spark_session, folder), json.loads((folder / "summary.json").read_text())


def test_the_summary_has_what_the_console_reads(folder: Path, reports: tuple[dict[str, DataFrame], Any]) -> None:
    frames, _ = reports
    read = msgspec.json.decode((folder / "summary.json").read_bytes(), type=Report)
    clusters = frames["dead_letter_clusters"].collect() if "dead_letter_clusters" in frames else []
    found = [(cause.dead_letters, cause.at_rest, cause.queues, cause.reasons) for cause in read.causes]
    assert found == [(row["dead_letters"], row["at_rest"], row["queues"], row["reasons"]) for row in clusters]
    assert all(cause.says for cause in read.causes)


def test_a_report_says_each_stage_when_it_begins(folder: Path, reports: tuple[dict[str, DataFrame], Any]) -> None:
    said, (frames, summary) = (folder / "said").read_text().splitlines(), reports
    assert said[0] == "leaseway report: reading messages, 0 s so far"
    begun = [line.partition(",")[0].removeprefix("leaseway report: ") for line in said]
    assert begun[:5] == [
        "reading messages",
        "reading journal",
        "reading deliveries",
        "reading lives",
        "writing tallies",
    ]
    assert len(said) == len(summary["seconds"]) - 1 and said[-1].startswith("leaseway report: writing the page, ")
    assert set(frames) < set(summary["seconds"])
    assert "800 calls were counted as 572" in summary["requests"]


def test_a_report_leaves_those_of_other_days_as_they_are(story: Story) -> None:
    names = ["2026-02-01T000000--2026-02-02T000000", "2026-02-02T000000--2026-02-03T000000"]
    assert sorted(path.name for path in story.two_days_out.iterdir()) == names
    for name, said in zip(names, story.two_days, strict=True):
        page = story.two_days_out / name / "report.html"
        assert said[0].startswith(f"{page} (made in ") and said[1:] == ["status 0"]
        assert f"{name[:10]} 00:00 to" in page.read_text()


def test_redrive_by_sql_moves_what_is_chosen_and_a_second_run_moves_nothing(story: Story) -> None:
    assert story.said == [
        [f"leaseway: {DEAD}: 2 dead letters chosen, none moved: a dry run", "status 0"],
        [f"leaseway: {DEAD}: 2 dead letters chosen, 2 moved, 0 failed, 0 settled by others", "status 0"],
        ["leaseway: no dead letter at rest is chosen", "status 0"],
        ["status 2"],
    ]


def test_tallies_are_what_the_client_counted(story: Story, reports: tuple[dict[str, DataFrame], Any]) -> None:
    books, (frames, _) = story.books, reports
    found = (
        frames["tallies"].groupBy("queue", "tag", "principal", "measure").sum("requests", "messages", "bytes").collect()
    )
    totals = {tuple(row[:4]): tuple(row[4:]) for row in found}

    for person in ("alice", "bob"):
        expected = tuple(books.sent[QUEUE, person, what] for what in ("requests", "messages", "bytes"))
        assert totals[QUEUE, "", person, "sent"] == expected
    assert totals[QUEUE, "", "native", "sent"] == (len(NATIVE), len(NATIVE), sum(map(len, NATIVE)))
    for (queue, tag, what), messages in books.messages.items():
        assert totals[queue, tag, "", what][1] == messages, (queue, tag, what)
    for (queue, tag, what), requests in books.requests.items():
        assert totals[queue, tag, "", what][0] == requests, (queue, tag, what)
    arrived = {key: value for key, value in totals.items() if key[3] == "arrived"}
    assert (
        sum(row[1] for key, row in arrived.items() if key[0] == DEAD) == books.messages[QUEUE, "default", "dead"] == 7
    )
    assert (
        sum(row[1] for key, row in arrived.items() if key[0] == QUEUE) == books.messages[DEAD, "default", "moved"] == 7
    )


def test_each_report_agrees_with_the_client(story: Story, reports: tuple[dict[str, DataFrame], Any]) -> None:
    messages, (frames, summary) = story.books.messages, reports
    by_tag = {(row["queue"], row["tag"]): row for row in frames["redelivery"].collect()}
    latency = {(row["queue"], row["tag"], row["measure"]): row["count"] for row in frames["latency_total"].collect()}
    open_ = {(row["queue"], row["tag"]): row["open"] for row in summary["open"]}
    last = frames["backlog"].orderBy("minute").groupBy("queue", "tag").agg({"minute": "max"}).count()

    for tag in ("default", "audit"):
        assert by_tag[QUEUE, tag]["deliveries"] == messages[QUEUE, tag, "leased"]
        assert by_tag[QUEUE, tag]["acked"] == latency[QUEUE, tag, "receive_to_ack"] == messages[QUEUE, tag, "acked"]
    assert (by_tag[QUEUE, "default"]["redeliveries"], by_tag[QUEUE, "default"]["killed"]) == (3, 4)
    # Half of them by ChangeMessageVisibility(0); the next receive notices a lapse, which was none.
    assert (by_tag[QUEUE, "default"]["released"], by_tag[QUEUE, "default"]["lapsed"]) == (
        messages[QUEUE, "default", "released"],
        0,
    )
    # Sent, raw and redriven: all but seven dead ones and the acked ones are still there, and one of
    # them is leased.
    assert open_ == {
        (QUEUE, "default"): 35 + 7 - 7 - messages[QUEUE, "default", "acked"],
        (QUEUE, "audit"): 0,
        (DEAD, "default"): 0,
    }
    levels = {(row["queue"], row["tag"]): row for row in frames["backlog"].orderBy("minute").collect()}
    assert (levels[QUEUE, "default"]["backlog"], levels[QUEUE, "default"]["in_flight"]) == (open_[QUEUE, "default"], 1)
    assert (levels[DEAD, "default"]["backlog"], last) == (0, 3)
    # Of a story that goes on over midnight there are rows of two days.
    metered = Counter[tuple[str, ...]]()
    for row in frames["metering"].collect():
        metered[row["principal"], row["role"], row["queueName"]] += row["messages"]
    assert metered["olga", "owner", QUEUE] == messages[QUEUE, "default", "leased"] + messages[QUEUE, "audit", "leased"]
    assert metered["bob", "sender", QUEUE] == 21
    assert metered["native", "sender", QUEUE] == len(NATIVE)
    assert summary["unread"] == []
    dead_letters = {
        row["reason"]: (row["dead_letters"], row["at_rest"]) for row in frames["dead_letter_sources"].collect()
    }
    assert dead_letters == {"exhausted": (3, 0), "killed": (4, 0)}
    audited = {
        (row["verb"], row["queue"]): row["requests"] for row in frames["audit"].where("principal = 'olga'").collect()
    }
    created = {("create_queue", DEAD): 1, ("create_queue", QUEUE): 1, ("create_tag", QUEUE): 1}
    assert created.items() <= audited.items()


def test_the_page_says_what_the_client_counted(story: Story, folder: Path, chromium: Page) -> None:
    sent = len(NATIVE) + sum(count for (*_, what), count in story.books.sent.items() if what == "messages")
    received, acked = (
        sum(n for (_, _, kind), n in story.books.messages.items() if kind == what) for what in ("leased", "acked")
    )
    address = (folder / "report.html").as_uri()

    chromium.open(address)

    tiles = chromium.value(TILES)
    assert (tiles["received"], tiles["acknowledged"], tiles["dead-lettered"], tiles["redriven"]) == (
        str(received),
        str(acked),
        "7",
        "7",
    )
    assert tiles["not settled at the end"] == "1" and [
        value for name, value in tiles.items() if name.startswith("sent")
    ] == [str(sent)]
    assert (chromium.requests, chromium.complaints) == ([address], [])
    assert "document.title" in chromium.value("document.querySelector('#dead_letters').textContent")
    assert chromium.value("document.title").startswith("Leaseway: 20")


def test_the_views_say_the_same(story: Story, spark_session: SparkSession) -> None:
    tables = Tables(spark_session, story.log)
    for name, shape in FRAMES.items():
        frame = getattr(tables, name)()
        assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == [
            (f.name, f.dataType.simpleString()) for f in shape
        ], name
    tables.create_views("messages, dead_letters")
    dead_letters = spark_session.sql(
        "SELECT reason, source_queue, source_tag, settled_how, count(*), max(receive_count) FROM dead_letters "
        "GROUP BY 1, 2, 3, 4"
    )
    states = spark_session.sql("SELECT status, native, count(*) FROM messages WHERE queue = 'jobs' GROUP BY 1, 2")

    assert sorted(tuple(row) for row in dead_letters.collect()) == [
        ("exhausted", QUEUE, "default", "moved", 3, 2), ("killed", QUEUE, "default", "moved", 4, 1),
    ]  # fmt: skip
    status = {(row[0], row[1]): row[2] for row in states.collect()}
    assert (status["shown", True], status["shown", False]) == (2, 33 + 7)
    assert {key for key in status if key[0] != "shown"} <= {("undecided", False), ("torn", False)} and len(status) == 3


def test_a_span_reads_only_what_is_in_it(story: Story, spark_session: SparkSession) -> None:
    from spark.frames.source import Span

    whole = (
        Tables(spark_session, story.log)
        .messages()
        .where("queue = 'jobs'")
        .orderBy("offset")
        .select("sent_at")
        .collect()
    )
    middle = whole[10]["sent_at"].replace(tzinfo=UTC)
    low = int(middle.timestamp() * 1000)
    later = Tables(spark_session, story.log, Span(from_ms=low)).messages().where("queue = 'jobs'").count()
    offsets = {f"lw.q.{QUEUE}": {0: 3}, f"lw.q.{DEAD}": {0: 0}}
    first = read(spark_session, story.log, {"subscribePattern": r"lw\.q\..*"}, Span(to_offsets=offsets)).count()

    assert later == len([row for row in whole if row["sent_at"] >= whole[10]["sent_at"]])
    assert first == 3
    assert (
        read(
            spark_session, story.log, one_topic("lw.journal"), Span(from_ms=int(time.time() * 1000) + 3_600_000)
        ).count()
        == 0
    )


def test_the_stream_comes_to_the_totals_of_the_batch_after_a_kill(
    story: Story, reports: tuple[dict[str, DataFrame], Any], spark_session: SparkSession
) -> None:
    frames, _ = reports
    columns = ("minute", "queue", "tag", "principal", "measure", "requests", "messages", "bytes")
    before = len(rows_of(live_counts(spark_session, story.live_folder), *columns))

    Live(spark_session, story.log, story.live_folder, "lw.rates").run(None)

    live, batch = live_counts(spark_session, story.live_folder), frames["tallies"]
    assert 0 < before < batch.count()
    assert rows_of(live, *columns) == rows_of(batch, *columns)
    days = daily_of(live)
    assert rows_of(days, *sorted(days.columns)) == rows_of(frames["daily"], *sorted(days.columns))
    leases = ("minute", "queue", "tag", "below_ms", "count", "sum_ms")
    assert rows_of(live_leases(spark_session, story.live_folder), *leases) == rows_of(
        frames["lease_histogram"], *leases
    )
    told: dict[tuple[Any, ...], int] = {}
    for row in read(spark_session, story.log, one_topic("lw.rates")).select("value").collect():
        rate = json.loads(row["value"])
        told[
            rate["stream"],
            rate["batch"],
            *(rate.get(name) for name in ("minute_ms", "queue", "tag", "principal", "measure")),
        ] = rate["messages"]
    assert sum(told.values()) == sum(row["messages"] for row in live.collect())
