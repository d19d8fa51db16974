"""The causes of a failure, from the outermost on, and what Kafka's clients complained of."""

from __future__ import annotations

from spark.frames.failures import causes_of, kafka_failure


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


REFUSED = Java("org.apache.kafka.common.errors.TopicAuthorizationException", "not lw.control")


def test_each_cause_is_named_from_the_outermost_on() -> None:
    outer = Java("java.lang.RuntimeException", "x", REFUSED)
    assert [(name, java.getMessage()) for name, java in causes_of(Failed(outer))] == [
        ("java.lang.RuntimeException", "x"),
        ("org.apache.kafka.common.errors.TopicAuthorizationException", "not lw.control"),
    ]
    assert list(causes_of(ValueError("no Java"))) == []


def test_what_a_client_of_kafka_complained_of_is_said_and_nothing_else() -> None:
    assert kafka_failure(Failed(Java("a.B", "x", REFUSED))) == "TopicAuthorizationException: not lw.control"
    assert kafka_failure(Failed(Java("a.B", "x"))) is None
