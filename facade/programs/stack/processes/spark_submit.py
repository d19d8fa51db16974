"""Runs Spark here with the pinned Kafka and Avro connectors: a PySpark file, or a shell (`leaseway
spark`), or a job of our own.

A JVM spends most of the processor time of a small question on loading and verifying Spark's
classes. `leaseway jars spark` makes a class archive, from which a driver maps them; without it, or
with one of another Java or of another Spark, a driver starts as before.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import secrets
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.jars import archive_of, keep_archive
from facade.programs.stack.processes.ports import reserve
from facade.programs.stack.processes.programs import find_java, jars_folder
from spark.guard import DRIVER_MEMORY, guard
from spark.lake.places.warehouse import SECRET, Warehouse

_MASTER = re.compile(r"(?:--master[ =]|spark\.master=)(\S+)")
# Jars that Spark brings itself in the same or a newer version; two of a kind on one class path are
# trouble.
_SPARK_HAS = ("scala-library", "scala-parallel", "slf4j-api", "lz4-java", "snappy-java", "jsr305", "xz", "spark-tags")
# Jobs of some minutes: the collector that does most work in least time.
_COLLECTOR = "-XX:+UseParallelGC"
# For a question, Java's first compiler alone: the second one takes more time than it saves. It has
# room for all of Spark's code only when it is told.
ONE_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
_LOCAL = re.compile(r"local(\[|$)")
_LAST = "SPARK_DIST_CLASSPATH"
_SET = "spark"  # Of the jars.
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_LOOPBACK = "127.0.0.1"
_TOKEN_NAME = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - a name
# The JVM says on stdout, where the rows go, that it can't use an archive.
_SILENT = "-Xlog:disable"
_ARCHIVE_S = 600.0


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


def serve(warehouse: Warehouse, port: int, master: str) -> int:
    """Becomes a server of Spark Connect for clients of this machine, over the tables of a
    warehouse; returns only by raising StackError.

    Everybody on the machine reaches the port, so it wants the token that
    SPARK_CONNECT_AUTHENTICATE_TOKEN has; where there is none, one is made, and said on stderr.
    """
    home, options = spark_home(), [*_logs("ERROR"), *mapped()]
    told = {
        **guard(master),
        "spark.connect.grpc.binding.address": _LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        **warehouse.session_settings,
    }
    secret = told.pop(SECRET, None)
    token = os.environ.get(_TOKEN_NAME)
    made = token or secrets.token_urlsafe(24)
    s3 = with_s3(warehouse.on_s3)
    environment = {**os.environ, **of_s3(s3=s3), "PYSPARK_PYTHON": sys.executable, _TOKEN_NAME: made}
    environment.setdefault("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    words = [
        str(home / "bin" / "spark-submit"),
        "--class",
        _CONNECT,
        "--master",
        master,
        "--driver-java-options",
        shlex.join(options),
    ]
    reserve(_LOOPBACK, port).close()  # Or it says what is wrong with the port.
    sys.stderr.write("leaseway spark-server: starting Spark\n")
    sys.stderr.flush()
    _say_when_it_listens(port, f"sc://localhost:{port}/{'' if token else f';token={made}'}")
    hidden = [] if secret is None else _hidden({SECRET: secret})
    words += [*_class_path(master, s3=s3), *hidden, *_settings(told), "spark-internal"]
    os.execve(words[0], words, environment)  # noqa: S606 - the command is ours


def _say_when_it_listens(port: int, address: str) -> None:
    """Has another process say the address once this one, which becomes the server, takes
    connections. A client that comes before waits for up to a minute between its tries.
    """
    server = os.getpid()
    if child := os.fork():
        os.waitpid(child, 0)
        return
    # Its own child belongs to nobody who would have to wait for it.
    if os.fork() == 0:
        while not (listens := _listens(port)) and _runs(server):
            time.sleep(0.1)
        if listens:
            sys.stderr.write(f"leaseway spark-server: {address}\n")
            sys.stderr.flush()
    os._exit(0)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _listens(port: int) -> bool:
    try:
        socket.create_connection((_LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True


def _hidden(told: Mapping[str, str]) -> list[str]:
    """Options that tell Spark settings without having them in the command line, which everybody on
    the machine may read: by a file without a name.
    """
    # JSON's escapes are those of a Java properties file.
    lines = [f"{key} {json.dumps(value)[1:-1].replace(' ', chr(92) + 'u0020')}\n" for key, value in told.items()]
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        file.write("".join(lines))
        file.flush()
        number = os.dup(file.fileno())
    os.set_inheritable(number, True)
    return ["--properties-file", f"/dev/fd/{number}", "--load-spark-defaults"]


def _settings(told: Mapping[str, str]) -> list[str]:
    return [word for key, value in told.items() for word in ("--conf", f"{key}={value}")]


def _guard(words: Sequence[str], home: Path) -> list[str]:
    """Returns options with which nobody else reaches the driver while it runs: on loopback, or by
    the cluster's secret. Options that the user gives come later and count.

    A spark-defaults.conf may name a cluster, so its owner is left to say.
    """
    if (Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf").exists():
        return []
    named = _MASTER.search(" ".join(words))
    settings = guard("local" if named is None else named[1])
    return _settings(settings)


def spark_home() -> Path:
    """The folder of PySpark. Raises StackError when it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StackError(
            "PySpark is not installed: run `make spark`, or install leaseway[spark] and run `leaseway jars spark`"
        )
    return Path(spec.origin).parent


def connectors(*sets: str) -> list[Path]:
    """The jars of these sets; without one those that Spark always lacks: Kafka's source, Avro,
    Iceberg and its catalogs. Raises StackError when they are not there.
    """
    found: list[Path] = []
    for name in sets or (_SET,):
        jars = [jar for jar in sorted((jars_folder() / name).glob("*.jar")) if not jar.name.startswith(_SPARK_HAS)]
        if not jars:
            raise StackError(f"no jars in {jars_folder() / name}: run `make spark`, or `leaseway jars {name}`")
        found += jars
    return found


def with_s3(on_s3: bool | None) -> bool:
    """Whether a job over tables gets the jar of S3; where only the catalog knows whether they are
    there, when it is here.
    """
    return on_s3 or (on_s3 is None and any((jars_folder() / "s3").glob("*.jar")))


def of_s3(*, s3: bool) -> dict[str, str]:
    """The environment of a driver that has the jar of S3, if it is wanted: behind all others, for
    an archive is of the first part of a class path. Raises StackError.
    """
    there = os.environ.get(_LAST)
    return {_LAST: ":".join(filter(None, (there, *map(str, connectors("s3")))))} if s3 else {}


def _class_path(master: str | None, *, s3: bool = False) -> list[str]:
    """Options for the driver's class path: of an archive, the JVM uses classes that are there, and
    none of `--jars`. Those bring the jars to the executors of a cluster; None = perhaps there is
    one. Raises StackError.
    """
    local = master is not None and _LOCAL.match(master)
    shipped = [] if local else ["--jars", ",".join(map(str, connectors(_SET, *(["s3"] if s3 else []))))]
    return ["--driver-class-path", ":".join(map(str, connectors())), *shipped]


def submit_arguments(*java: str, master: str | None = None, s3: bool = False) -> str:
    """What PySpark starts the driver of a job of ours with (`PYSPARK_SUBMIT_ARGS`): the jars,
    the memory, more options of the JVM. `master` None = Spark says. Raises StackError.
    """
    options = [_COLLECTOR, *_logs("ERROR"), *java, *mapped()]
    memory = os.environ.get("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    words = [*_class_path(master, s3=s3), "--driver-memory", memory, "--driver-java-options", shlex.join(options)]
    return shlex.join([*words, "pyspark-shell"])


def _logs(level: str) -> list[str]:
    """Java options with which Spark logs from `level` on, to stderr."""
    return [f"-Dlog4j2.configurationFile={files('spark') / 'log4j2.xml'}", f"-Dleaseway.spark.log={level}"]


def class_archive(java: str) -> Path:
    """Where Spark's class archive is, or would be. Raises StackError: no PySpark."""
    return archive_of("spark", java, spark_home() / "jars", jars_folder() / _SET)


def mapped() -> list[str]:
    """Java options with which a driver maps the class archive, where there is one. Raises
    StackError: no Java, no PySpark.
    """
    archive = class_archive(find_java())
    return [_SILENT, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def make_archive(say: Callable[[str], None]) -> None:
    """Makes the class archive when it is not there: runs small questions once. Nothing without
    PySpark; a failure is said, and harms nobody. Raises StackError when Java is missing.
    """
    if importlib.util.find_spec("pyspark") is None:
        return
    keep_archive(class_archive(find_java()), "Spark", "200 MB", _warm_up, say)


def _warm_up(archive: Path) -> None:
    """Raises StackError, OSError, SubprocessError."""
    words = submit_arguments(*ONE_COMPILER, f"-XX:ArchiveClassesAtExit={archive}", _SILENT)
    root = str(Path(str(files("spark"))).parent)
    subprocess.run(
        [sys.executable, "-m", "spark.warm_up"],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": words, "PYTHONPATH": root},
        check=True,
        capture_output=True,
        timeout=_ARCHIVE_S,
    )


def run(arguments: Sequence[str]) -> int:
    """Becomes the Spark program; returns only by raising StackError."""
    words = command(arguments)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment.setdefault("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    # Before what the user says, who may log otherwise.
    environment["SPARK_SUBMIT_OPTS"] = f"{shlex.join(_logs('WARN'))} {environment.get('SPARK_SUBMIT_OPTS', '')}"
    os.execve(words[0], words, environment)  # noqa: S606 - the command is ours
