"""Where the tables are: a folder or a bucket, and the catalog that says which state of each table
counts.

Must not import PySpark: who only reads tables asks here too.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark.frames.log import BadOption
from spark.lake.places.catalogs import PASSWORD, Catalog, Postgres, Rest, Sqlite, catalog_of

CATALOG = "lake"
NAMESPACE = "leaseway"
CATALOG_FILE = "catalog.db"
# Noted of the warehouse: epoch ms before which everything was appended that the tables have whole,
# but for what was not decided.
AS_OF = "leaseway.as_of"
# Noted of the warehouse: which log it copies, as cluster/prefix.
LOG = "leaseway.log"
# Noted of the warehouse: whose bodies are copied, as `--bodies`.
BODIES = "leaseway.bodies"
UNMASKED = "unmasked"  # At first.
# The tables that are made of others. Noted of the warehouse, as `leaseway.` and their names: what
# each is made of (`derived.made.Made`).
DERIVED = ("deliveries", "lifecycles", "queue_minutes")


def note_of(table: str) -> str:
    """The key of the note of a table that is made of others."""
    return f"leaseway.{table}"


# The setting of a session that nobody may see: it must not be in a command line.
SECRET = f"spark.sql.catalog.{CATALOG}.{PASSWORD}"
_S3 = ("s3a://", "s3://")
# Every S3 but Amazon's takes any region, and the client wants one.
_ANY_REGION = "us-east-1"


@dataclass(frozen=True)
class Warehouse:
    """Tables at `place`: a folder, a URL of S3, or the name that a REST catalog knows them by.
    Without `server` the catalog is a SQLite file in the folder.
    """

    place: Path | str
    server: Postgres | Rest | None = None

    @property
    def folder(self) -> Path | None:
        """The folder of the tables; None = they are elsewhere."""
        return self.place.absolute() if isinstance(self.place, Path) else None

    @property
    def on_s3(self) -> bool | None:
        """Whether the tables are on S3; None = only the catalog knows."""
        if isinstance(self.place, Path):
            return False
        return True if self.place.startswith(_S3) else None

    @property
    def catalog_file(self) -> Path:
        """The SQLite file of the catalog, where it is one."""
        return Path(self.place).absolute() / CATALOG_FILE

    @property
    def catalog(self) -> Catalog:
        """What says which state counts."""
        return Sqlite(self.catalog_file) if self.server is None else self.server

    @property
    def only_spark(self) -> str | None:
        """Why nothing but Spark can read these tables; None = DuckDB can."""
        if self.server is None:
            return None
        return f"tables with a catalog in {'PostgreSQL' if isinstance(self.server, Postgres) else 'a REST service'}"

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a Spark session that make the catalog known as `lake`. A session of a stream
        has a cache of its own, and would commit on an old snapshot: so no cache.
        """
        first = f"spark.sql.catalog.{CATALOG}"
        told = {"cache-enabled": "false", "warehouse": self.folder.as_uri() if self.folder else str(self.place)}
        if self.on_s3 is not False:
            told |= _s3_settings(os.environ)
        if self.on_s3 and isinstance(self.server, Postgres):
            told["io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        told |= self.catalog.settings
        return {
            first: "org.apache.iceberg.spark.SparkCatalog",
            **{f"{first}.{name}": value for name, value in told.items()},
        }

    @property
    def session_settings(self) -> dict[str, str]:
        """The same, and a question names a table by its name alone."""
        return {
            **self.settings,
            f"spark.sql.catalog.{CATALOG}.default-namespace": NAMESPACE,
            "spark.sql.defaultCatalog": CATALOG,
        }

    @property
    def not_copied(self) -> BadOption:
        """What is wrong where no copy has ended yet."""
        return BadOption(f"--warehouse: no `leaseway lake` has copied a log into {self.place} yet")

    def make(self) -> None:
        """Makes the folder where it is one. Raises OSError."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)


def asked_of(given: Namespace) -> Warehouse | None:
    """The warehouse that is to be asked, None = Kafka is. Raises BadOption."""
    if given.warehouse is not None:
        return warehouse_of(given)
    if given.catalog is not None:
        raise BadOption("--catalog is about tables: give --warehouse")
    if given.fresh is not None:
        raise BadOption("--fresh is about tables: give --warehouse")
    return None


def warehouse_of(given: Namespace) -> Warehouse:
    """What `--warehouse` and `--catalog` say. Raises BadOption."""
    place = str(given.warehouse)
    server = None if given.catalog is None else catalog_of(given.catalog, os.environ)
    if isinstance(server, Rest):
        # It knows its warehouses by names; a folder is as good a name as any.
        return Warehouse(place, server)
    if place.startswith(_S3):
        if server is None:
            raise BadOption("--warehouse: a bucket can't hold the catalog, so give --catalog too (PostgreSQL or REST)")
        return Warehouse(place.rstrip("/"), server)
    if "://" in place:
        raise BadOption("--warehouse is a folder or s3a://bucket/prefix")
    return Warehouse(Path(place), server)


def _s3_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Where S3 is. Keys are not told: the client looks for them itself, in the same environment and
    wherever else Amazon's clients do.
    """
    told = {}
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        # Few servers have a name for each bucket.
        told = {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
    if region or endpoint:
        told["client.region"] = region or _ANY_REGION
    return told
