"""What `leaseway redrive` says when a worker is killed before a task has written what it moved."""

from __future__ import annotations

import contextlib

from pyspark.sql import SparkSession

from tests.spark.drive import DEAD, QUEUE, Books
from tests.spark.service.conftest import Service
from tests.spark.service.story import run_here


def test_what_a_killed_worker_has_moved_was_not_settled_by_others(
    service: Service, spark_session: SparkSession
) -> None:
    with contextlib.closing(Books(service.up.endpoint)) as books:
        for queue in (QUEUE, DEAD):
            books.olga.call("DELETE", f"/v1/queues/{queue}")
        books.make_queues()
        for _ in range(10):
            books.send("alice", ["to be killed"] * 2)
        books.kill(books.receive(20))
        books.wait_dead(20)
        service.armed.touch()
        said = run_here(service.up.data, "redrive", "--queue", DEAD, "--where", "true")
        assert not service.armed.exists(), "no worker was killed"
        backlog = books.olga.call("GET", f"/v1/queues/{QUEUE}")["tags"][0]["backlog"]

    assert said == [f"leaseway: {DEAD}: 20 dead letters chosen, 20 moved, 0 failed, 0 settled by others", "status 0"]
    assert backlog == 20
