"""A question over tables: by DuckDB where it is made of what both engines mean alike, else by
Spark. Must not import PySpark.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime

from spark.frames.log import BadOption, epoch_ms, moment
from spark.lake.answers.small import NoWarehouse, Tables, answer, tables_of
from spark.lake.answers.subset import NotCommon
from spark.lake.warehouse import Warehouse
from spark.progress import tell


def answered(given: Namespace) -> int | None:
    """Prints the answer to `sql` when DuckDB has it; the exit status, None = Spark must be asked.
    Raises BadOption.
    """
    if given.warehouse is None and given.engine == "duckdb":
        raise BadOption("--engine duckdb reads tables: give --warehouse")
    if given.warehouse is None or given.engine == "spark":
        return None
    tables = found(given)
    try:
        import duckdb
    except ImportError:
        if given.engine == "duckdb":
            raise BadOption("DuckDB is not installed: run `make spark`, or install leaseway[spark]") from None
        return None
    low, high = (None if text is None else epoch_ms(moment(text)) for text in (given.begin, given.end))
    try:
        got = answer(tables, given.query, given.limit, (low, high), any_sql=given.engine == "duckdb")
    except (NotCommon, duckdb.Error) as error:
        about = str(error).partition("\n")[0]
        if given.engine == "duckdb":
            tell("sql", about)
            return 2
        tell("sql", f"DuckDB is not asked: {about}")
        return None
    tell("sql", said(tables, "DuckDB"))
    for line in got.lines(given.format):
        sys.stdout.write(line + "\n")
    return 0


def found(given: Namespace) -> Tables:
    """The tables of `--warehouse`. Raises BadOption: there are none."""
    try:
        tables = tables_of(Warehouse(given.warehouse))
    except NoWarehouse as error:
        raise BadOption(f"--warehouse: {error}") from None
    if tables.as_of_ms is None:
        raise BadOption(f"--warehouse: no `leaseway lake` has copied a log into {given.warehouse} yet")
    return tables


def said(tables: Tables, engine: str) -> str:
    """As of when an answer is, and whose it is."""
    when = datetime.fromtimestamp((tables.as_of_ms or 0) / 1000, UTC)
    return f"answered by {engine} from tables, as of {when:%Y-%m-%dT%H:%M:%SZ}"
