"""What is said of a failure: the innermost cause that tells of a catalog or of S3."""

from __future__ import annotations

from spark.lake.places.failures import table_failure
from tests.unit.spark.frames.test_failures import Failed, Java


def test_the_innermost_cause_that_tells_is_said_by_its_first_line() -> None:
    refused = Java("org.postgresql.util.PSQLException", "FATAL: password\n  at x", Java("java.io.EOFException", "end"))
    outer = Java("org.apache.iceberg.exceptions.RuntimeIOException", "outer", refused)
    assert table_failure(Failed(Java("java.lang.RuntimeException", "x", outer))) == "PSQLException: FATAL: password"


def test_what_tells_of_something_else_is_not_said() -> None:
    assert table_failure(Failed(Java("java.lang.OutOfMemoryError", "heap"))) is None
    assert table_failure(ValueError("no Java")) is None
