"""Rows of a query as lines of text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

CELL_CHARS = 60


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
        yield _csv(frame.columns)
        for row in few.toLocalIterator():
            yield _csv([_cell(value) for value in row])
    else:
        yield from _table(frame.columns, [[_cell(value) for value in row] for row in few.collect()])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def _csv(cells: list[str]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    cut = [[cell.replace("\n", " ")[:CELL_CHARS] for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(head, *cut, strict=True)]
    for row in [head, ["-" * width for width in widths], *cut]:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield f"({len(rows)} rows)"
