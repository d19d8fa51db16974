"""How far a table has got that is made of journal and messages, and what is news to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame

from spark.lake.tables.table import Table


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
    def since(cls, note: str | None, tables: Mapping[str, Table], as_of_ms: int) -> News | None:
        """The news up to the newest snapshots; None = there is no row of either. Raises
        Py4JJavaError.
        """
        journal, messages = tables["journal"], tables["messages"]
        before, now = Made.noted(note), Made(journal.snapshot(), messages.snapshot(), as_of_ms)
        if now.journal is None and now.messages is None:
            return None
        return cls(
            journal.added(before.journal, now.journal), messages.added(before.messages, now.messages), before, now
        )
