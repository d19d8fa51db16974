"""Keeps the newest result of each dimension, so that one can be measured again without the
others.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.scale.readings import Result

# In the repository: the page can be written again, and one dimension measured again, on another
# machine too.
FOLDER = Path(__file__).parent / "results"


def write(result: Result, folder: Path = FOLDER) -> None:
    """Keeps a result; the one before it of that dimension is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{result.dimension}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))


def read(dimensions: Iterable[str], folder: Path = FOLDER) -> list[Result]:
    """What is kept, in that order; dimensions never measured are left out."""
    files = [folder / f"{dimension}.json" for dimension in dimensions]
    return [msgspec.json.decode(file.read_bytes(), type=Result) for file in files if file.exists()]
