"""Builds Spark sessions and says where the log is: brokers, topic prefix, security settings.

Neighbours: `source.py` reads topics of a `Log`, jobs call `session`. Must not know columns.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

DRIVER_MEMORY = "2g"
_SETTINGS = {
    # Timestamps of the log are UTC; a day of a report is a UTC day, wherever it runs.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


class BadOption(ValueError):
    """A Kafka option is not `name=value`, or names what Leaseway sets itself."""


@dataclass(frozen=True)
class Log:
    """The log: `bootstrap` servers, `prefix` of its topics, and more options of Kafka clients (`security.protocol`, `sasl.*`, `ssl.*`)."""

    bootstrap: str = "127.0.0.1:9092"
    prefix: str = "lw"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def source_options(self) -> dict[str, str]:
        """The options of Spark's Kafka source and sink."""
        return {"kafka.bootstrap.servers": self.bootstrap, **{f"kafka.{name}": value for name, value in self.options.items()}}


def session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session; `settings` come last. `master` None = what spark-submit says, and without spark-submit 2 threads here.

    The driver has 2 GiB unless `settings` or spark-submit say otherwise: a JVM that runs keeps what it has.
    """
    builder = SparkSession.builder.appName(name)
    if master or "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(master or "local[2]").config("spark.driver.memory", DRIVER_MEMORY)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def log_arguments(parser: ArgumentParser) -> None:
    """Adds the options that say where the log is."""
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="Kafka's bootstrap servers (default 127.0.0.1:9092)")
    parser.add_argument("--prefix", default="lw", help="first part of every topic (default lw)")
    parser.add_argument("--kafka-config", type=Path, help="properties file of the Kafka client: security.protocol=SASL_SSL and the like")
    parser.add_argument("--kafka", action="append", default=[], metavar="NAME=VALUE", help="one more property, may be repeated")


def log_of(given: Namespace) -> Log:
    """The log that the options name. Raises BadOption, OSError (the file can't be read)."""
    lines = given.kafka_config.read_text(encoding="utf-8").splitlines() if given.kafka_config else []
    return Log(given.bootstrap, given.prefix, properties([*lines, *given.kafka]))


def properties(lines: list[str]) -> dict[str, str]:
    """`name=value` lines as a mapping; empty lines and those that begin with # say nothing. Raises BadOption."""
    found = {}
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, mark, value = text.partition("=")
        name = name.strip()
        # The value may be a password: the text of the error must not have it.
        if not mark or not name:
            raise BadOption(f"{name[:40]!r} is not NAME=VALUE")
        if name == "bootstrap.servers" or name.startswith("kafka."):
            raise BadOption(f"{name}: name brokers by --bootstrap, and properties without `kafka.`")
        found[name] = value.strip()
    return found
