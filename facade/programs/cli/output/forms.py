"""The forms of what a command prints: table, json, jsonl, yaml, name. Nothing else goes to
stdout.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

from facade.programs.cli.output.cells import is_hidden, json_visible, visible
from facade.programs.connect.failures import WRONG_USE, Failure

FORMS: Final = ("table", "json", "jsonl", "yaml", "name")
Row = Mapping[str, Any]


class Printer:
    """Writes values to `out` in a form. `columns` are names of fields, in their order; None = what
    the command says.
    """

    def __init__(self, form: str, out: TextIO, columns: Sequence[str] | None = None) -> None:
        self.form = form
        self._out = out
        self._columns = columns

    def rows(self, rows: Sequence[Row], columns: Sequence[str], name: str, *, whole: bool = False) -> None:
        """A list: `columns` of a table, and the field that stands for a row in the form `name`. If
        `whole`, a table cuts no cell.
        """
        if self.form == "table":
            from facade.programs.cli.output.table import list_table

            strict = self._columns is not None
            self._write(list_table(rows, self._columns or columns, self._out, strict=strict, whole=whole))
        elif self.form in ("json", "yaml"):
            self._write(_whole(self.form, list(rows)))
        else:
            self._write("".join(_line(self.form, row, name) for row in rows))

    def one(self, row: Row, name: str) -> None:
        """An object."""
        if self.form == "table":
            from facade.programs.cli.output.table import object_table

            self._write(object_table(row, self._columns, self._out))
        elif self.form in ("json", "yaml"):
            self._write(_whole(self.form, row))
        else:
            self._write(_line(self.form, row, name))

    def stream(self, rows: Iterable[Row], columns: Sequence[str], name: str) -> None:
        """Rows as they come, one after the other, each written at once: a line each, in YAML a
        document each. A table has no title line then, and a tab between cells.
        """
        for row in rows:
            if self.form == "table":
                from facade.programs.cli.output.cells import cell

                self._write("\t".join(cell(column, row.get(column)) for column in self._columns or columns) + "\n")
            elif self.form == "yaml":
                self._write("---\n" + _whole("yaml", row))
            else:
                self._write(_line("jsonl" if self.form == "json" else self.form, row, name))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _whole(form: str, value: Any) -> str:
    if form == "json":
        return json_visible(json.dumps(value, ensure_ascii=False, indent=2)) + "\n"
    import yaml

    text = json.dumps(value, ensure_ascii=False)
    value = json.loads(text)  # of the kinds that YAML knows
    if is_hidden(text):
        return str(yaml.dump(value, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=False, width=100))
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100))


def _line(form: str, row: Row, name: str) -> str:
    if form == "jsonl":
        return json_visible(json.dumps(row, ensure_ascii=False, separators=(",", ":"))) + "\n"
    if name not in row:
        raise Failure(f"there is no field {name!r} that -o name could print; -o json prints all", WRONG_USE)
    return visible(str(row[name])) + "\n"
