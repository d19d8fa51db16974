"""The job behind `leaseway redrive`: writes the addresses of the dead letters that an SQL condition chooses.

The facade reads the files and starts redrive tasks; Spark never talks to it. Neighbours: `spark/__main__.py` runs the job,
`facade/redrive.py` reads what it wrote. Must not know tasks.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.log import log_of
from spark.session import job
from spark.source import span_of
from spark.tables import Tables

FILES = "queue=*/*.txt"  # Below the folder that `write_chosen` made; a line of a file is an address.


def chosen_of(letters: DataFrame, where: str, queue: str | None) -> DataFrame:
    """The letters at rest for which `where` (an SQL condition over DEAD_LETTERS) is true; one row per letter, columns as DEAD_LETTERS.

    `queue` bounds it to one dead-letter queue. Letters of a queue that the control topic does not know have no address and are
    left out. Raises AnalysisException, ParseException: the condition is wrong.
    """
    known = letters.where(where).where(F.col("settled_how").isNull() & F.col("address").isNotNull())
    return known if queue is None else known.where(F.col("queue") == queue)


def write_chosen(chosen: DataFrame, out: Path) -> None:
    """Writes addresses as text below `out`, a folder per queue, in the order of partition and offset within a file."""
    ordered = chosen.select("queue", "partition", "offset", "address").repartition("queue")
    addresses = ordered.sortWithinPartitions("queue", "partition", "offset").select("queue", "address")
    addresses.write.mode("overwrite").partitionBy("queue").text(str(out))


def run(given: Namespace) -> int:
    """Writes below `given.out` what `given.where` chooses; 0 done, 2 the condition is wrong (stderr says why)."""
    span = span_of(given)
    try:
        with job("choose", given.master) as spark_session:
            # Those that the condition names: in a subquery it may ask others too.
            Tables(spark_session, log_of(given), span).create_views(f"dead_letters {given.where}")
            write_chosen(chosen_of(spark_session.table("dead_letters"), given.where, given.queue), given.out)
    except (AnalysisException, ParseException) as error:
        sys.stderr.write(f"leaseway: --where: {error.getMessage() or error}\n")
        return 2
    return 0
