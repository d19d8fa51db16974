"""Where the log is: brokers, prefix of the topics, security settings, and the command-line options
that say so.

Must not import PySpark: `leaseway --help` asks here for options.
"""

from __future__ import annotations

import os
import re
import socket
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from schemas.client_properties import BadProperty, parse
from schemas.topics import DEFAULT_PREFIX

_CONNECT_S = 3.0
# As Kafka's clients read it.
_ADDRESS = re.compile(r"(?:.*?://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})")


class BadOption(ValueError):
    """An option of a job can't be used; the text says which and why."""


class NoBroker(Exception):
    """Kafka can't be reached; the text says where it was looked for, and why it can't."""


@dataclass(frozen=True)
class Log:
    """The log: `bootstrap` servers, `prefix` of its topics, and more options of Kafka clients
    (`security.protocol`, `sasl.*`, `ssl.*`).
    """

    bootstrap: str = "127.0.0.1:9092"
    prefix: str = DEFAULT_PREFIX
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def client_options(self) -> dict[str, str]:
        """The properties of a Kafka client."""
        return {"bootstrap.servers": self.bootstrap, **self.options}

    @property
    def source_options(self) -> dict[str, str]:
        """The options of Spark's Kafka source and sink."""
        return {f"kafka.{name}": value for name, value in self.client_options.items()}


def reach(log: Log) -> None:
    """Looks whether any of the brokers takes a connection, before a job starts Spark. Raises
    NoBroker, BadOption.

    Kafka's own client tries again for minutes; `source.answered` asks one that takes connections
    whether it answers too.
    """
    if failure := _refusal(log.bootstrap, "--bootstrap"):
        raise NoBroker(f"no broker of {log.bootstrap} can be reached: {failure}")


def reach_master(master: str) -> None:
    """Looks whether a master of a standalone cluster, `spark://HOST:PORT,...`, takes a connection.
    Raises BadOption.

    Spark tries again for a minute, and says nothing but where in its code it has ended.
    """
    if failure := _refusal(master.removeprefix("spark://"), "--master"):
        raise BadOption(f"--master {master}: no master can be reached: {failure}")


def _refusal(addresses: str, option: str) -> str | None:
    """Why none of HOST:PORT,... takes a connection; None = one does. Raises BadOption."""
    failure = ""
    for address in filter(None, (part.strip() for part in addresses.split(","))):
        match = _ADDRESS.fullmatch(address)
        if match is None or int(match[2]) > 65_535:
            raise BadOption(f"{option}: {address!r} is not HOST:PORT")
        try:
            socket.create_connection((match[1], int(match[2])), _CONNECT_S).close()
        except OSError as error:
            failure = failure or str(error.strerror or error)
        else:
            return None
    return failure or "no address is given"


def log_arguments(parser: ArgumentParser) -> None:
    """Adds the options that say where the log is."""
    parser.add_argument("--bootstrap", help="Kafka's bootstrap servers (default 127.0.0.1:9092)")
    parser.add_argument("--prefix", help=f"first part of every topic (default {DEFAULT_PREFIX})")
    parser.add_argument(
        "--kafka-config", type=Path, help="properties file of the Kafka client: security.protocol=SASL_SSL and the like"
    )
    parser.add_argument(
        "--kafka", action="append", default=[], metavar="NAME=VALUE", help="one more property, may be repeated"
    )


def log_of(given: Namespace) -> Log:
    """The log that the options name. Raises BadOption, OSError (the file can't be read)."""
    lines = given.kafka_config.read_text(encoding="utf-8").splitlines() if given.kafka_config else []
    return Log(given.bootstrap or "127.0.0.1:9092", given.prefix or DEFAULT_PREFIX, properties([*lines, *given.kafka]))


def log_of_environment() -> Log:
    """The log that the variables of the service name. Raises BadOption, OSError (the properties
    file can't be read).
    """
    config = os.environ.get("LEASEWAY_KAFKA_CONFIG")
    lines = Path(config).read_text(encoding="utf-8").splitlines() if config else []
    bootstrap = os.environ.get("LEASEWAY_KAFKA_BOOTSTRAP") or Log.bootstrap
    return Log(bootstrap, os.environ.get("LEASEWAY_TOPIC_PREFIX") or DEFAULT_PREFIX, properties(lines))


def properties(lines: list[str]) -> dict[str, str]:
    """`name=value` lines as a mapping, as `schemas.client_properties.parse`. Raises BadOption."""
    try:
        found = parse(lines)
    except BadProperty as error:
        raise BadOption(str(error)) from None
    for name in found:
        if name == "bootstrap.servers" or name.startswith("kafka."):
            raise BadOption(f"{name}: name brokers by --bootstrap, and properties without `kafka.`")
    return found


def moment(text: str) -> datetime:
    """A time of the command line: epoch milliseconds or ISO 8601, UTC when it names no zone. Raises
    BadOption.
    """
    try:
        found = datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdecimal() else datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise BadOption(f"{text!r} is no time: give 2026-03-01T12:00, or epoch milliseconds") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def epoch_ms(time: datetime) -> int:
    """Epoch milliseconds of a time with a zone."""
    return int(time.timestamp() * 1000)
