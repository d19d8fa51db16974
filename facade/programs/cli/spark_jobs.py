"""`leaseway sql`, `report`, `live` and `lake`: starts the jobs of `spark/` with the pinned jars and
the brokers that we know.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.spark_submit import CONNECTORS, ONE_COMPILER, submit_arguments, table_sets

_QUICK = {"sql": ONE_COMPILER, "choose": ONE_COMPILER, "outcomes": ONE_COMPILER}


def run(job: str, given: argparse.Namespace) -> int:
    """Runs a job in this process; its exit status. Raises StackError, BadSetting: no PySpark, no
    jars, no stack in --data.
    """
    # The engine, which who only asks for help must not wait for.
    from facade.programs.cli.maintenance import settings_of

    # Options of the JVM count only before it starts, and PySpark starts it: so they go by the
    # environment.
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(*_QUICK.get(job, ()), sets=_sets(job, given))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = settings_of(given.data)
    named = {"bootstrap": given.bootstrap or settings.kafka_bootstrap, "prefix": given.prefix or settings.topic_prefix}
    if given.bootstrap is None and given.kafka_config is None and settings.kafka_config:
        named["kafka_config"] = Path(settings.kafka_config)
    from spark.__main__ import run as run_job

    return run_job(job, argparse.Namespace(**{**vars(given), **named}))


def _sets(job: str, given: argparse.Namespace) -> tuple[str, ...]:
    """Iceberg's jars are large, so only who needs them has them on the class path. Raises
    StackError: no such warehouse.
    """
    if job != "lake" and not (job == "sql" and given.warehouse is not None):
        return CONNECTORS
    from spark.frames.log import BadOption
    from spark.lake.places.warehouse import warehouse_of

    try:
        return table_sets(warehouse_of(given).on_s3)
    except BadOption as error:
        raise StackError(str(error)) from None
