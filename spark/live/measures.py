"""What a live job says of itself, as Prometheus' text: how far behind it is, how fast, and what its
folder has come to.

Must not import PySpark: it reads the JSON of a query's progress.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

FILE = "metrics.prom"  # Below the folder of the job; replaced as a whole.
FOLDERS = ("tallies", "leases", "states", "checkpoints")
_WORDS = {
    "lag_records": "Records that the log had behind the last micro-batch.",
    "batch": "Number of the last micro-batch.",
    "batch_records": "Records of the last micro-batch.",
    "batch_seconds": "How long the last micro-batch took.",
    "records_per_second": "Records of the last micro-batch by the time that it took.",
    "progress_timestamp_seconds": "When the stream said this.",
    "state_bytes": "What the next micro-batch must know of those before it.",
    "files": "Files below a folder of the job.",
}
Sample = tuple[str, str, str, float]  # name without leaseway_live_, label, its value, number


def of_progress(progress: Mapping[str, Any]) -> list[Sample]:
    """The numbers of one stream, by the progress of its query."""
    stream, records = str(progress["name"]), int(progress["numInputRows"])
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    numbers = {
        "lag_records": sum(_behind(source) for source in progress["sources"]),
        "batch": int(progress["batchId"]),
        "batch_records": records,
        "batch_seconds": seconds,
        "records_per_second": records / seconds if seconds else 0.0,
        "progress_timestamp_seconds": datetime.fromisoformat(progress["timestamp"]).timestamp(),
    }
    return [(name, "stream", stream, float(number)) for name, number in numbers.items()]


def of_folder(out: Path) -> list[Sample]:
    """The number of files, and the bytes of the newest of each state."""
    files = [("files", "folder", name, float(sum(1 for _ in _files(out / name)))) for name in FOLDERS]
    states = ((path.name, _newest(path)) for path in sorted((out / "states").glob("*")))
    return files + [
        ("state_bytes", "state", name, float(sum(file.st_size for file in _files(newest)))) for name, newest in states
    ]


def text_of(samples: Iterable[Sample]) -> str:
    """The samples in Prometheus' text format."""
    some = list(samples)
    lines = []
    for name, words in _WORDS.items():
        lines += [f"# HELP leaseway_live_{name} {words}", f"# TYPE leaseway_live_{name} gauge"]
        lines += [
            f'leaseway_live_{name}{{{label}="{value}"}} {number:.15g}' for n, label, value, number in some if n == name
        ]
    return "\n".join(lines) + "\n"


def write(out: Path, progresses: Iterable[Mapping[str, Any]]) -> None:
    """Writes FILE below `out`; a reader finds the one before or this one, whole."""
    samples = [sample for progress in progresses for sample in of_progress(progress)]
    part = out / f"{FILE}.part"
    part.write_text(text_of(samples + of_folder(out)), encoding="ascii")
    part.replace(out / FILE)


def _behind(source: Mapping[str, Any]) -> int:
    """Records between where a source has read to and where the log ends; it names neither while it
    has read nothing.
    """
    latest, read = source.get("latestOffset") or {}, source.get("endOffset") or {}
    return sum(
        max(0, end - read.get(topic, {}).get(partition, 0))
        for topic, partitions in latest.items()
        for partition, end in partitions.items()
    )


def _newest(state: Path) -> Path:
    return max(state.iterdir(), key=lambda path: int(path.name), default=state)


def _files(folder: Path) -> Iterator[os.stat_result]:
    """What is known of each file; one that is deleted meanwhile is none."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                yield Path(place, name).stat()
