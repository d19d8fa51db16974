"""What says which state of each table counts: a SQLite file, a PostgreSQL database, or a service
that speaks Iceberg's REST protocol.

Must not import PySpark: who only reads tables asks here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from spark.frames.log import BadOption

# The catalog is locked while a commit writes its row, which takes milliseconds.
_BUSY_MS = 20_000
PASSWORD = "jdbc.password"  # noqa: S105 - the name of a setting
_POSTGRES = ("postgresql", "postgres")
# The settings of a REST catalog that are secrets: Iceberg reads them from these variables itself.
_SECRETS = {"token": "ICEBERG_TOKEN", "credential": "ICEBERG_CREDENTIAL"}


@dataclass(frozen=True)
class Sqlite:
    """A file, which PyIceberg and DuckDB can read too."""

    file: Path

    @property
    def settings(self) -> dict[str, str]:
        """What Iceberg is told of it, by the names of its catalog properties."""
        uri = f"jdbc:sqlite:{self.file}?busy_timeout={_BUSY_MS}"
        return {"type": "jdbc", "uri": uri, "jdbc.schema-version": "V1"}


@dataclass(frozen=True)
class Postgres:
    """A database. Without a password the driver looks into ~/.pgpass."""

    uri: str
    user: str | None
    password: str | None = field(repr=False)

    @property
    def settings(self) -> dict[str, str]:
        """As those of Sqlite; the password is among them."""
        told = {"type": "jdbc", "uri": self.uri, "jdbc.schema-version": "V1"}
        if self.user:
            told["jdbc.user"] = self.user
        return told if self.password is None else {**told, PASSWORD: self.password}


@dataclass(frozen=True)
class Rest:
    """A service. `secrets`: the names of those of `_SECRETS` whose variable is set."""

    uri: str
    secrets: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """As those of Sqlite, with the names of the variables that hold the secrets."""
        return {"type": "rest", "uri": self.uri, **{name: f"env:{_SECRETS[name]}" for name in self.secrets}}


Catalog = Sqlite | Postgres | Rest


def catalog_of(url: str, environment: Mapping[str, str]) -> Postgres | Rest:
    """The catalog at a URL. Raises BadOption, whose text never has the URL, which may have a
    password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadOption("--catalog is no URL") from None
    if parts.scheme in ("http", "https") and host:
        if parts.username or parts.password:
            raise BadOption(f"--catalog: a REST catalog takes its secret from {' or '.join(_SECRETS.values())}")
        return Rest(url, tuple(name for name, variable in _SECRETS.items() if environment.get(variable)))
    if parts.scheme in _POSTGRES and host:
        return _postgres(parts, host, port, environment)
    raise BadOption("--catalog is a URL: postgresql://user@host:port/database, or http(s)://... of a REST catalog")


def _postgres(parts: SplitResult, host: str, port: int | None, environment: Mapping[str, str]) -> Postgres:
    if parts.path.strip("/") == "":
        raise BadOption("--catalog names no database: postgresql://user@host:port/database")
    if "password" in parts.query.lower():
        raise BadOption("--catalog: give the password by PGPASSWORD, or as user:password@host")
    place = f"[{host}]" if ":" in host else host
    query = f"?{parts.query}" if parts.query else ""
    uri = f"jdbc:postgresql://{place}{f':{port}' if port else ''}{parts.path}{query}"
    user = unquote(parts.username) if parts.username else environment.get("PGUSER")
    password = unquote(parts.password) if parts.password else environment.get("PGPASSWORD")
    return Postgres(uri, user or None, password or None)
