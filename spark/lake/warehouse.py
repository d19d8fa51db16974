"""Where the tables are: a folder, and the catalog that says which state of each table counts.

Must not import PySpark: who only reads tables asks here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CATALOG = "lake"
NAMESPACE = "bronze"
CATALOG_FILE = "catalog.db"
# Noted of the warehouse: epoch ms before which everything was appended that the tables have whole,
# but for what was not decided.
AS_OF = "leaseway.as_of"
# The catalog is locked while a commit writes its row, which takes milliseconds.
_BUSY_MS = 20_000


@dataclass(frozen=True)
class Warehouse:
    """A folder of tables, made when it is missing. Its catalog is a SQLite file in it, which
    PyIceberg and DuckDB can read too.
    """

    folder: Path

    @property
    def catalog_file(self) -> Path:
        """The SQLite file of the catalog."""
        return self.folder.absolute() / CATALOG_FILE

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a Spark session that make the catalog known as `lake`. A session of a stream
        has a cache of its own, and would commit on an old snapshot: so no cache.
        """
        first = f"spark.sql.catalog.{CATALOG}"
        return {
            first: "org.apache.iceberg.spark.SparkCatalog",
            f"{first}.type": "jdbc",
            f"{first}.cache-enabled": "false",
            f"{first}.uri": f"jdbc:sqlite:{self.catalog_file}?busy_timeout={_BUSY_MS}",
            f"{first}.jdbc.schema-version": "V1",
            f"{first}.warehouse": self.folder.absolute().as_uri(),
        }

    @property
    def session_settings(self) -> dict[str, str]:
        """The same, and a question names a table by its name alone."""
        return {
            **self.settings,
            f"spark.sql.catalog.{CATALOG}.default-namespace": NAMESPACE,
            "spark.sql.defaultCatalog": CATALOG,
        }
