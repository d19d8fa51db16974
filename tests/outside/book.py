"""The book: what each client asked and was told, one JSON line each, appended as it happens and
never changed.

Times are seconds of one monotonic clock since the book was opened.

Outcomes of an operation: `done`, `refused` (4xx: nothing may have changed), `unknown` (503, no
whole answer: both are possible), `unreached` (no connection: nothing was asked), `broken` (500:
never right).
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import IO, Any

Entry = dict[str, Any]

DONE, REFUSED, UNKNOWN, UNREACHED, BROKEN = "done", "refused", "unknown", "unreached", "broken"


class Book:
    """Append-only and shared by all threads of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] = path.open("x")
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.lines = 0

    def now(self) -> float:
        """Seconds since the book was opened."""
        return round(time.monotonic() - self._began, 4)

    def write(self, op: str, t0: float, **more: Any) -> None:
        """Append one entry; `t1` is now unless given."""
        entry = {"op": op, "t0": t0, "t1": more.pop("t1", None) or self.now(), **more}
        text = json.dumps(entry, separators=(",", ":"))
        with self._lock:
            if not self._file.closed:
                self._file.write(text + "\n")
                self.lines += 1

    def flush(self) -> None:
        """Bring what was written to the file."""
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        """No more entries; late ones of threads that hang are dropped."""
        with self._lock:
            self._file.close()


def read(path: Path) -> list[Entry]:
    """All entries, each with its line number as `n`."""
    with path.open() as file:
        return [{"n": number, **json.loads(line)} for number, line in enumerate(file, 1)]


def body_of(token: str) -> str:
    """The body that a token stands for: it says its token, and has a length of its own."""
    head = f"{token}|"
    return head + head * (sum(token.encode()) * 7 % 40)


def token_of(body: str) -> tuple[str, bool]:
    """The token of a body, and whether the body is exactly what was sent."""
    token = body.split("|", 1)[0]
    return token, body == body_of(token)
