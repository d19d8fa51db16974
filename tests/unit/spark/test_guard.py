"""Who can reach a Spark driver while a job runs: tests/spark has it with real ones."""

from __future__ import annotations

from spark.guard import guard

LOOPBACK = "127.0.0.1"


def test_a_cluster_is_reached_with_its_secret() -> None:
    assert guard("spark://host:7077") == guard("yarn") == guard("k8s://https://host") == {"spark.authenticate": "true"}
    assert guard("local[2]") == guard("local") == {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
