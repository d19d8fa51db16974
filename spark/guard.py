"""The memory of a Spark driver, and who can reach it while a job runs. It does not import Spark."""

from __future__ import annotations

DRIVER_MEMORY = "2g"  # unless somebody says otherwise


def guard(master: str) -> dict[str, str]:
    """Returns the settings with which nobody else reaches the driver and its block manager while a
    job runs: on loopback for a local master; else by the cluster's secret, which YARN and
    Kubernetes make themselves and a standalone cluster is given (`spark.authenticate.secret`).
    """
    if master.startswith("local"):
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {"spark.authenticate": "true"}
