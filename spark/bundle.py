"""Writes `spark/` and `schemas/` as one zip for somebody's own Spark: `spark-submit --py-files
leaseway-spark.zip`.

It needs nothing but PySpark and numpy there, with the Kafka and Avro connectors
(docs/reference/analytics.md). Must not import PySpark.
"""

from __future__ import annotations

import sys
import zipfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

PACKAGES = ("schemas", "spark")
ENDINGS = (".py", ".avsc", ".css", ".xml", ".typed")
# Equal contents are an equal file, whenever it is made.
_TIME = (1980, 1, 1, 0, 0, 0)


def write(path: Path) -> int:
    """Writes the zip at `path`; returns the number of files in it. Raises OSError."""
    found = [(name, content) for package in PACKAGES for name, content in _below(files(package), package)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(found):
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return len(found)


def _below(folder: Traversable, name: str) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        inside = f"{name}/{entry.name}"
        if entry.is_dir():
            found += _below(entry, inside)
        elif entry.name.endswith(ENDINGS):
            found.append((inside, entry.read_bytes()))
    return found


if __name__ == "__main__":
    write(Path(sys.argv[1]))
