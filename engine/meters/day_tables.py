"""Days that Spark has added up: the folder that `leaseway report --out` writes.

A day that is there is told from there, also when Kafka has its minutes no more; Spark writes one
only when it is over. Of several reports the newest counts.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec

from engine.meters.shapes import StatisticsRow
from schemas.vocabulary import DAYS_FOLDER

logger = logging.getLogger(__name__)

_ROWS = msgspec.json.Decoder(list[StatisticsRow])
MOST_BYTES = 4_000_000


class DayTables:
    """`folder` "" = there are none."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def day(self, incarnation: str, day: str) -> list[StatisticsRow] | None:
        """The rows of a day of a queue, None = Spark has not written them."""
        if not self._folder:
            return None
        return await asyncio.to_thread(self._read, incarnation, day)

    def _read(self, incarnation: str, day: str) -> list[StatisticsRow] | None:
        name = f"{DAYS_FOLDER}/{day}/{incarnation}.json"
        try:
            found = [*Path(self._folder).glob(f"*/{name}"), *Path(self._folder).glob(name)]
            newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
            if newest is None or newest.stat().st_size > MOST_BYTES:
                return None
            return _ROWS.decode(newest.read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            logger.warning("action=read_day folder=%s day=%s error=%s", self._folder, day, error)
            return None
