"""Until when a request is answered: one moment for all that it waits for, counted from when the
request came.

It is a time of the event loop (`loop.time()`), and is handed down as `until`.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from time import monotonic_ns
from typing import Final

# For how long the plane had a request in hand before it gave it to Python: its wait, its deadline
# and its time in the metrics began then. Of the task that serves the request.
WAITED_S: Final[ContextVar[float]] = ContextVar("waited_s", default=0.0)
# How long a verb of messages, or one that only looks, takes at most; a receive: after the wait that
# it names.
MESSAGES_S = 10.0
# A change of what is managed: a busy controller of Kafka takes seconds for some topics.
CHANGE_S = 30.0
# How long a request waits for the journal, as an ack of a queue with durable acks does.
JOURNAL_S = 5.0
# How long a request waits for a state in Redis that is lost, however often it is lost again
# meanwhile, and for the right to change something, which needs Redis too.
STATE_S = 8.0


def began_ns() -> int:
    """Returns when a request that comes now began, by the monotonic clock (ns)."""
    return monotonic_ns() - round(WAITED_S.get() * 1e9)


def journal_until() -> float:
    """When a request that comes now has waited for the journal long enough."""
    return asyncio.get_running_loop().time() + JOURNAL_S


def state_until() -> float:
    """When a request that comes now has waited for lost state long enough."""
    return asyncio.get_running_loop().time() + STATE_S
