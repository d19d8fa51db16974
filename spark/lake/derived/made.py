"""How far a table has got that is made of journal and messages, and what is news to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from spark.lake.tables.table import Table

# A clock may have been set back by so much, or be behind another.
MARGIN_US = 3_600_000_000


@dataclass(frozen=True)
class Made:
    """Noted of a table: the snapshots that it is made of, and as of when (epoch ms)."""

    journal: int | None = None
    messages: int | None = None
    as_of_ms: int = 0

    @classmethod
    def noted(cls, note: str | None) -> Made:
        """What a note says; None = nothing is made yet."""
        return cls() if note is None else cls(**json.loads(note))

    def note(self) -> str:
        """As it is noted."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class News:
    """The rows of JOURNAL and MESSAGES that have come between two notes."""

    journal: DataFrame
    messages: DataFrame
    before: Made
    now: Made

    @property
    def none(self) -> bool:
        """Whether nothing has come."""
        return (self.before.journal, self.before.messages) == (self.now.journal, self.now.messages)

    @classmethod
    def since(cls, note: str | None, tables: Mapping[str, Table], as_of_ms: int) -> News:
        """The news since what was noted up to the newest snapshots. Raises Py4JJavaError."""
        journal, messages = tables["journal"], tables["messages"]
        before, now = Made.noted(note), Made(journal.snapshot(), messages.snapshot(), as_of_ms)
        return cls(
            journal.added(before.journal, now.journal), messages.added(before.messages, now.messages), before, now
        )


class Derived(Protocol):
    """A table that is made of journal and messages; one job at a time makes it."""

    name: str

    def update(self, news: News) -> bool:
        """Brings the table to where its news are, of which any may be told again; whether rows have
        changed. Raises Overtaken, Py4JJavaError.
        """
