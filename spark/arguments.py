"""Command-line options of the jobs. Must not import PySpark: `leaseway --help` asks here."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from spark.frames.log import log_arguments

OUTCOMES = "outcomes.json"  # Below the folder of the addresses: {queue: {how: dead_letters}}.


def sql_arguments(parser: ArgumentParser) -> None:
    """Options of `sql`."""
    parser.add_argument(
        "query",
        help="SQL over the views messages, journal, deliveries, lives, dead_letters, queues, meters, "
        "stale_handles, requests, audit, unread",
    )
    parser.add_argument(
        "--format", choices=("table", "json", "csv"), default="table", help="how rows are printed (default table)"
    )
    parser.add_argument("--limit", type=int, default=1000, help="maximum rows to print (default 1000)")
    _warehouse_argument(parser, "ask")
    parser.add_argument(
        "--engine",
        choices=("auto", "duckdb", "spark"),
        default="auto",
        help="who answers from tables (default auto: DuckDB where it means the same as Spark)",
    )
    _span_arguments(parser)
    _job_arguments(parser)


def report_arguments(parser: ArgumentParser) -> None:
    """Options of `report`."""
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of reports, made when missing; each has its own folder there"
    )
    parser.add_argument(
        "--oldest",
        metavar="TIME",
        help="read the log from here on (default: all of it); backlog and counts begin there",
    )
    _warehouse_argument(parser, "read")
    _span_arguments(parser)
    _job_arguments(parser)


def live_arguments(parser: ArgumentParser) -> None:
    """Options of `live`."""
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of tallies and checkpoints; a second start goes on where it was"
    )
    parser.add_argument(
        "--every", type=int, default=30, metavar="SECONDS", help="interval between micro-batches (default 30)"
    )
    parser.add_argument(
        "--batch-records", type=int, default=200_000, metavar="N", help="most records of a micro-batch (default 200000)"
    )
    parser.add_argument("--once", action="store_true", help="take what the log has now, and end")
    parser.add_argument(
        "--rates-topic", metavar="TOPIC", help="topic of the rates (default PREFIX.rates; `none` = write none)"
    )
    _job_arguments(parser)


def lake_arguments(parser: ArgumentParser) -> None:
    """Options of `lake`."""
    parser.add_argument(
        "--warehouse",
        required=True,
        metavar="PLACE",
        help="the tables: a folder, made when missing; s3a://bucket/prefix; or what a REST catalog calls them",
    )
    _catalog_argument(parser)
    parser.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help="copy again so long after each beginning (default: once, and end)",
    )
    parser.add_argument(
        "--bodies",
        choices=("unmasked", "all", "none"),
        help="copy bodies and attributes of messages of which no mask hides anything, of all, or of none "
        "(default: as the copy before, and `unmasked` at first)",
    )
    parser.add_argument(
        "--commit-mib",
        type=int,
        default=128,
        metavar="N",
        help="about so many MiB of records in a commit (default 128)",
    )
    _job_arguments(parser)


def server_arguments(parser: ArgumentParser) -> None:
    """Options of `spark-server`."""
    parser.add_argument("--warehouse", required=True, metavar="PLACE", help="the tables, as `leaseway lake` has it")
    _catalog_argument(parser)
    parser.add_argument("--port", type=int, default=15002, help="port of this machine (default 15002)")
    parser.add_argument("--master", default="local[2]", help="Spark master (default local[2])")


def selection_arguments(parser: ArgumentParser) -> None:
    """Options of `choose`."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the addresses")
    choice_arguments(parser)


def outcomes_arguments(parser: ArgumentParser) -> None:
    """Options of `outcomes`."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the addresses; outcomes.json goes there too")
    parser.add_argument("--since-ms", type=int, required=True, help="read the journal from here on, epoch milliseconds")
    _job_arguments(parser)


def choice_arguments(parser: ArgumentParser) -> None:
    """Which dead letters; `choose` and `redrive` have these options."""
    about = "condition over the view dead_letters, like \"reason = 'exhausted' AND body_text LIKE '%XXX%'\""
    parser.add_argument("--where", required=True, metavar="SQL", help=about.replace("%", "%%"))
    parser.add_argument("--queue", metavar="NAME", help="only dead letters of this dead-letter queue (default: of all)")
    _warehouse_argument(parser, "choose from")
    _span_arguments(parser)
    _job_arguments(parser)


def _warehouse_argument(parser: ArgumentParser, verb: str) -> None:
    parser.add_argument(
        "--warehouse", metavar="PLACE", help=f"{verb} the tables that `leaseway lake` has written, not Kafka"
    )
    _catalog_argument(parser)
    parser.add_argument(
        "--fresh",
        type=float,
        metavar="SECONDS",
        help="first copy what is new, as `leaseway lake` does, when the last copy began longer ago than this",
    )


def _catalog_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--catalog",
        metavar="URL",
        help="what says which state of the tables counts: postgresql://user@host:port/database (password: PGPASSWORD), "
        "or http(s)://... of an Iceberg REST catalog (default: a SQLite file in the folder)",
    )


def _span_arguments(parser: ArgumentParser) -> None:
    when = "ISO 8601 (UTC when it names no zone) or epoch milliseconds"
    parser.add_argument("--from", dest="begin", metavar="TIME", help=f"first moment, {when}")
    parser.add_argument("--to", dest="end", metavar="TIME", help="first moment after it")


def _job_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--master", help="Spark master (default local[2], or what spark-submit says)")
    log_arguments(parser)
