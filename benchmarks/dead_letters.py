"""Causes planted among dead letters: does each come out as one cluster, and how long does that
take?

    python -m benchmarks.dead_letters [--dead-letters 5000] [--queue mixed]

Starts `leaseway up` in a temporary folder, sends as many good messages as bad ones through it, and
has the bad ones killed. Of nine tenths of them there are five causes, in five formats (`mixed`) or
all in JSON (`orders`); the rest is noise. Purity is the share of the dead letters in clusters that
are of their cluster's main cause; `held` the share of a cause that one cluster holds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from facade.programs.stack.processes.spark_submit import connectors
from spark.dead_letters.clusters import dead_letter_clusters, with_cluster
from spark.dead_letters.dead_letters import succeeded_of
from spark.frames.log import Log
from spark.frames.session import session
from spark.frames.tables import Tables
from spark.reports.sources.staging import kept
from tests.services import Up
from tests.spark.planted import CAUSES, plant
from tests.spark.purity import found_of


def planted(spark_session: SparkSession, folder: Path, queue: str, dead_letters: int) -> tuple[DataFrame, DataFrame]:
    """DEAD_LETTERS of a service in `folder`, with their `cause`, and MESSAGES that succeeded; the
    service has ended.
    """
    up = Up(folder / "up", "--workers", "1")
    try:
        up.wait_ready(120)
        causes = spark_session.createDataFrame(
            list(plant(up.endpoint, queue, dead_letters).items()), "original_id string, cause string"
        )
        # Outboxes are drained within 200 ms.
        time.sleep(1)
        tables = Tables(spark_session, Log(up.run["kafka"]["service"], options=up.kafka_properties))
        dead = kept(
            tables.dead_letters().where(F.col("source_queue") == queue).join(causes, on="original_id"),
            f"{folder}/letters",
        )
        good = succeeded_of(tables.messages(), tables.journal()).where(F.col("queue") == queue)
        return dead, kept(good, f"{folder}/good")
    finally:
        up.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dead-letters", type=int, default=5_000)
    parser.add_argument("--queue", choices=tuple(CAUSES), default="mixed")
    options = parser.parse_args()
    spark_session = session("planted causes", "local[2]", {"spark.jars": ",".join(map(str, connectors()))})
    spark_session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        dead_letters, good = planted(spark_session, Path(folder), options.queue, options.dead_letters)
        began = time.monotonic()
        clustered = with_cluster(dead_letters, good).persist()
        rows = dead_letter_clusters(clustered).orderBy("cluster").collect()
        took = time.monotonic() - began
        purity, held = found_of(clustered)
    sizes = {
        row["cluster"]: [row["dead_letters"], " ".join(row["apart"][0][:2]) if row["apart"] else ""] for row in rows
    }
    load = os.getloadavg()[0]
    found_ = {
        "dead_letters": options.dead_letters,
        "seconds": round(took, 1),
        "load_average": load,
        "purity": purity,
        "held": held,
        "clusters": sizes,
    }
    print(json.dumps({**found_, "clusters": sizes}, indent=1))
    spark_session.stop()


if __name__ == "__main__":
    main()
