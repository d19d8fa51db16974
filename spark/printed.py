"""Rows as lines of text. Must not import PySpark: answers from tables need none."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO

CELL_CHARS = 60


def cell(value: object) -> str:
    """A value in a table or in CSV: nothing for null, hex for bytes."""
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def csv_line(cells: Sequence[str]) -> str:
    """A line of CSV, without its end."""
    text = StringIO()
    # A cell with the line's end in it is quoted.
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()[:-1]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table with a head; cells are cut at 60 characters."""
    cut = [[text.replace("\n", " ")[:CELL_CHARS] for text in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(head, *cut, strict=True)]
    for row in [head, ["-" * width for width in widths], *cut]:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    yield f"({len(rows)} rows)"
