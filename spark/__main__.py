"""Runs a job: `python -m spark sql|report|live|lake|choose|outcomes ...`; `leaseway` does so
with the connectors' jars and its own brokers.

Somebody's own Spark needs the connectors on its class path.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.topics import rates_topic
from spark.arguments import (
    lake_arguments,
    live_arguments,
    outcomes_arguments,
    report_arguments,
    selection_arguments,
    sql_arguments,
)
from spark.frames.log import BadOption, NoBroker, log_of, moment
from spark.progress import tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.lake.places.warehouse import Warehouse
    from spark.reports.sources.staging import Source

_DAY = timedelta(days=1)


def run_sql(given: argparse.Namespace) -> int:
    """Prints the rows of a query; 0 done, 2 the query is wrong."""
    from spark.lake.answers.question import answered

    _copied_first("sql", given)
    done = answered(given)
    return _sql_by_spark(given) if done is None else done


def _copied_first(name: str, given: argparse.Namespace) -> None:
    """Copies what is new, where `--fresh` asks for it. Raises as `Lake.run`, and BadOption,
    NoBroker.
    """
    from spark.lake.answers.question import due, since_ms

    if not due(given):
        return
    from spark.frames.session import job
    from spark.lake.commits import Wish
    from spark.lake.lake import Lake
    from spark.lake.places.warehouse import warehouse_of
    from spark.lake.tables.table import Overtaken

    since, log = since_ms(given), log_of(given)
    with job(name, given.master, log) as spark_session:
        try:
            Lake(spark_session, log, warehouse_of(given), Wish()).bring(since)
        except Overtaken as error:
            raise BadOption(f"--fresh: {error}, again and again; leave it out") from None


def _sql_by_spark(given: argparse.Namespace) -> int:
    from pyspark.errors import AnalysisException, ParseException

    try:
        if given.warehouse is None:
            _ask_kafka(given)
        else:
            _ask_tables(given)
    except (AnalysisException, ParseException) as error:
        sys.stderr.write(f"leaseway sql: {error.getMessage() or error}\n")
        return 2
    return 0


def _ask_kafka(given: argparse.Namespace) -> None:
    from spark.frames.questions import open_views
    from spark.frames.session import job
    from spark.frames.source import span_of
    from spark.frames.tables import Tables
    from spark.frames.wanted import plan_of_sql

    span, log = span_of(given), log_of(given)
    with job("sql", given.master, log) as spark_session:
        tables = Tables(spark_session, log, span)
        views = open_views(tables, lambda session: plan_of_sql(session, given.query), given.query)
        tell("sql", f"asking {', '.join(views) or 'no view'}")
        _print_rows(spark_session, given)


def _ask_tables(given: argparse.Namespace) -> None:
    from spark.lake.answers.question import found
    from spark.lake.places.warehouse import warehouse_of

    warehouse = warehouse_of(given)
    as_of_ms = None if warehouse.only_spark else found(warehouse).as_of_ms
    with _views_of_tables("sql", given, warehouse, given.query, as_of_ms) as spark_session:
        _print_rows(spark_session, given)


@contextlib.contextmanager
def _views_of_tables(
    name: str, given: argparse.Namespace, warehouse: Warehouse, question: str, as_of_ms: int | None = None
) -> Iterator[SparkSession]:
    """A session of the job `name` with the views of a warehouse that a question names; `as_of_ms`
    as `Stored`.
    """
    from spark.frames.session import job
    from spark.frames.source import span_of
    from spark.lake.answers.question import said
    from spark.lake.answers.stored import Stored

    with job(name, given.master, None) as spark_session:
        stored = Stored(spark_session, warehouse, as_of_ms, span_of(given))
        stored.open_views(question)
        tell(name, said(stored.as_of_ms, "Spark"))
        yield stored.spark_session


def _print_rows(spark_session: SparkSession, given: argparse.Namespace) -> None:
    from spark.sql_job import lines

    for line in lines(spark_session.sql(given.query), given.format, given.limit):
        sys.stdout.write(line + "\n")


def run_report(given: argparse.Namespace) -> int:
    """Writes the reports of the last day before now, or of the span that was given."""
    from spark.lake.places.warehouse import asked_of

    _copied_first("report", given)
    warehouse = asked_of(given)
    return _report_of_log(given) if warehouse is None else _report_of_tables(given, warehouse)


def _report_of_log(given: argparse.Namespace) -> int:
    from spark.frames.session import job
    from spark.reports.sources.log import LogSource

    begin, end = _time_of(given, datetime.now(UTC))
    oldest = moment(given.oldest) if given.oldest else None
    log = log_of(given)
    with job("report", given.master, log) as spark_session:
        return _write_report(LogSource(spark_session, log, begin, end, oldest), begin, end, given.out)


def _report_of_tables(given: argparse.Namespace, warehouse: Warehouse) -> int:
    from spark.frames.session import job
    from spark.lake.answers.question import said
    from spark.lake.answers.stored import Stored
    from spark.reports.sources.tables import TablesSource

    if given.oldest:
        raise BadOption("--oldest is about the log: leave it out, tables cost what the report's time has")
    with job("report", given.master, None) as spark_session:
        stored = Stored(spark_session, warehouse, None)
        told = datetime.fromtimestamp(stored.as_of_ms / 1000, UTC)
        begin, end = _time_of(given, told)
        if end > told:
            raise BadOption(
                f"--to is behind what the tables tell, {told:%Y-%m-%dT%H:%M:%SZ}: run `leaseway lake` before"
            )
        tell("report", said(stored.as_of_ms, "Spark"))
        return _write_report(TablesSource(stored, begin, end), begin, end, given.out)


def _write_report(source: Source, begin: datetime, end: datetime, out: Path) -> int:
    from spark.reports.report import PAGE, folder_of, report

    folder = out / folder_of(begin, end)
    folder.mkdir(parents=True, exist_ok=True)
    summary = report(source, begin, end, folder)
    sys.stdout.write(f"{folder / PAGE} (made in {summary['seconds']['all']} s)\n")
    return 0


def _time_of(given: argparse.Namespace, now: datetime) -> tuple[datetime, datetime]:
    """The time that was given, or the last day before `now`."""
    end = moment(given.end) if given.end else now
    begin = moment(given.begin) if given.begin else end - _DAY
    if begin >= end:
        raise BadOption("--from must be before --to")
    return begin, end


def run_live(given: argparse.Namespace) -> int:
    """Runs the live tallies until it is ended, or once."""
    from spark.frames.session import job
    from spark.live.live import Live

    log = log_of(given)
    topic = {None: rates_topic(log.prefix), "none": None}.get(given.rates_topic, given.rates_topic)
    # Live ends its queries itself, also when it is interrupted.
    with job("live", given.master, log) as spark_session, contextlib.suppress(KeyboardInterrupt):
        Live(spark_session, log, given.out, topic, given.batch_records).run(None if given.once else given.every)
    return 0


def run_lake(given: argparse.Namespace) -> int:
    """Copies the log into tables, once or until it is ended; 0 done, 1 another job copies too."""
    from spark.frames.session import job
    from spark.lake.commits import Wish
    from spark.lake.lake import Lake
    from spark.lake.places.warehouse import warehouse_of
    from spark.lake.tables.table import Overtaken

    log, warehouse = log_of(given), warehouse_of(given)
    with job("lake", given.master, log) as spark_session, contextlib.suppress(KeyboardInterrupt):
        wish = Wish(given.bodies, given.commit_mib << 20)
        try:
            Lake(spark_session, log, warehouse, wish).run(given.every)
        except Overtaken as error:
            tell("lake", f"{error}; what it has is whole, and this job ends")
            return 1
    return 0


def run_selection(given: argparse.Namespace) -> int:
    """Writes which dead letters a condition chooses; 0 done, 2 the condition is wrong."""
    from spark.dead_letters.selection import asked_for, views_of_log, write_chosen
    from spark.lake.places.warehouse import asked_of

    _copied_first("redrive", given)
    warehouse = asked_of(given)
    if warehouse is None:
        return write_chosen(given, views_of_log(given))
    # What has become of a dead letter since the copy, the service knows.
    return write_chosen(given, _views_of_tables("redrive", given, warehouse, asked_for(given)))


def run_outcomes(given: argparse.Namespace) -> int:
    """Writes how chosen dead letters were settled; 0 done."""
    from spark.dead_letters.selection import run_outcomes as run_it

    return run_it(given)


_JOBS = {
    "sql": (sql_arguments, run_sql),
    "report": (report_arguments, run_report),
    "live": (live_arguments, run_live),
    "lake": (lake_arguments, run_lake),
    "choose": (selection_arguments, run_selection),
    "outcomes": (outcomes_arguments, run_outcomes),
}
# By the command that people know.
_SHOWN = {"choose": "redrive", "outcomes": "redrive"}


def run(job: str, given: argparse.Namespace) -> int:
    """Runs a job with options that are parsed; 0 done, 1 Kafka or the tables failed meanwhile, 2
    refused.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from spark.frames.failures import kafka_failure
    from spark.lake.places.failures import table_failure

    name = _SHOWN.get(job, job)
    try:
        return _JOBS[job][1](given)
    except (BadOption, NoBroker, OSError) as error:
        tell(name, str(error))
        return 2
    except (PySparkException, Py4JJavaError) as error:
        if failure := kafka_failure(error):
            tell(name, f"Kafka failed: {failure}")
        elif failure := table_failure(error):
            tell(name, f"the tables failed: {failure}")
        else:
            raise
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a job; 0 done, 2 refused."""
    parser = argparse.ArgumentParser(prog="python -m spark")
    jobs = parser.add_subparsers(required=True, dest="job")
    for name, (add, _) in _JOBS.items():
        add(jobs.add_parser(name))
    given = parser.parse_args(arguments)
    return run(given.job, given)


if __name__ == "__main__":
    sys.exit(main())
