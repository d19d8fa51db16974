"""Builds Spark sessions."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping

from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark.frames.log import Log, reach
from spark.frames.source import answered
from spark.guard import DRIVER_MEMORY, guard
from spark.progress import tell

# What rows mean, wherever a job runs: timestamps of the log are UTC, and so is a day of a report.
_MEANING = {"spark.sql.session.timeZone": "UTC"}
# What the owner of a cluster may know better: spark-submit --conf and spark-defaults.conf win. The
# first are asked when a context begins, the others are of a session.
_BARS = "spark.ui.showConsoleProgress"
_SETTINGS = {"spark.ui.enabled": "false", _BARS: "false"}
ADVICE = {
    "spark.sql.adaptive.enabled": "true",
    # Many small partitions, put together to some that two tasks can sort in a driver of 2 GiB
    # without a spill.
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # The default is a form of timestamps that other readers have given up.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session. `settings` count first, then what spark-submit and spark-defaults.conf say, then
    what we advise; the time zone is UTC. `master` None = what spark-submit says, and without
    spark-submit 2 threads here.

    The driver has 2 GiB unless `settings` or spark-submit say otherwise: a JVM that runs keeps what
    it has.
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
    advised = {**_SETTINGS, **guard(master or submitted.get("spark.master", "local[2]") or "")}
    advised = {key: value for key, value in advised.items() if not submitted.contains(key)}
    for key, value in {**advised, **_MEANING, **begin}.items():
        builder = builder.config(key, value)
    return _advised(builder.getOrCreate())


def beside(spark_session: SparkSession) -> SparkSession:
    """Another session of the same JVM, with catalogs and views of its own."""
    return _advised(spark_session.newSession())


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
