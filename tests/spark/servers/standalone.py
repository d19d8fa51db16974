"""A standalone cluster of Spark with two workers of one core, on loopback."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from facade.programs.stack.processes.spark_submit import spark_home

START_S = 300.0
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER = re.compile(r"Successfully registered with master (spark://\S+)")


@dataclass(frozen=True)
class Standalone:
    """`environment` is that of who asks the cluster: it knows the secret."""

    master: str
    environment: Mapping[str, str]


@contextlib.contextmanager
def standalone(folder: Path, secret: str) -> Iterator[Standalone]:
    """A cluster that is asked with a secret, and what it needs in a folder; it ends with the
    block, and so do its executors.
    """
    (folder / "conf").mkdir(parents=True)
    defaults = f"spark.authenticate true\nspark.authenticate.secret {secret}\n"
    (folder / "conf" / "spark-defaults.conf").write_text(defaults)
    asked = {"SPARK_CONF_DIR": str(folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"}
    java = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    environment = {**os.environ, **asked, **java}
    with contextlib.ExitStack() as all_of_it:

        def start(name: str, class_name: str, *given: str) -> tuple[Path, subprocess.Popen[bytes]]:
            log = folder / f"{name}.log"
            bound = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
            command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{class_name}", *bound]
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [*command, *given], env=environment, stdout=output, stderr=output, start_new_session=True
                )
            all_of_it.callback(_end, process)
            return log, process

        master = _said(*start("master", "master.Master"), _MASTER)
        share = ["--cores", "1", "--memory", "1g"]
        workers = [
            start(name, "worker.Worker", *share, "--work-dir", str(folder / name), master) for name in ("one", "two")
        ]
        for worker in workers:
            _said(*worker, _WORKER)
        yield Standalone(master, asked)


def _said(log: Path, process: subprocess.Popen[bytes], wanted: re.Pattern[str]) -> str:
    """What a process says of itself, once it does. Raises AssertionError."""
    end = time.monotonic() + START_S
    while (found := wanted.search(log.read_text())) is None:
        assert process.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
        time.sleep(0.05)
    return found[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and its executors, which are of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
