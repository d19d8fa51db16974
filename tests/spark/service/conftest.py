"""One service, and one report of all that was done to it: a start, a report and a stream cost more
CPU than what is asked of them.

The tests of a folder run by the names of their files: those that change the service come last.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.frames.log import Log, epoch_ms
from spark.live.live import Live, live_counts
from spark.reports.report import folder_of, written
from tests.services import Up
from tests.spark.conftest import as_users
from tests.spark.drive import Books
from tests.spark.service.client import Client, use_up
from tests.spark.service.story import (
    kill_live_job_in_mid_work,
    receive_the_rest,
    redrive_some,
    run_here,
    send_and_kill,
)

Reports = tuple[dict[str, DataFrame], Any]
OTHER_DAY = "2026-02-01T000000--2026-02-02T000000"


@dataclasses.dataclass
class Service:
    """A service of one worker, which the file `armed` kills behind its next move of a message."""

    up: Up
    armed: Path
    log: Log


@dataclasses.dataclass
class Story:
    """What happened: both clients' books, what the redrive commands said, where the log is."""

    books: Books
    client: Client
    said: list[list[str]]
    up: Up
    log: Log
    begin: datetime
    end: datetime


@pytest.fixture(scope="package")
def service(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    armed = folder / "kill"
    # A minute of the meters is a second here.
    environment = {"LEASEWAY_METER_MINUTE_S": "1", "LEASEWAY_FAILPOINTS": f"move.after_settle=kill@{armed}"}
    up = Up(folder / "data", "--workers", "1", environment=environment)
    try:
        up.wait_ready(120)
        yield Service(up, armed, Log(up.run["kafka"]["service"], options=up.kafka_properties))
    finally:
        up.close()


@pytest.fixture(scope="package")
def story(service: Service, spark_session: SparkSession) -> Iterator[Story]:
    up, begin = service.up, (datetime.now(UTC) - timedelta(seconds=5)).replace(second=0, microsecond=0)
    with contextlib.closing(Books(up.endpoint)) as books, contextlib.closing(Client(up.endpoint)) as client:
        send_and_kill(books, up)
        said = redrive_some(books, up.data)
        books.redrive()
        receive_the_rest(books, up)
        use_up(client)
        # Outboxes are drained within 200 ms, and the meters written within two of their minutes.
        time.sleep(4)
        end = datetime.now(UTC).replace(microsecond=0)
        yield Story(books, client, said, up, service.log, begin, end)


@dataclasses.dataclass
class Made:
    """A report by `leaseway report`: its folder, and what the command printed and said."""

    folder: Path
    printed: list[str]
    said: list[str]


@pytest.fixture(scope="package")
def made(story: Story, spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The report of the story, as users make it, beside one of another day."""
    out = tmp_path_factory.mktemp("report")
    (out / OTHER_DAY).mkdir()
    (out / OTHER_DAY / "report.html").write_text("of another day")
    times = ("--from", str(epoch_ms(story.begin)), "--to", str(epoch_ms(story.end)))
    with (out / OTHER_DAY / "said").open("w+") as said:
        with as_users(spark_session), contextlib.redirect_stderr(said):
            printed = run_here(story.up.data, "report", "--out", str(out), *times)
        said.seek(0)
        return Made(out / folder_of(story.begin, story.end), printed, said.read().splitlines())


@pytest.fixture(scope="package")
def reports(made: Made, spark_session: SparkSession) -> Reports:
    return written(spark_session, made.folder), json.loads((made.folder / "summary.json").read_text())


@pytest.fixture(scope="package")
def killed(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a live job has counted that was killed in mid-work."""
    folder = tmp_path_factory.mktemp("live")
    kill_live_job_in_mid_work(tmp_path_factory.mktemp("conf"), story.up.data, folder)
    return folder


@pytest.fixture(scope="package")
def before(killed: Path, spark_session: SparkSession) -> int:
    """How many rows that is, before another job goes on."""
    return live_counts(spark_session, killed).count()


@pytest.fixture(scope="package")
def streamed(story: Story, killed: Path, before: int, spark_session: SparkSession) -> Path:
    """The same when another job has gone on to the end, in micro-batches that divide queues."""
    Live(spark_session, story.log, killed, "lw.rates", batch_records=50).run(None)
    return killed
