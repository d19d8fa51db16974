"""Causes planted among dead letters: does each come out as one cluster, and how long does that take?

    python -m benchmarks.letters [--letters 20000]

Five causes of 40 to 8 % of nine tenths of the letters, noise for the rest, and half as many messages that succeeded; no Kafka. Purity is
the share of the letters in clusters that are of their cluster's main cause; `held` the share of a cause that one cluster holds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time

from facade.stack.spark_submit import connectors
from spark.clusters import letter_clusters, with_cluster
from spark.session import session
from tests.spark.planted import found, planted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, default=20_000)
    options = parser.parse_args()
    spark_session = session("planted causes", "local[2]", {"spark.jars": ",".join(map(str, connectors()))})
    spark_session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in zip(("letters", "good"), planted(spark_session, options.letters), strict=True):
            frame.write.parquet(f"{folder}/{name}")
        letters, good = (spark_session.read.parquet(f"{folder}/{name}") for name in ("letters", "good"))
        began = time.monotonic()
        clustered = with_cluster(letters, good).persist()
        rows = letter_clusters(clustered).orderBy("cluster").collect()
        took = time.monotonic() - began
        purity, held = found(clustered)
    sizes = {row["cluster"]: [row["letters"], " ".join(row["apart"][0][:2]) if row["apart"] else ""] for row in rows}
    load = os.getloadavg()[0]
    found_ = {
        "letters": options.letters,
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
