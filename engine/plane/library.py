"""What the native library is for the plane; `facade.http.sockets.library` is it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final, Protocol

from schemas.vocabulary import Verb

# What the plane is told; native/src/net/numbers.rs has the same, and a test compares them.
(
    CLOCK,
    OPEN,
    ROUTE,
    CLOSE,
    WOKEN,
    ADMIT,
    SHUT,
    EMPTY,
    STOP,
    WATCH,
    LEAVE,
    RETELL,
    DRAIN,
    GRANT,
    LEARNT,
    JOURNALED,
    GRANT_DELAYS,
) = range(17)
# What it tells.
GREETED, LOST, SEEN, REFRESH, RETURNED, RETURN, CLOSED, DYING, FAILED = range(9)
SUSPECT, USED, UNLOADED, AHEAD, VISIBLE, DRAINED, LOW, WRITTEN, LOW_DELAYS, REFUSED, SERVED = range(9, 20)
# Why a request FAILED that was begun: nobody knows what Redis has done, Kafka has not got it, or
# may have it.
STATE, NOT_STORED, MAY_BE_STORED = range(3)
# How a drain has ended: it went as far as it should; another owns the unit; the journal may lack
# what was appended last; Python is to go on.
DONE, FENCED, NOT_APPENDED, PASSED = range(4)
COUNTS, WAITING, RETURNING, WHYS, WAITS, ALLOWANCES, UNHEARD, CALLS, WAITERS, TIMES, STORED, OF_LANES = range(12)
# What is RETURNING is looked for so often while somebody waits for it.
LOOK_S: Final = 0.001
# Numbers of verbs, of all dialects; native/src/requests.rs has the same, and a test compares them.
SEND, SEND_BATCH, RECEIVE, DELETE, DELETE_BATCH, CHANGE, CHANGE_BATCH = range(1, 8)
NATIVE_SEND, NATIVE_RECEIVE, NATIVE_ACK, NATIVE_EXTEND, NATIVE_RELEASE = range(12, 17)
EMQ_SEND, EMQ_SEND_BATCH, EMQ_RECEIVE, EMQ_DELETE, EMQ_DELETE_BATCH = range(21, 26)
# What each asks of the engine.
VERB_OF: Final[Mapping[int, Verb]] = {
    **dict.fromkeys((SEND, SEND_BATCH, NATIVE_SEND, EMQ_SEND, EMQ_SEND_BATCH), Verb.SEND),
    **dict.fromkeys((RECEIVE, NATIVE_RECEIVE, EMQ_RECEIVE), Verb.RECEIVE),
    **dict.fromkeys((DELETE, DELETE_BATCH, NATIVE_ACK, EMQ_DELETE, EMQ_DELETE_BATCH), Verb.ACK),
    **dict.fromkeys((CHANGE, CHANGE_BATCH, NATIVE_EXTEND), Verb.EXTEND),
    NATIVE_RELEASE: Verb.RELEASE,
}
# Verbs that a route allows, as bits.
MAY_SEND: Final = 1
MAY_RECEIVE: Final = 2
MAY_ACK: Final = 4
MAY_SEND_ATTRIBUTES: Final = 8
# Not a verb: bytes of what is sent are counted.
COUNTS_BYTES: Final = 16
MAY_EXTEND: Final = 32
MAY_RELEASE: Final = 64


class Library(Protocol):
    """Each call returns at once, and what it tells holds when it has returned."""

    def start_plane(self, told: list[Any]) -> None:
        """Starts the plane. Raises OSError."""

    def tell(self, what: int, told: list[Any] | int) -> None:
        """Tells the plane one of the things above."""

    def ask(self, what: int) -> list[Any]:
        """Asks for COUNTS, WHYS, TIMES, bytes of messages STORED (rows of queue, bytes) or requests
        OF_LANES (rows of lane, verb, whether the clients have gone, requests, sum and greatest of
        their times in us) since the last time, which queues are WAITING, of which queues and tags
        something is RETURNING, what became receivable UNHEARD (rows of queue, partition, since when
        in ms), how many CALLS of scripts were made, or how many WAITERS there are (rows of queue,
        tag, receives).
        """

    def forget(self) -> None:
        """No route counts any more, nor does who waits by one."""


async def until_back(library: Library, is_back: Callable[[list[Any]], bool], within_s: float) -> None:
    """Waits until `is_back` is true of what is RETURNING, or the time is over."""
    end = monotonic() + within_s
    while not is_back(library.ask(RETURNING)) and monotonic() < end:  # noqa: ASYNC110  # the plane does not say when
        await asyncio.sleep(LOOK_S)
