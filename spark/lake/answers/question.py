"""A question over tables: by DuckDB where it is made of what both engines mean alike, else by
Spark. Must not import PySpark.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from datetime import UTC, datetime

from spark.frames.log import BadOption, epoch_ms, moment
from spark.lake.answers.small import NoWarehouse, Tables, answer, tables_of
from spark.lake.answers.subset import NotCommon
from spark.lake.places.warehouse import Warehouse, asked_of
from spark.progress import tell


def answered(given: Namespace) -> int | None:
    """Prints the answer to `sql` when DuckDB has it; the exit status, None = Spark must be asked.
    Raises BadOption.
    """
    warehouse = _for_duckdb(given)
    if warehouse is None:
        return None
    tables = found(warehouse)
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
    tell("sql", said(tables.as_of_ms, "DuckDB"))
    for line in got.lines(given.format):
        sys.stdout.write(line + "\n")
    return 0


def due(given: Namespace) -> bool:
    """Whether `--fresh` may ask for a copy before the answer: the tables tell of an earlier time,
    or only Spark knows of which. Raises BadOption.
    """
    warehouse = asked_of(given)
    if warehouse is None or given.fresh is None:
        return False
    if warehouse.only_spark:
        return True
    try:
        return (tables_of(warehouse).as_of_ms or 0) < since_ms(given)
    except NoWarehouse:
        return True


def since_ms(given: Namespace) -> int:
    """Of which time tables are to tell, epoch ms."""
    return int(1000 * (time.time() - given.fresh))


def _for_duckdb(given: Namespace) -> Warehouse | None:
    """The warehouse, when DuckDB is to be asked of it; what it can't read is said. Raises
    BadOption.
    """
    warehouse = asked_of(given)
    if warehouse is None and given.engine == "duckdb":
        raise BadOption("--engine duckdb is about tables: give --warehouse")
    if warehouse is None or given.engine == "spark":
        return None
    if warehouse.only_spark is not None:
        if given.engine == "duckdb":
            raise BadOption(f"--engine duckdb can't read {warehouse.only_spark}: leave it out, and Spark answers")
        tell("sql", f"DuckDB is not asked: it can't read {warehouse.only_spark}")
        return None
    return warehouse


def found(warehouse: Warehouse) -> Tables:
    """The tables of a folder with its catalog. Raises BadOption: there are none."""
    try:
        tables = tables_of(warehouse)
    except NoWarehouse as error:
        raise BadOption(f"--warehouse: {error}") from None
    if tables.as_of_ms is None:
        raise warehouse.not_copied
    return tables


def said(as_of_ms: int | None, engine: str) -> str:
    """As of when an answer is, and whose it is."""
    when = datetime.fromtimestamp((as_of_ms or 0) / 1000, UTC)
    return f"answered by {engine} from tables, as of {when:%Y-%m-%dT%H:%M:%SZ}"
