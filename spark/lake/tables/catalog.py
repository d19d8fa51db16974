"""The catalog of a warehouse: its tables are made when they are missing, and notes are kept.

Iceberg's own API through the session's JVM: it commits a table with its order at once, and needs no
extension of Spark's SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.frames.session import beside
from spark.frames.source import java_class
from spark.lake.places.warehouse import CATALOG, NAMESPACE, Warehouse
from spark.lake.shapes import SHAPES, Shape
from spark.lake.tables.table import ICEBERG, Table

_PROPERTIES = {
    "format-version": "2",
    # A commit takes one task for each day, so that a day gets one file.
    "write.distribution-mode": "hash",
    # Each commit writes one; those before the newest hundred are deleted.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class Catalog:
    """The tables of a warehouse. A session knows one catalog by a name for as long as it lives, so
    each has a session of its own, in which all work on its tables is done.
    """

    def __init__(self, spark_session: SparkSession, warehouse: Warehouse) -> None:
        self.spark_session = beside(spark_session)
        for name, value in warehouse.settings.items():
            self.spark_session.conf.set(name, value)
        # PySpark knows nothing of Iceberg's tables.
        self._session: Any = self.spark_session._jsparkSession  # noqa: SLF001
        self._util = self._java("spark.Spark3Util")

    def open(self) -> dict[str, Table]:
        """All tables by name; those that are missing are made. Raises Py4JJavaError."""
        self.spark_session.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
        return {name: self._opened(name, shape) for name, shape in SHAPES.items()}

    def noted(self) -> dict[str, str]:
        """What is noted of the warehouse as a whole."""
        return {str(key): str(value) for key, value in self._catalog().loadNamespaceMetadata(self._space()).items()}

    def note(self, notes: Mapping[str, str]) -> None:
        """Notes something of the warehouse as a whole."""
        self._catalog().setProperties(self._space(), dict(notes))

    def _catalog(self) -> Any:
        return self._util.loadIcebergCatalog(self._session, CATALOG)

    def _space(self) -> Any:
        return self._java("catalog.TableIdentifier").parse(f"{NAMESPACE}.x").namespace()

    def _java(self, name: str) -> Any:
        return java_class(self.spark_session, ICEBERG + name)

    def _opened(self, name: str, shape: Shape) -> Table:
        catalog = self._catalog()
        place = self._java("catalog.TableIdentifier").parse(f"{NAMESPACE}.{name}")
        if not catalog.tableExists(place):
            try:
                self._make(catalog, place, shape)
            except Py4JJavaError as error:
                if not str(error.java_exception.getClass().getName()).endswith("AlreadyExistsException"):
                    raise
        table = Table(self.spark_session, name, shape)
        table.widen()
        return table

    def _make(self, catalog: Any, place: Any, shape: Shape) -> None:
        columns = self._java("spark.SparkSchemaUtil").convert(self._session.parseDataType(shape.columns.json()))
        spec = self._java("PartitionSpec").builderFor(columns)
        order, nulls_first = self._java("SortOrder").builderFor(columns), self._java("NullOrder").NULLS_FIRST
        for column in shape.order:
            order = order.asc(column, nulls_first)
        maker = catalog.buildTable(place, columns).withSortOrder(order.build())
        maker = maker.withPartitionSpec((spec if shape.day is None else spec.day(shape.day)).build())
        maker.withProperties(_PROPERTIES).create()
