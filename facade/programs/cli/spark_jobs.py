"""`leaseway sql`, `report`, `live` and `lake`: starts the jobs of `spark/` with the pinned jars and
the brokers that we know.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from facade.programs.stack.processes.spark_submit import CONNECTORS, ONE_COMPILER, submit_arguments

_QUICK = {"sql": ONE_COMPILER, "choose": ONE_COMPILER, "outcomes": ONE_COMPILER}
# Iceberg's jar is large, so only who needs it has it on the class path.
_SETS = (*CONNECTORS, "lake")


def run(job: str, given: argparse.Namespace) -> int:
    """Runs a job in this process; its exit status. Raises StackError, BadSetting: no PySpark, no
    jars, no stack in --data.
    """
    # The engine, which who only asks for help must not wait for.
    from facade.programs.cli.maintenance import settings_of

    # Options of the JVM count only before it starts, and PySpark starts it: so they go by the
    # environment.
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(*_QUICK.get(job, ()), sets=_SETS if _asks_tables(job, given) else CONNECTORS)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = settings_of(given.data)
    named = {"bootstrap": given.bootstrap or settings.kafka_bootstrap, "prefix": given.prefix or settings.topic_prefix}
    if given.bootstrap is None and given.kafka_config is None and settings.kafka_config:
        named["kafka_config"] = Path(settings.kafka_config)
    from spark.__main__ import run as run_job

    return run_job(job, argparse.Namespace(**{**vars(given), **named}))


def _asks_tables(job: str, given: argparse.Namespace) -> bool:
    return job == "lake" or (job == "sql" and given.warehouse is not None)
