"""Builds Spark sessions."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping

from pyspark import SparkConf
from pyspark.sql import SparkSession

from spark.frames.log import Log, reach
from spark.frames.source import answered
from spark.guard import DRIVER_MEMORY, guard
from spark.progress import tell

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Timestamps of the log are UTC; a day of a report is a UTC day, wherever it runs.
    "spark.sql.session.timeZone": "UTC",
}
# What the owner of a cluster may know better: spark-submit --conf and spark-defaults.conf win.
_ADVICE = {
    "spark.sql.adaptive.enabled": "true",
    # Many small partitions, put together to some that two tasks can sort in a driver of 2 GiB
    # without a spill.
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # The default is a form of timestamps that other readers have given up.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session; `settings` come last. `master` None = what spark-submit says, and without
    spark-submit 2 threads here.

    The driver has 2 GiB unless `settings` or spark-submit say otherwise: a JVM that runs keeps what
    it has.
    """
    builder = SparkSession.builder.appName(name)
    if master or "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(master or "local[2]").config("spark.driver.memory", DRIVER_MEMORY)
    # PySpark logs a wrong query with all of its plans, beside raising it.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    submitted = SparkConf()  # what spark-submit and spark-defaults.conf say
    guards = guard(master or submitted.get("spark.master", "local[2]") or "")
    guards = {key: value for key, value in guards.items() if not submitted.contains(key)}
    for key, value in {**_SETTINGS, **guards, **(settings or {})}.items():
        builder = builder.config(key, value)
    return _advised(builder.getOrCreate())


def beside(spark_session: SparkSession) -> SparkSession:
    """Another session of the same JVM, with catalogs and views of its own."""
    return _advised(spark_session.newSession())


def _advised(made: SparkSession) -> SparkSession:
    for key, value in _ADVICE.items():
        if not made.sparkContext.getConf().contains(key):
            made.conf.set(key, value)
    return made


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
