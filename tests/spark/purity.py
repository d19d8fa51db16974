"""How well clusters of dead letters agree with the causes for which they died."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def found_of(clustered: DataFrame) -> tuple[float, dict[str, float]]:
    """(purity: share of the dead letters in clusters that are of their cluster's main cause, cause
    -> share that one cluster holds).

    Reads cluster and cause.
    """
    counted = clustered.groupBy("cluster", F.col("cause")).count()
    rows = [(row["cluster"], row["cause"], row["count"]) for row in counted.toLocalIterator()]
    main: dict[int, tuple[int, str]] = {}
    for cluster, cause, dead_letters in rows:
        if cluster is not None:
            main[cluster] = max(main.get(cluster, (0, "")), (dead_letters, cause))
    inside = sum(dead_letters for cluster, _, dead_letters in rows if cluster is not None)
    held: dict[str, float] = {}
    for dead_letters, cause in main.values():
        whole = sum(n for _, of, n in rows if of == cause)
        held[cause] = max(held.get(cause, 0.0), dead_letters / whole)
    return sum(dead_letters for dead_letters, _ in main.values()) / inside, held
