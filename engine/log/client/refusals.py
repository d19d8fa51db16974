"""Why Kafka's client can't be made or gets nowhere, in words for who runs the service.

A request that runs out of time has no reason in it: the client tries again and again, and tells the
reasons to a callback only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from confluent_kafka import KafkaError, KafkaException

from engine.errors import LogUnavailable
from engine.log.kafka_errors import ALL_DOWN, AUTHENTICATION, TLS, engine_error, error_of, note


class Refusals:
    """What the client said last of a connection that failed: no listener, a certificate or a
    password that is refused, no token. It is of the client's whole life.
    """

    def __init__(self) -> None:
        self._said = ""
        self._is_refusal = False

    def heard(self, error: KafkaError) -> None:
        """Callback for errors of a client as a whole."""
        note(error)
        # A broker that refuses a certificate closes the connection, too: an alert says more than a
        # connection that was reset.
        is_refusal = error.code() in (AUTHENTICATION, TLS) or "SSL routines" in error.str()
        # That all are down is the sum of the others.
        if error.code() != ALL_DOWN and (is_refusal or not self._is_refusal):
            self._said, self._is_refusal = error.str(), is_refusal

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """LogUnavailable from within gets the reason, if there is one."""
        try:
            yield
        except LogUnavailable as error:
            text = f"{error}; the last try: {self._said}" if self._said else str(error)
            raise LogUnavailable(text, soon=error.soon, away=error.away and not self._is_refusal) from error


@contextlib.contextmanager
def made() -> Iterator[None]:
    """Clients are made within: settings that the client does not take, and files that it can't
    read, are LogUnavailable.
    """
    try:
        yield
    except KafkaException as fault:
        raise engine_error(error_of(fault)) from fault
