"""The views of one question: each reads what the question can see of it, and no topic twice."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from schemas.vocabulary import LATE_MS, LOG_TIME_MARGIN_MS
from spark.frames.columns import FRAMES
from spark.frames.source import queues_of_topics
from spark.frames.tables import Tables
from spark.frames.wanted import Wanted, empty_views, wanted_of

# Before the times that are asked for: a second copy of a commit is told by the first. After them:
# brokers whose clock was set back.
BEFORE_MS, AFTER_MS = 60 * 60_000, LOG_TIME_MARGIN_MS
_ALL = Wanted()


def open_views(tables: Tables, plan: Callable[[SparkSession], Any], text: str) -> list[str]:
    """Makes the views that a question names temporary views of the session, as narrow as the
    question is; their names.

    `plan` plans the question (`wanted.plan_of`) over views without rows; `text` has the names of
    all that it may name besides. Raises AnalysisException, ParseException: it is wrong. What the
    views share is kept in the session: one session is for one question.
    """
    named = [name for name in FRAMES if re.search(rf"\b{name}\b", text, re.IGNORECASE)]
    if not named:
        return []
    empty_views(tables.spark_session, named)
    wanted = wanted_of(plan(tables.spark_session))
    views = _Views(tables, {name: wanted.get(name, _ALL) for name in named})
    for name in named:
        views.frame(name).createOrReplaceTempView(name)
    return named


class _Views:
    """The frames of one question by name; `wanted` are those that it names."""

    def __init__(self, tables: Tables, wanted: dict[str, Wanted]) -> None:
        known = tables.queues().persist()
        self._tables = Tables(tables.spark_session, tables.log, tables.span, known=known)
        self._known = known
        self._wanted = wanted
        self._kept: dict[str, DataFrame] = {}
        conditions = any(seen.queues for seen in wanted.values())
        self._topics = queues_of_topics(tables.spark_session, tables.log) if conditions else []

    def frame(self, name: str) -> DataFrame:
        """A view."""
        if name == "journal":
            return self._journal(self._tables)
        if name == "deliveries":
            # What ends a lease may come after the messages that are asked for.
            return self._tables.deliveries(self._journal(self._tables), self._narrow(name).sent())
        if name == "dead_letters":
            return self._narrow(name).dead_letters(self._journal(self._tables.until_now()))
        if name == "lives":
            return self._narrow(name).lives(self._journal(self._tables.until_now()))
        if name in ("meters", "stale_handles", "requests", "audit"):
            return self._timed(name, LOG_TIME_MARGIN_MS, LATE_MS)
        frame: DataFrame = getattr(self._narrow(name), name)()
        return frame

    def _narrow(self, name: str) -> Tables:
        """The tables of the queues and times that are seen of a view."""
        seen = self._wanted[name]
        names = seen.names(self._tables.spark_session, self._topics)
        span = self._tables.span.both(seen.span.padded(BEFORE_MS, AFTER_MS))
        return Tables(self._tables.spark_session, self._tables.log, span, names, self._known)

    def _timed(self, name: str, before_ms: int, after_ms: int) -> DataFrame:
        span = self._tables.span.both(self._wanted[name].span.padded(before_ms, after_ms))
        frame: DataFrame = getattr(Tables(self._tables.spark_session, self._tables.log, span), name)()
        return frame

    def _journal(self, tables: Tables) -> DataFrame:
        """JOURNAL of what the question sees; views that look at it several times share one that is
        kept when it has been read.
        """
        # A dead letter was settled before the journal begins: before that of all queues does.
        users = [self._wanted[name] for name in ("journal", "deliveries", "lives") if name in self._wanted]
        about = None
        if users and "dead_letters" not in self._wanted:
            about = functools.reduce(Wanted.either, users).queues
        key = repr(tables.span)
        if key not in self._kept:
            journal = tables.journal(about=about)
            self._kept[key] = journal if set(self._wanted) <= {"journal"} else journal.persist()
        return self._kept[key]
