"""`leaseway sql`, `report` and `live`: starts the jobs of `spark/` with the pinned connectors and
the brokers that we know.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from importlib.resources import files
from pathlib import Path

from facade.programs.cli.maintenance import settings_of
from facade.programs.stack.processes.spark_submit import connectors, spark_home


def run(job: str, given: argparse.Namespace) -> int:
    """Runs a job in this process; its exit status. Raises StackError, BadSetting: no PySpark, no
    jars, no stack in --data.
    """
    spark_home()
    # Options of the JVM count only before it starts, and PySpark starts it: so they go by the
    # environment.
    memory = os.environ.get("SPARK_DRIVER_MEMORY", "2g")
    jars = ",".join(map(str, connectors()))
    # Jobs of some minutes: the collector that does most work in least time, and no log but of what
    # is wrong.
    java = f"-XX:+UseParallelGC -Dlog4j2.configurationFile={(files('spark') / 'log4j2.xml')}"
    options = ["--jars", jars, "--driver-memory", memory, "--driver-java-options", java]
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*options, "pyspark-shell"])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = settings_of(given.data)
    named = {"bootstrap": given.bootstrap or settings.kafka_bootstrap, "prefix": given.prefix or settings.topic_prefix}
    if given.bootstrap is None and given.kafka_config is None and settings.kafka_config:
        named["kafka_config"] = Path(settings.kafka_config)
    from spark.__main__ import run as run_job

    return run_job(job, argparse.Namespace(**{**vars(given), **named}))
