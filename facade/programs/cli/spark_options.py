"""What the subcommands that look back take: sql, report, live, lake, redrive, spark-zip.

It must not decide anything itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from facade.programs.stack.processes.errors import StackError


def data_argument(parser: argparse.ArgumentParser) -> None:
    """Adds --data."""
    parser.add_argument(
        "--data", type=Path, help="folder of a running `leaseway up` (default: Kafka and Redis of LEASEWAY_*)"
    )


def sql_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `sql`."""
    from spark.arguments import sql_arguments as add

    add(parser)
    data_argument(parser)


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `report`."""
    from spark.arguments import report_arguments as add

    add(parser)
    data_argument(parser)


def live_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `live`."""
    from spark.arguments import live_arguments as add

    add(parser)
    data_argument(parser)


def lake_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `lake`."""
    from spark.arguments import lake_arguments as add

    add(parser)
    data_argument(parser)


def job(given: argparse.Namespace) -> int:
    """Runs `sql`, `report`, `live` or `lake`. What DuckDB answers from tables, it answers before
    anything of Spark's or of the service is imported.
    """
    if given.command.name == "sql" and (given.warehouse, given.catalog) != (None, None):
        from spark.frames.log import BadOption
        from spark.lake.answers.question import answered, due
        from spark.progress import tell

        try:
            first = due(given)
            done = None if first else answered(given)
        except BadOption as error:
            tell("sql", str(error))
            return 2
        if done is not None:
            return done
        if not first:
            given = argparse.Namespace(**{**vars(given), "engine": "spark"})
    from facade.programs.cli.spark_jobs import run

    return run(given.command.name, given)


def server_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `spark-server`."""
    from spark.arguments import server_arguments as add

    add(parser)


def server(given: argparse.Namespace) -> int:
    """Becomes a server of Spark Connect over the tables of a warehouse. Raises StackError."""
    from facade.programs.stack.processes.spark_submit import serve
    from spark.frames.log import BadOption
    from spark.lake.answers.question import found
    from spark.lake.places.warehouse import warehouse_of

    try:
        warehouse = warehouse_of(given)
        if not warehouse.only_spark:
            found(warehouse)
    except BadOption as error:
        raise StackError(str(error)) from None
    return serve(warehouse, given.port, given.master)


def redrive_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `redrive`."""
    from facade.programs.cli.redrive import add_arguments

    add_arguments(parser)
    data_argument(parser)


def redrive(given: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Runs `redrive`."""
    from facade.programs.cli.redrive import run

    return run(given, say)


def zip_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `spark-zip`."""
    parser.add_argument(
        "out", type=Path, nargs="?", default=Path("leaseway-spark.zip"), help="the file (default leaseway-spark.zip)"
    )


def write_zip(given: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Runs `spark-zip`. Raises StackError: the file can't be written."""
    from spark.bundle import write

    try:
        say(f"{given.out} has {write(given.out)} files: spark-submit --py-files {given.out}")
    except OSError as error:
        raise StackError(str(error)) from None
    return 0
