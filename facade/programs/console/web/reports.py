"""The causes of dead letters, by the newest of Spark's reports in a folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from msgspec import DecodeError, Struct, field, json

logger = logging.getLogger(__name__)

SUMMARY: Final = "summary.json"
# That of some thousand queues is smaller.
MOST_BYTES: Final = 64 * 1024 * 1024


class Cause(Struct, frozen=True):
    """What bodies of dead letters have in common. `queues`: where these letters lie, or lay;
    `at_rest`: how many of them were not settled at the end of the report.
    """

    says: str
    dead_letters: int
    at_rest: int
    queues: list[str]
    source_queues: list[str | None]
    reasons: list[str]


class Report(Struct, frozen=True):
    """What is read of a summary: the time it is about, ISO 8601 in UTC, and causes, the largest
    first.
    """

    begin: str = field(name="from")
    end: str = field(name="to")
    causes: list[Cause]

    def about(self, queue: str) -> list[Cause]:
        """Returns the causes of letters of a queue."""
        return [cause for cause in self.causes if queue in cause.queues]


class Reports:
    """The newest report of a folder, which may be written, replaced or deleted meanwhile."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        self._known: tuple[int, Path] | None = None
        self._report: Report | None = None

    def newest(self) -> Report | None:
        """Returns the report that was written last; None = there is none, or it can't be read."""
        if self._folder is None:
            return None
        try:
            found = max(((path.stat().st_mtime_ns, path) for path in self._folder.glob(f"*/{SUMMARY}")), default=None)
        except OSError as error:
            logger.warning("action=find_report folder=%s error=%r", self._folder, error)
            return None
        if found != self._known:
            self._known, self._report = found, _read(found[1]) if found else None
        return self._report


def _read(path: Path) -> Report | None:
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise ValueError(f"at most {MOST_BYTES} bytes are read, it has {size}")
        return json.decode(path.read_bytes(), type=Report)
    except (OSError, ValueError, DecodeError) as error:
        logger.warning("action=read_report file=%s error=%r", path, error)
        return None
