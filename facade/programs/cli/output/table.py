"""Tables: a line for each row under the names of the fields, and an object as lines of field and
value. Its cells are those of the JSON (`cells.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from facade.programs.cli.output.cells import cell
from facade.programs.connect.failures import WRONG_USE, Failure

# At a terminal; elsewhere a cell has all of its value.
MOST_CHARS: Final = 300
_WIDE: Final = 1_000_000
Row = Mapping[str, Any]


def list_table(
    rows: Sequence[Row], columns: Sequence[str], out: TextIO, *, strict: bool = False, whole: bool = False
) -> str:
    """A table of rows; `outer.inner` is a column too. A column that no row has is left out; if
    `strict`, it is refused. Unless `whole`, long cells are cut at a terminal. Raises Failure.
    """
    rows = [{**row, **dict(flat(row))} for row in rows]
    there = {name for row in rows for name in row}
    if strict and rows and (unknown := [name for name in columns if name not in there]):
        raise Failure(f"no column is named {unknown[0]!r}; there are: {', '.join(sorted(there))}", WRONG_USE)
    shown = [name for name in columns if name in there or not rows]
    numbers = {name for name in shown if _is_number(rows, name)}
    lines = [[cell(name.rpartition(".")[2], row.get(name)) for name in shown] for row in rows]
    return _drawn(shown, lines, numbers, out, most=None if whole else MOST_CHARS)


def object_table(row: Row, columns: Sequence[str] | None, out: TextIO) -> str:
    """The fields of an object in lines; a list of objects among them is a table below. Raises
    Failure.
    """
    if columns and (unknown := [name for name in columns if name not in row]):
        raise Failure(f"no field is named {unknown[0]!r}; there are: {', '.join(row)}", WRONG_USE)
    chosen = row if columns is None else {name: row[name] for name in columns}
    lines = [
        [name, cell(name.rpartition(".")[2], value)] for name, value in flat(chosen) if not _is_list_of_objects(value)
    ]
    parts = [_drawn(["field", "value"], lines, set(), out)]
    for name, value in flat(chosen):
        if _is_list_of_objects(value):
            fields = list(dict.fromkeys(field for one in value for field in one))
            parts.append(f"{name}\n{list_table(value, fields, out)}")
    return "\n".join(parts)


def flat(row: Row, prefix: str = "") -> list[tuple[str, Any]]:
    """The fields of an object; those of an object in it by `outer.inner`."""
    found: list[tuple[str, Any]] = []
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            found += flat(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, value))
    return found


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, Mapping) for part in value)


def _is_number(rows: Sequence[Row], name: str) -> bool:
    values = [row[name] for row in rows if row.get(name) is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _drawn(
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    numbers: set[str],
    out: TextIO,
    *,
    most: int | None = MOST_CHARS,
) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = out.isatty()
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold", no_wrap=not terminal)
    for line in lines:
        table.add_row(*(Text(_cut(text, most) if terminal and most else text) for text in line))
    console = Console(
        file=out, width=None if terminal else _WIDE, color_system="auto" if terminal else None, highlight=False
    )
    with console.capture() as captured:
        console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"
