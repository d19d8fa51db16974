"""Pieces of HTML: escaped text, tables with totals, figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from spark.page import MOST_ROWS
from spark.page.labels import NONE

Row = Mapping[str, Any]
Figures = dict[str, Any]  # Rows by figure.


@dataclass(frozen=True)
class Cell:
    """A column of a table: its head, how a row's value is written, whether it is a number
    (right-aligned), and its total over all rows.
    """

    head: str
    value: Callable[[Row], str]
    number: bool = False
    total: Callable[[Sequence[Row]], str] | None = None


def column(head: str, name: str, form: Callable[[Any], str], *, summed: bool = False) -> Cell:
    """A numeric column of field `name`; with `summed` the table's last line has its sum."""
    total = (lambda rows: form(sum(row[name] or 0 for row in rows))) if summed else None
    return Cell(head, lambda row: form(row[name]), number=True, total=total)


def text_column(head: str, name: str) -> Cell:
    """A column of text."""
    return Cell(head, lambda row: NONE if row[name] is None or row[name] == "" else str(row[name]))


def table(rows: Sequence[Row], cells: Sequence[Cell], most: int = 20, empty: str = "Nothing to show.") -> str:
    """The first `most` rows; what is left out is said, and totals are of all rows that were
    given.
    """
    if not rows:
        return f'<p class="none">{escape(empty)}</p>'
    head = "".join(f"<th{_kind(cell)}>{escape(cell.head)}</th>" for cell in cells)
    lines = ("".join(f"<td{_kind(cell)}>{escape(cell.value(row))}</td>" for cell in cells) for row in rows[:most])
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = "More" if len(rows) >= MOST_ROWS else f"{len(rows) - most:,} more"
    rest = f'<p class="note">{more} rows are in the Parquet files.</p>' if len(rows) > most else ""
    foot = f"<tfoot>{_totals(rows, cells)}</tfoot>" if any(cell.total for cell in cells) and len(rows) > 1 else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table></div>{rest}'


def _totals(rows: Sequence[Row], cells: Sequence[Cell]) -> str:
    of_all = [cell.total(rows) if cell.total else "" for cell in cells]
    of_all[0] = of_all[0] or f"{'first' if len(rows) >= MOST_ROWS else 'all'} {len(rows):,}"
    return (
        "<tr>"
        + "".join(f"<td{_kind(cell)}>{escape(text)}</td>" for cell, text in zip(cells, of_all, strict=True))
        + "</tr>"
    )


def _kind(cell: Cell) -> str:
    return ' class="n"' if cell.number else ""


def figure(title: str, says: str, drawing: str, legend: Sequence[str] = (), *, wide: bool = False) -> str:
    """A chart with its title, what it says, and the names of its colours."""
    names = "".join(f'<li><i class="k{place}"></i>{escape(name)}</li>' for place, name in enumerate(legend))
    keys = f'<ul class="legend">{names}</ul>' if legend else ""
    kind = ' class="across"' if wide else ""
    return (
        f"<figure{kind}><figcaption><h3>{escape(title)}</h3><p>{escape(says)}</p></figcaption>{keys}{drawing}</figure>"
    )


def section(id: str, title: str, about: str, *parts: str) -> str:
    """A part of the page."""
    return f'<section id="{id}"><h2>{escape(title)}</h2><p class="about">{escape(about)}</p>{"".join(parts)}</section>'


def grid(*figures: str) -> str:
    """Figures side by side where there is room."""
    return f'<div class="grid">{"".join(figures)}</div>'
