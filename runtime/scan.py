"""How much one request may read: records, bytes and time."""

from __future__ import annotations

import asyncio


class Scan:
    """Counts what is read. Time runs from the making on, and is looked at between reads."""

    def __init__(self, *, most_records: int, most_bytes: int, most_s: float) -> None:
        self.records = 0
        self._most_records = most_records
        self._bytes_left = most_bytes
        self._until = asyncio.get_running_loop().time() + most_s

    def add(self, records: int, size: int) -> None:
        """Counts what was read."""
        self.records += records
        self._bytes_left -= size

    def cut(self) -> str:
        """The bound that is reached: records, bytes or time; empty = none."""
        if self.records >= self._most_records:
            return "records"
        if self._bytes_left <= 0:
            return "bytes"
        return "time" if asyncio.get_running_loop().time() >= self._until else ""
