"""What made a job of Spark fail, by the Java exceptions behind it. Must not import PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def causes_of(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The names of the classes of a Java exception and its causes, from the outermost on, each with
    the exception; nothing where Python failed.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        yield str(java.getClass().getName()), java
        java = java.getCause()


def kafka_failure(error: BaseException) -> str | None:
    """What a Kafka client complained of, when that made the job fail: `TopicAuthorizationException:
    ...`; None = something else.
    """
    for name, java in causes_of(error):
        if name.startswith("org.apache.kafka."):
            return f"{name.rpartition('.')[2]}: {java.getMessage()}"
    return None
