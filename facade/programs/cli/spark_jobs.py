"""`leaseway sql`, `report`, `live` and `lake`: starts the jobs of `spark/` with the pinned jars and
the brokers that we know.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.spark_submit import ONE_COMPILER, of_s3, submit_arguments, with_s3

_QUICK = ("sql", "choose", "outcomes")


def run(job: str, given: argparse.Namespace) -> int:
    """Runs a job in this process; its exit status. Raises StackError, BadSetting: no PySpark, no
    jars, no stack in --data.
    """
    # The engine, which who only asks for help must not wait for.
    from facade.programs.cli.maintenance import settings_of

    # Options of the JVM count only before it starts, and PySpark starts it: so they go by the
    # environment.
    master = given.master or "local[2]"
    s3 = _on_s3(job, given)
    os.environ.update(of_s3(s3=s3))
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(*_java(job, given), master=master, s3=s3)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = settings_of(given.data)
    named = {"bootstrap": given.bootstrap or settings.kafka_bootstrap, "prefix": given.prefix or settings.topic_prefix}
    if given.bootstrap is None and given.kafka_config is None and settings.kafka_config:
        named["kafka_config"] = Path(settings.kafka_config)
    from spark.__main__ import run as run_job

    return run_job(job, argparse.Namespace(**{**vars(given), **named}))


def _java(job: str, given: argparse.Namespace) -> Sequence[str]:
    """Options of the JVM of a job; what goes on for hours gets both compilers."""
    return ONE_COMPILER if job in _QUICK or (job == "lake" and given.every is None) else ()


def _on_s3(job: str, given: argparse.Namespace) -> bool:
    """Whether a job needs the jar of S3, which is large. Raises StackError: no such warehouse."""
    if job not in ("lake", "sql", "report", "choose") or given.warehouse is None:
        return False
    from spark.frames.log import BadOption
    from spark.lake.places.warehouse import warehouse_of

    try:
        return with_s3(warehouse_of(given).on_s3)
    except BadOption as error:
        raise StackError(str(error)) from None
