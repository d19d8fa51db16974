"""Where tables are, and what a session is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark.lake.warehouse import Warehouse


def test_a_session_is_given_an_absolute_folder_and_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Warehouse(Path("my tables")).settings
    first = "spark.sql.catalog.lake"
    assert settings[f"{first}.warehouse"] == (tmp_path / "my tables").as_uri()
    assert settings[f"{first}.uri"] == f"jdbc:sqlite:{tmp_path}/my tables/catalog.db?busy_timeout=20000"
    assert settings[f"{first}.cache-enabled"] == "false"
