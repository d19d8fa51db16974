"""The zip for somebody's own Spark."""

from __future__ import annotations

import zipfile
from pathlib import Path

from spark.bundle import write


def test_the_zip_has_both_packages_and_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    number = write(first)
    assert write(second) == number and first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert len(names) == number and names == sorted(names)
    assert {"spark/__init__.py", "spark/page/style.css", "schemas/avro/message.1.avsc"} <= set(names)
    assert not [name for name in names if name.endswith(".pyc") or not name.startswith(("spark/", "schemas/"))]
