"""Answers small questions over tables by DuckDB, in this process: no JVM and no PySpark, and
nothing is fetched.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any

from spark.lake.answers.subset import NotCommon, names_of, spelt
from spark.lake.answers.views import Span, named_in, told_of
from spark.lake.places.warehouse import AS_OF, CATALOG, DERIVED, NAMESPACE, Warehouse, note_of
from spark.printed import cell, csv_line, table

# What Spark and DuckDB print alike; nested values they do not.
_PLAIN = ("BIGINT", "INTEGER", "HUGEINT", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP WITH TIME ZONE", "DATE", "BLOB")
_TIME = "TIMESTAMP WITH TIME ZONE"
# Spark says nulls first, and last where it goes down.
_LIKE_SPARK = "SET TimeZone = 'UTC'; SET default_null_order = 'nulls_first_on_asc_last_on_desc'; SET threads = 2"


class NoWarehouse(Exception):
    """A folder has no tables; the text says which."""


@dataclass(frozen=True)
class Tables:
    """What the catalog says now: where the newest state of each table is, and as of when they tell
    (epoch ms; None = no copy has ended yet).
    """

    places: dict[str, str]
    as_of_ms: int | None


@dataclass(frozen=True)
class Answer:
    """Rows of a question."""

    names: list[str]
    kinds: list[str]
    rows: list[tuple[Any, ...]]

    def lines(self, form: str) -> Iterator[str]:
        """As `sql_job.lines` prints them."""
        if form == "json":
            yield from (self._json(row) for row in self.rows)
            return
        shown = [[cell(_local(value, kind)) for value, kind in zip(row, self.kinds, strict=True)] for row in self.rows]
        if form == "csv":
            yield from (csv_line(row) for row in [self.names, *shown])
        else:
            yield from table(self.names, shown)

    def _json(self, row: tuple[Any, ...]) -> str:
        told = {
            name: _plain(value, kind)
            for name, kind, value in zip(self.names, self.kinds, row, strict=True)
            if value is not None
        }
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False, default=str)


def tables_of(warehouse: Warehouse) -> Tables:
    """Reads the catalog. Raises NoWarehouse."""
    try:
        with closing(sqlite3.connect(f"{warehouse.catalog_file.as_uri()}?mode=ro", uri=True, timeout=20)) as catalog:
            here = (CATALOG, NAMESPACE)
            places = catalog.execute(
                "SELECT table_name, metadata_location FROM iceberg_tables "
                "WHERE catalog_name = ? AND table_namespace = ?",
                here,
            )
            found = {str(name): str(place).removeprefix("file:").replace("///", "/", 1) for name, place in places}
            noted = dict(
                catalog.execute(
                    "SELECT property_key, property_value FROM iceberg_namespace_properties "
                    "WHERE catalog_name = ? AND namespace = ?",
                    here,
                )
            )
    except sqlite3.Error as error:
        raise NoWarehouse(f"{warehouse.place} has no tables that can be read: {error}") from None
    for name in DERIVED:
        if note_of(name) not in noted:
            found.pop(name, None)
    return Tables(found, int(noted[AS_OF]) if AS_OF in noted else None)


def answer(tables: Tables, query: str, limit: int, span: Span, *, any_sql: bool = False) -> Answer:
    """At most `limit` rows of a question. Raises NotCommon when it names what is no table, or may
    mean something else to Spark (with `any_sql` only the first), duckdb.Error when it is wrong.
    """
    import duckdb

    with closing(duckdb.connect()) as db:
        names: list[str | None] = [None]
        if not any_sql:
            query = spelt(query)
            [serialized] = db.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchone() or [""]
            names = names_of(serialized)
        db.execute(_LIKE_SPARK)
        _open(db, tables, query, span)
        described = db.execute(f"DESCRIBE {query}").fetchall()
        kinds = [str(row[1]) for row in described]
        unlike = [kind for kind in kinds if kind not in _PLAIN and not kind.startswith("DECIMAL")]
        if unlike and not any_sql:
            raise NotCommon(f"a column of type {unlike[0].partition('(')[0]}")
        # A time comes as a number: DuckDB would import a package for zones.
        columns = [f"c{place}" for place in range(len(kinds))]
        wanted = [f"epoch_us({c})" if kind == _TIME else c for c, kind in zip(columns, kinds, strict=True)]
        named = f"({query}) AS q({', '.join(columns)})"
        asked = f"SELECT {', '.join(wanted)} FROM {named} LIMIT {int(limit)}"  # noqa: S608 - it is the user's
        rows = db.execute(asked).fetchall()
    shown = [str(row[0]) for row in described]
    if len(names) == len(shown):
        shown = [name or given for name, given in zip(names, shown, strict=True)]
    return Answer(shown, kinds, rows)


def _open(db: Any, tables: Tables, query: str, span: Span) -> None:
    """Makes the views that a question names. Raises NotCommon: it names another."""
    for package in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
        [place] = [found for found in _below(files(package)) if found.endswith(".duckdb_extension")]
        db.execute(f"LOAD '{place}'")
    for name in named_in(query):
        told = told_of(name, tables.places, tables.as_of_ms, span)
        db.execute(f"CREATE VIEW {name} AS SELECT * FROM {told}")  # noqa: S608 - of our own names


def _below(folder: Any) -> Iterator[str]:
    for found in folder.iterdir():
        if found.is_dir():
            yield from _below(found)
        else:
            yield str(found)


def _local(value: Any, kind: str) -> Any:
    """A time as PySpark gives it: of the machine's zone, without naming it."""
    if kind == _TIME and value is not None:
        return _moment(value).astimezone().replace(tzinfo=None)
    return value


def _plain(value: Any, kind: str) -> Any:
    """A value as Spark writes it in JSON."""
    if kind == _TIME:
        return _moment(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, date) else value


def _moment(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)
