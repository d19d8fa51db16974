"""Traffic over HTTP through the real stack; then the reports, the SQL views and the stream say what
the client counted.

The live job is killed with SIGKILL in mid-work, goes on from its checkpoint, and must come to the
totals of the batch.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from facade.programs.console.web.reports import Report
from spark.frames.columns import FRAMES
from spark.frames.source import Span, one_topic, read, some_queues
from spark.frames.tables import Tables
from spark.live.live import live_counts, live_leases
from spark.live.measures import FILE
from spark.reports.counts import daily_of
from tests.browser.chromium import Page
from tests.spark.drive import DEAD, QUEUE
from tests.spark.rows import rows_of
from tests.spark.service.conftest import OTHER_DAY, Made, Reports, Story
from tests.spark.service.story import NATIVE

OURS = f"queue IN ('{QUEUE}', '{DEAD}')"
USED = ("sent", "leased", "acked")
TILES = """Object.fromEntries([...document.querySelectorAll('.tiles div')]
  .map(tile => [tile.querySelector('span').textContent, tile.querySelector('b').textContent]))"""

REQUESTS = """[...document.querySelectorAll('#requests tbody tr')]
  .map(row => [...row.cells].map(cell => cell.textContent))"""

# The report of a story takes minutes, and longer beside other tests.
pytestmark = pytest.mark.timeout(1200)


def test_the_summary_has_what_the_console_reads(made: Made, reports: Reports) -> None:
    frames, _ = reports
    read = msgspec.json.decode((made.folder / "summary.json").read_bytes(), type=Report)
    clusters = frames["dead_letter_clusters"].collect() if "dead_letter_clusters" in frames else []
    found = [(cause.dead_letters, cause.at_rest, cause.queues, cause.reasons) for cause in read.causes]
    assert found == [(row["dead_letters"], row["at_rest"], row["queues"], row["reasons"]) for row in clusters]
    assert all(cause.says for cause in read.causes)


def test_a_report_says_each_stage_when_it_begins(made: Made, reports: Reports) -> None:
    said, (frames, summary) = [line for line in made.said if "starting Spark" not in line], reports
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


def test_a_report_leaves_those_of_other_days_as_they_are(made: Made) -> None:
    out, page = made.folder.parent, made.folder / "report.html"
    assert {path.name for path in out.iterdir()} == {OTHER_DAY, made.folder.name}
    assert (out / OTHER_DAY / "report.html").read_text() == "of another day"
    assert made.printed[0].startswith(f"{page} (made in ") and made.printed[1:] == ["status 0"]


def test_redrive_by_sql_moves_what_is_chosen_and_a_second_run_moves_nothing(story: Story) -> None:
    assert story.said == [
        [f"leaseway: {DEAD}: 2 dead letters chosen, none moved: a dry run", "status 0"],
        [f"leaseway: {DEAD}: 2 dead letters chosen, 2 moved, 0 failed, 0 settled by others", "status 0"],
        ["leaseway: no dead letter at rest is chosen", "status 0"],
        ["status 2"],
    ]


def test_tallies_are_what_the_client_counted(story: Story, reports: Reports) -> None:
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


def test_each_report_agrees_with_the_client(story: Story, reports: Reports) -> None:
    messages, (frames, summary) = story.books.messages, reports
    by_tag = {(row["queue"], row["tag"]): row for row in frames["redelivery"].collect()}
    latency = {(row["queue"], row["tag"], row["measure"]): row["count"] for row in frames["latency_total"].collect()}
    open_ = {(row["queue"], row["tag"]): row["open"] for row in summary["open"] if row["queue"] in (QUEUE, DEAD)}
    last = frames["backlog"].where(OURS).orderBy("minute").groupBy("queue", "tag").agg({"minute": "max"}).count()

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


def test_the_page_says_what_the_clients_counted(story: Story, made: Made, chromium: Page) -> None:
    used = {what: sum(n for (_, kind), n in story.client.messages.items() if kind == what) for what in USED}
    sent = len(NATIVE) + used["sent"]
    sent += sum(count for (*_, what), count in story.books.sent.items() if what == "messages")
    received, acked = (
        used[what] + sum(n for (_, _, kind), n in story.books.messages.items() if kind == what)
        for what in ("leased", "acked")
    )
    address = (made.folder / "report.html").as_uri()

    chromium.open(address)

    tiles = chromium.value(TILES)
    assert (tiles["received"], tiles["acknowledged"], tiles["dead-lettered"], tiles["redriven"]) == (
        str(received),
        str(acked),
        "7",
        "7",
    )
    assert tiles["not settled at the end"] == str(1 + 20 + 3 + 3) and [
        value for name, value in tiles.items() if name.startswith("sent")
    ] == [str(sent)]
    asked = [row for row in chromium.value(REQUESTS) if row[2:4] == ["purged", "send"]]
    assert sum(int(row[6].replace(",", "")) for row in asked) == story.client.requests["purged", "sent"]
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
    first = read(spark_session, story.log, some_queues(story.log, [QUEUE, DEAD]), Span(to_offsets=offsets)).count()

    assert later == len([row for row in whole if row["sent_at"] >= whole[10]["sent_at"]])
    assert first == 3
    assert (
        read(
            spark_session, story.log, one_topic("lw.journal"), Span(from_ms=int(time.time() * 1000) + 3_600_000)
        ).count()
        == 0
    )


def test_the_stream_comes_to_the_totals_of_the_batch_after_a_kill(
    story: Story, reports: Reports, before: int, streamed: Path, spark_session: SparkSession
) -> None:
    frames, _ = reports
    columns = ("minute", "queue", "tag", "principal", "measure", "requests", "messages", "bytes")
    live, batch = live_counts(spark_session, streamed), frames["tallies"].where(OURS)

    assert 0 < before < batch.count()
    assert rows_of(live.where(OURS), *columns) == rows_of(batch, *columns)
    days, daily = daily_of(live.where(OURS)), frames["daily"].where(f"queueName IN ('{QUEUE}', '{DEAD}')")
    assert rows_of(days, *sorted(days.columns)) == rows_of(daily, *sorted(days.columns))
    leases = ("minute", "queue", "tag", "below_ms", "count", "sum_ms")
    histogram = live_leases(spark_session, streamed).where(OURS)
    assert rows_of(histogram, *leases) == rows_of(frames["lease_histogram"].where(OURS), *leases)
    told: dict[tuple[Any, ...], int] = {}
    for row in read(spark_session, story.log, one_topic("lw.rates")).select("value").collect():
        rate = json.loads(row["value"])
        told[
            rate["stream"],
            rate["batch"],
            *(rate.get(name) for name in ("minute_ms", "queue", "tag", "principal", "measure")),
        ] = rate["messages"]
    assert sum(told.values()) == sum(row["messages"] for row in live.collect())
    measured = dict(line.rsplit(" ", 1) for line in (streamed / FILE).read_text().splitlines() if line[0] != "#")
    for stream in ("sends", "events"):
        of_stream = {name: measured[f'leaseway_live_{name}{{stream="{stream}"}}'] for name in ("lag_records", "batch")}
        written = len(list((streamed / "tallies" / f"stream={stream}").glob("batch=*")))
        assert of_stream == {"lag_records": "0", "batch": str(written - 1)}
    assert {name for name in measured if "state_bytes" in name and int(measured[name])} == {
        f'leaseway_live_state_bytes{{state="{name}"}}' for name in ("firsts", "open", "pending", "seqs")
    }
