"""What is said of a failure: the innermost cause that tells of a catalog or of S3."""

from __future__ import annotations

from spark.lake.places.failures import table_failure


class Java:
    """An exception as py4j has it."""

    def __init__(self, name: str, message: str, cause: Java | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> Java:  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def getMessage(self) -> str:  # noqa: N802
        return self._message

    def getCause(self) -> Java | None:  # noqa: N802
        return self._cause


class Failed(Exception):
    def __init__(self, java: Java) -> None:
        self.java_exception = java


def test_the_innermost_cause_that_tells_is_said_by_its_first_line() -> None:
    refused = Java("org.postgresql.util.PSQLException", "FATAL: password\n  at x", Java("java.io.EOFException", "end"))
    outer = Java("org.apache.iceberg.exceptions.RuntimeIOException", "outer", refused)
    assert table_failure(Failed(Java("java.lang.RuntimeException", "x", outer))) == "PSQLException: FATAL: password"


def test_what_tells_of_something_else_is_not_said() -> None:
    assert table_failure(Failed(Java("java.lang.OutOfMemoryError", "heap"))) is None
    assert table_failure(ValueError("no Java")) is None
