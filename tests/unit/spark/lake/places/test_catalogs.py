"""Which catalog a URL names, and that no secret of it is told."""

from __future__ import annotations

import pytest

from spark.frames.log import BadOption
from spark.lake.places.catalogs import Postgres, Rest, catalog_of


def test_a_database_is_told_to_its_driver_with_a_password_from_the_url_or_the_environment() -> None:
    named = catalog_of("postgresql://ann%40x:pa%20ss%2Fw@db:6432/lake?sslmode=require", {"PGPASSWORD": "other"})
    assert named == Postgres("jdbc:postgresql://db:6432/lake?sslmode=require", "ann@x", "pa ss/w")
    assert named.settings == {
        "type": "jdbc",
        "uri": "jdbc:postgresql://db:6432/lake?sslmode=require",
        "jdbc.schema-version": "V1",
        "jdbc.user": "ann@x",
        "jdbc.password": "pa ss/w",
    }
    assert "pa ss/w" not in repr(named)
    taken = catalog_of("postgres://[::1]/lake", {"PGPASSWORD": "p", "PGUSER": "ann"})
    assert taken == Postgres("jdbc:postgresql://[::1]/lake", "ann", "p")
    assert "jdbc.password" not in catalog_of("postgresql://ann@db/lake", {}).settings


def test_a_rest_catalog_takes_its_secrets_from_variables_that_iceberg_reads() -> None:
    assert catalog_of("https://c:8181/catalog", {}).settings == {"type": "rest", "uri": "https://c:8181/catalog"}
    given = catalog_of("https://c/", {"ICEBERG_TOKEN": "t0k3n", "ICEBERG_CREDENTIAL": ""})
    assert given == Rest("https://c/", ("token",))
    assert given.settings["token"] == "env:ICEBERG_TOKEN"


@pytest.mark.parametrize(
    ("url", "about"),
    [
        ("mysql://ann:s3cret@db/lake", "postgresql://user@host:port/database, or http"),
        ("lake.db", "is a URL"),
        ("postgresql://ann:s3cret@db:port/lake", "is no URL"),
        ("postgresql://ann:s3cret@db", "names no database"),
        ("postgresql://ann@db/lake?password=s3cret", "PGPASSWORD"),
        ("https://ann:s3cret@catalog/", "ICEBERG_TOKEN or ICEBERG_CREDENTIAL"),
    ],
)
def test_what_is_no_catalog_is_refused_without_saying_its_password(url: str, about: str) -> None:
    with pytest.raises(BadOption, match=about) as refused:
        catalog_of(url, {})
    assert "s3cret" not in str(refused.value)
