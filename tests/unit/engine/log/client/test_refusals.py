"""What is told of a Kafka that lets nobody in."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine.errors import LogUnavailable
from engine.log.client.patience import Refusals, made

AWAY = KafkaError(KafkaError._TRANSPORT, "Connection reset by peer")
ALERT = KafkaError(KafkaError._TRANSPORT, "Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate")
NO_TOKEN = KafkaError(KafkaError._AUTHENTICATION, "no token")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        ((), ""),
        ((AWAY, ALL_DOWN), "; the last try: Connection reset by peer"),
        ((ALERT, AWAY, ALL_DOWN), f"; the last try: {ALERT.str()}"),
        ((AWAY, NO_TOKEN), "; the last try: no token"),
        ((ALERT, NO_TOKEN), "; the last try: no token"),
        ((ALL_DOWN,), ""),
    ],
)
def test_a_refusal_is_told_before_a_connection_that_only_failed(heard: tuple[KafkaError, ...], told: str) -> None:
    refusals = Refusals()
    for error in heard:
        refusals.heard(error)
    with pytest.raises(LogUnavailable) as raised, refusals.explained():
        raise LogUnavailable("no answer")
    assert str(raised.value) == f"no answer{told}"


def test_what_the_client_does_not_take_is_an_error_of_the_engine() -> None:
    with pytest.raises(LogUnavailable, match="no such file"), made():
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "no such file"))
