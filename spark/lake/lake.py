"""Copies the log into tables, round by round.

There is no second truth beside the tables: what a table has is in the snapshot that has it. So a
job that is killed anywhere goes on where its last commit was, and of two jobs at once one is
refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.topics import QUEUE_KEY, control_topic
from spark.frames.log import BadOption, Log
from spark.frames.session import leaf
from spark.frames.source import one_topic, read
from spark.frames.tables import Tables, newest_queues, queues_of
from spark.lake.brokers import cluster_of
from spark.lake.commits import Commits, Wish
from spark.lake.derived.deliveries import Deliveries
from spark.lake.derived.lifecycles import Lifecycles
from spark.lake.derived.made import Derived, News
from spark.lake.derived.minutes import Minutes
from spark.lake.feeds import FEEDS
from spark.lake.maintenance import maintain
from spark.lake.messages import masked_queues
from spark.lake.places.warehouse import AS_OF, BODIES, LOG, UNMASKED, Warehouse, note_of
from spark.lake.tables.catalog import Catalog
from spark.lake.tables.table import Overtaken
from spark.progress import tell
from spark.rules.floors import runs_of_snapshots

# Of a copy that others overtake.
_TRIES = 3


class Lake:
    """The copy of one log in one warehouse. Raises BadOption: the warehouse is that of another
    log.
    """

    def __init__(self, spark_session: SparkSession, log: Log, warehouse: Warehouse, wish: Wish) -> None:
        self._log = log
        warehouse.make()
        self._catalog = Catalog(spark_session, warehouse)
        self.session = self._catalog.spark_session
        self.tables = self._catalog.open()
        self._check_log()
        self._commits = Commits(self.session, log, self.tables, replace(wish, bodies=self._bodies(wish)))

    def run(self, every_s: float | None) -> None:
        """Copies what the log has; with `every_s` again and again, so long after each beginning: a
        round that another job has overtaken is followed by the next. Raises Overtaken (only without
        `every_s`), Py4JJavaError.
        """
        if every_s is None:
            self.round()
            return
        while True:
            began = time.monotonic()
            try:
                self.round()
            except Overtaken as error:
                tell("lake", f"{error}; what it has is whole, and the next round goes on there")
            time.sleep(max(0.0, every_s - (time.monotonic() - began)))

    def bring(self, since_ms: int) -> None:
        """Copies unless the tables tell of `since_ms` (epoch ms) already, which another job may see
        to meanwhile. Raises as `run`.
        """
        tries_left = _TRIES
        while int(self._catalog.noted().get(AS_OF, 0)) < since_ms:
            tries_left -= 1
            try:
                self.round()
            except Overtaken:
                if not tries_left:
                    raise

    def round(self) -> None:
        """Copies what the log has by now, then does what is due of maintenance. Raises as `run`."""
        as_of = int(time.time() * 1000)
        control = read(self.session, self._log, one_topic(control_topic(self._log.prefix)))
        kept = control.where(F.col("key").cast("string").startswith(QUEUE_KEY)).persist()
        # Before the journal: no younger than that.
        runs = self._runs()
        try:
            queues = leaf(queues_of(kept))
            changed = self._copy(queues, masked_queues(newest_queues(kept)))
            changed |= self._derive(queues, runs, as_of)
        finally:
            kept.unpersist()
            if runs is not None:
                runs.unpersist()
        self._catalog.note({AS_OF: str(as_of)})
        maintain(self._catalog, self.tables, changed)

    def _copy(self, queues: DataFrame, masked: DataFrame) -> set[str]:
        """Copies every table to where the log ends; the names of those that got rows."""
        changed = {feed.table for feed in FEEDS if _all_of(partial(self._commits.of_topic, feed, queues))}
        if _all_of(lambda: self._commits.of_messages(queues, masked)):
            changed.add("messages")
        return changed

    def _runs(self) -> DataFrame | None:
        """RUNS as of now, once: for the first round, which may begin behind what settled them."""
        if note_of("lifecycles") in self._catalog.noted():
            return None
        runs = runs_of_snapshots(Tables(self.session, self._log).snapshots())
        # Twice, so that they need not be read again, later, with an executor that is lost.
        kept = runs.persist(StorageLevel.MEMORY_AND_DISK_2)
        kept.count()
        return kept

    def _derive(self, queues: DataFrame, runs: DataFrame | None, as_of_ms: int) -> set[str]:
        """Brings the tables that are made of others up to date; the names of those that changed."""
        noted, changed = self._catalog.noted(), set()
        derived: tuple[Derived, ...] = (
            Deliveries(self.tables),
            Lifecycles(self.tables, queues, runs),
            Minutes(self.tables),
        )
        for made in derived:
            news = News.since(noted.get(note_of(made.name)), self.tables, as_of_ms)
            if made.update(news):
                changed.add(made.name)
            self._catalog.note({note_of(made.name): news.now.note()})
        return changed

    def _bodies(self, wish: Wish) -> str:
        """Whose bodies are copied: noted at once, so that who does not say it copies no others."""
        noted = self._catalog.noted().get(BODIES)
        bodies = wish.bodies or noted or UNMASKED
        if bodies != noted:
            self._catalog.note({BODIES: bodies})
        return bodies

    def _check_log(self) -> None:
        ours = f"{cluster_of(self.session, self._log)}/{self._log.prefix}"
        noted = self._catalog.noted().get(LOG)
        if noted is None:
            self._catalog.note({LOG: ours})
        elif noted != ours:
            raise BadOption(f"--warehouse has the tables of another log: {noted}, and this one is {ours}")


def _all_of(commit: Callable[[], bool | None]) -> bool:
    """Commits until there is no more; whether there was anything."""
    more = commit()
    some = more is not None
    while more:
        more = commit()
    return some
