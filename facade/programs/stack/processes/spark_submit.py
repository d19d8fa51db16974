"""Runs a PySpark file, or a shell, with the pinned Kafka and Avro connectors: `leaseway spark`."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.programs import find_java, jars_folder
from spark.guard import guard

_MASTER = re.compile(r"(?:--master[ =]|spark\.master=)(\S+)")
# Jars that Spark brings itself in the same or a newer version; two of a kind on one class path are
# trouble.
_SPARK_HAS = ("scala-library", "scala-parallel", "slf4j-api", "lz4-java", "snappy-java", "jsr305", "xz", "spark-tags")


def command(arguments: Sequence[str]) -> list[str]:
    """spark-submit (or pyspark, for the job `shell`) with the connectors. Raises StackError: no
    Java, no pyspark, no jars.
    """
    find_java()
    home = spark_home()
    job, *rest = arguments
    program = home / "bin" / ("pyspark" if job == "shell" else "spark-submit")
    words = rest if job == "shell" else [job, *rest]
    return [str(program), "--jars", ",".join(map(str, connectors())), *_guard(words, home), *words]


def _guard(words: Sequence[str], home: Path) -> list[str]:
    """Returns options with which nobody else reaches the driver while it runs: on loopback, or by
    the cluster's secret. Options that the user gives come later and count.

    A spark-defaults.conf may name a cluster, so its owner is left to say.
    """
    if (Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf").exists():
        return []
    named = _MASTER.search(" ".join(words))
    settings = guard("local" if named is None else named[1])
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


def spark_home() -> Path:
    """The folder of PySpark. Raises StackError when it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StackError("PySpark is not installed: run `make spark`, or install leaseway[spark] and run `leaseway jars spark`")
    return Path(spec.origin).parent


def connectors() -> list[Path]:
    """The jars of Kafka's source and of Avro for `spark.jars`. Raises StackError when they are not
    there.
    """
    jars = [jar for jar in sorted((jars_folder() / "spark").glob("*.jar")) if not jar.name.startswith(_SPARK_HAS)]
    if not jars:
        raise StackError(f"no connectors in {jars_folder() / 'spark'}: run `make spark`, or `leaseway jars spark`")
    return jars


def run(arguments: Sequence[str]) -> int:
    """Becomes the Spark program; returns only by raising StackError."""
    words = command(arguments)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    os.execve(words[0], words, environment)  # noqa: S606 - the command is ours
