"""Rows of a query as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.printed import cell, csv_line, table


def lines(frame: DataFrame, form: str, limit: int) -> Iterator[str]:
    """At most `limit` rows as `json` (an object a line), `csv` (with a head) or `table` (cells cut
    at 60 characters).

    Binary columns are Base64 in JSON, and hex elsewhere. Rows are fetched as they are printed.
    """
    few = frame.limit(limit)
    if form == "json":
        for row in few.select(F.to_json(F.struct("*")).alias("line")).toLocalIterator():
            yield str(row["line"])
    elif form == "csv":
        yield csv_line(frame.columns)
        for row in few.toLocalIterator():
            yield csv_line([cell(value) for value in row])
    else:
        yield from table(frame.columns, [[cell(value) for value in row] for row in few.collect()])
