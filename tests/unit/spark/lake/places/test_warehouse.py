"""Where tables are, and what a session is told of it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from spark.frames.log import BadOption
from spark.lake.places.warehouse import SECRET, Warehouse, warehouse_of

FIRST = "spark.sql.catalog.lake"
DATABASE = "postgresql://ann:s3cret@db/lake"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)


def named(place: str, catalog: str | None = None) -> Warehouse:
    return warehouse_of(Namespace(warehouse=place, catalog=catalog))


def test_a_session_is_given_an_absolute_folder_and_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = named("my tables")
    assert (found.on_s3, found.only_spark) == (False, None)
    settings = found.settings
    assert settings[f"{FIRST}.warehouse"] == (tmp_path / "my tables").as_uri()
    assert settings[f"{FIRST}.uri"] == f"jdbc:sqlite:{tmp_path}/my tables/catalog.db?busy_timeout=20000"
    assert settings[f"{FIRST}.cache-enabled"] == "false"
    found.make()
    assert (tmp_path / "my tables").is_dir()


def test_a_bucket_is_read_by_iceberg_itself_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    found = named("s3a://lake/some/tables/", DATABASE)
    assert (found.folder, found.on_s3) == (None, True)
    assert found.settings[f"{FIRST}.warehouse"] == "s3a://lake/some/tables"
    assert found.settings[f"{FIRST}.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert found.settings[SECRET] == "s3cret"
    assert not [name for name in found.settings if ".s3." in name or "region" in name]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio:9000")
    told = found.settings
    assert (told[f"{FIRST}.s3.endpoint"], told[f"{FIRST}.s3.path-style-access"]) == ("http://minio:9000", "true")
    assert told[f"{FIRST}.client.region"] == "us-east-1"
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert found.settings[f"{FIRST}.client.region"] == "eu-central-1"
    assert not [name for name in named("folder", DATABASE).settings if ".s3." in name]


def test_a_rest_catalog_is_told_the_name_as_it_is_given() -> None:
    found = named("analytics", "https://catalog:8181/")
    assert (found.folder, found.on_s3, found.settings[f"{FIRST}.warehouse"]) == (None, None, "analytics")
    assert f"{FIRST}.io-impl" not in found.settings
    assert named("s3://bucket/x", "https://catalog:8181/").on_s3


def test_what_can_hold_no_tables_is_refused() -> None:
    with pytest.raises(BadOption, match="can't hold the catalog, so give --catalog too"):
        named("s3a://lake/tables")
    with pytest.raises(BadOption, match="is a folder or s3a://bucket/prefix"):
        named("hdfs://lake/tables", DATABASE)
