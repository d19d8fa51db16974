"""Builds Spark sessions."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark.frames.failures import causes_of
from spark.frames.log import BadOption, Log, reach, reach_master
from spark.frames.source import answered
from spark.guard import DRIVER_MEMORY, guard
from spark.progress import tell

# What rows mean, wherever a job runs: timestamps of the log are UTC, and so is a day of a report.
_MEANING = {"spark.sql.session.timeZone": "UTC"}
# What the owner of a cluster may know better: spark-submit --conf and spark-defaults.conf win. The
# first are asked when a context begins, the others are of a session.
_BARS = "spark.ui.showConsoleProgress"
_SECRET = "spark.authenticate.secret"  # noqa: S105 - a name
_LEAST_PARTS, _MOST_PARTS = 32, 1_000
_PARTS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
# Files are about a quarter of the rows of a shuffle, of which a task is to have 16 MiB.
_FILES_OF_A_TASK = 4 << 20
_SETTINGS = {"spark.ui.enabled": "false", _BARS: "false"}
ADVICE = {
    "spark.sql.adaptive.enabled": "true",
    # Many small partitions, put together to some that two tasks can sort in a driver of 2 GiB
    # without a spill. What is read from much more than a commit or a micro-batch has asks for more
    # (`fit_shuffles`).
    "spark.sql.shuffle.partitions": str(_LEAST_PARTS),
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # The default is a form of timestamps that other readers have given up.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session. `settings` count first, then what spark-submit and spark-defaults.conf say, then
    what we advise; the time zone is UTC. `master` None = what spark-submit says, and without
    spark-submit 2 threads here.

    The driver has 2 GiB unless `settings` or spark-submit say otherwise: a JVM that runs keeps what
    it has. Raises BadOption: a standalone cluster without its secret, or one that does not take us.
    """
    builder, begin = SparkSession.builder.appName(name), dict(settings or {})
    if master or "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(master := master or "local[2]")
        begin = {"spark.driver.memory": DRIVER_MEMORY, **begin}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        # A JVM that PySpark starts is a shell for Spark, and would draw bars.
        begin = {_BARS: _SETTINGS[_BARS], **begin}
    # PySpark logs a wrong query with all of its plans, beside raising it.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    submitted = _submitted(begin)
    where = master or submitted.get("spark.master", "local[2]") or ""
    advised = {**_SETTINGS, **guard(where)}
    advised = {key: value for key, value in advised.items() if not submitted.contains(key)}
    if where.startswith("spark:") and "spark.authenticate" in advised and not submitted.contains(_SECRET):
        raise BadOption(
            f"--master {where}: give {_SECRET} in spark-defaults.conf, or say spark.authenticate false there"
        )
    if where.startswith("spark:"):
        reach_master(where)
    for key, value in {**advised, **_MEANING, **begin}.items():
        builder = builder.config(key, value)
    try:
        made = builder.getOrCreate()
    except Py4JJavaError as error:
        raise BadOption(f"--master {where}: Spark does not start: {_reason(error, where)}") from None
    return _advised(made)


def _reason(error: Py4JJavaError, where: str) -> str:
    *_, (_, java) = causes_of(error)
    reason = str(java.getMessage()).partition("\n")[0]
    # A master that refuses an application for its secret is to Spark one that does not answer.
    return f"{reason} Is {_SECRET} that of the cluster?" if where.startswith("spark:") else reason


def beside(spark_session: SparkSession) -> SparkSession:
    """Another session of the same JVM, with catalogs and views of its own."""
    return _advised(spark_session.newSession())


def fit_shuffles(*frames: DataFrame) -> int:
    """Has the shuffles of a session, from now on, as many parts as these frames ask for, which are
    read from files; how many. A setting of the owner stays.

    Adaptive execution puts parts together, but those of a frame that is kept (`persist`) each have
    a task: so there are never many by default.
    """
    made = frames[0].sparkSession
    plans = [frame._jdf.queryExecution().optimizedPlan() for frame in frames]  # noqa: SLF001 - PySpark has no plans
    size = sum(int(plan.stats().sizeInBytes()) for plan in plans)
    parts = max(_LEAST_PARTS, min(_MOST_PARTS, size // _FILES_OF_A_TASK))
    if not {_PARTS, "spark.sql.shuffle.partitions"} & {key for key, _ in made.sparkContext.getConf().getAll()}:
        made.conf.set(_PARTS, str(parts))
    return parts


def leaf(frame: DataFrame) -> DataFrame:
    """The same rows by a plan of one step. Catalyst looks at the whole plan with each step that is
    added, so a long one takes longer than its rows. What is lost is computed again.
    """
    return _frame_of(frame, frame._jdf.toJavaRDD())  # noqa: SLF001


def held(frame: DataFrame) -> DataFrame:
    """The same as `leaf`, computed once and kept until nobody has it. Of `localCheckpoint`, what an
    executor had is lost with it, and the job too.
    """
    return _frame_of(frame, _kept_rows(frame))


@contextlib.contextmanager
def once(frame: DataFrame) -> Iterator[DataFrame]:
    """The same as `held`, until the block ends. `persist` will not do for what is made of a table
    that is written meanwhile: Spark makes a plan that is kept anew then, and `unpersist` finds it
    no more.
    """
    rows = _kept_rows(frame)
    try:
        yield _frame_of(frame, rows)
    finally:
        rows.unpersist(False)


def _kept_rows(frame: DataFrame) -> Any:
    context = frame.sparkSession.sparkContext
    return frame._jdf.toJavaRDD().persist(context._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK))  # noqa: SLF001


def _frame_of(frame: DataFrame, rows: Any) -> DataFrame:
    session = frame.sparkSession
    return DataFrame(session._jsparkSession.createDataFrame(rows, frame._jdf.schema()), session)  # noqa: SLF001


def empty(spark_session: SparkSession, shape: StructType) -> DataFrame:
    """A frame of that shape without a row. One that PySpark makes of a list is read by a process of
    Python.
    """
    columns = (F.lit(None).cast(field.dataType).alias(field.name) for field in shape)
    return spark_session.range(0).select(*columns)


def _advised(made: SparkSession) -> SparkSession:
    for key, value in ADVICE.items():
        if not made.sparkContext.getConf().contains(key):
            made.conf.set(key, value)
    return made


def _submitted(begin: Mapping[str, str]) -> SparkConf:
    """What spark-submit and spark-defaults.conf say: only a JVM knows, which begins with these
    settings unless one runs.
    """
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(begin.items())))  # noqa: SLF001
    return SparkConf()


@contextlib.contextmanager
def job(name: str, master: str | None, log: Log | None) -> Iterator[SparkSession]:
    """The session of one command, `leaseway NAME`: says errors alone, and ends with it. `log` None
    = it asks no Kafka. Raises NoBroker, BadOption.
    """
    if log is not None:
        reach(log)
    tell(name, "starting Spark")
    made = session(f"leaseway {name}", master)
    made.sparkContext.setLogLevel("ERROR")
    try:
        if log is not None:
            answered(made, log)
        yield made
    finally:
        made.stop()
