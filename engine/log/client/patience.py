"""Repeats the first calls of a start for as long as a repeat may help, and says why Kafka's client
can't be made or gets nowhere, in words for who runs the service.

A request that runs out of time has no reason in it: the client tries again and again, and tells the
reasons to a callback only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from engine.errors import LogUnavailable, QueueInUse, Unavailable
from engine.log.kafka_errors import ALL_DOWN, AUTHENTICATION, TLS, engine_error, error_of, note
from state.errors import StateError


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


logger = logging.getLogger(__name__)

T = TypeVar("T")

# A Kafka or Redis that answers and is not ready gets so long in any case: new partitions look for
# their leaders, a broker that was fenced comes back, a file is loaded.
NOT_READY_S: Final = 60.0
PAUSE_S: Final = 0.1, 2.0
SAY_S: Final = 5.0


class Patience:
    """How long the start of a worker may wait, from now on: `wait_s` for a Kafka that has not
    answered yet, NOT_READY_S at least for what answered and is not ready, and never for what a
    repeat does not heal: a refusal, a wrong setting.
    """

    def __init__(self, wait_s: float) -> None:
        self._began = asyncio.get_running_loop().time()
        self._wait_s = wait_s
        self._said_at = self._began - SAY_S
        self._answered = False

    async def repeat(self, step: Callable[[], Awaitable[T]]) -> T:
        """Returns what `step` does. It must be one that may be repeated. Raises what it raised
        last.
        """
        pause_s, longest_s = PAUSE_S
        while True:
            try:
                result = await step()
                self._answered = True
                return result
            except (Unavailable, QueueInUse, StateError) as error:
                now = asyncio.get_running_loop().time()
                if now - self._began + pause_s > self._bound_s(error):
                    raise
                if now - self._said_at >= SAY_S:
                    self._said_at = now
                    logger.warning("action=start outcome=waiting error=%s", error)
            await asyncio.sleep(pause_s)
            pause_s = min(longest_s, pause_s * 1.5)

    def _bound_s(self, error: Exception) -> float:
        if isinstance(error, LogUnavailable) and not error.soon:
            if not error.away:
                return 0.0
            if not self._answered:
                return self._wait_s
        return max(self._wait_s, NOT_READY_S)
