"""Why the plane does not serve a request, in a word for the metrics; `tests/docs/metrics.py` says
what each means.
"""

from __future__ import annotations

from typing import Final

from engine.plane.library import MAY_ACK, MAY_EXTEND, MAY_RECEIVE, MAY_RELEASE, MAY_SEND
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from schemas.records import KeyRecord
from schemas.vocabulary import Verb

# What the library says, in the order of native/src/plane/whys.rs.
OF_LIBRARY: Final = (
    "off", "verb", "head", "fields", "key", "lane", "size", "attributes", "busy", "redis", "changed",
    "bodies", "empty", "handle", "kafka", "quota", "slow", "delay",
)  # fmt: skip
# That one says that Python does not let the plane serve it: which of these it is, Python knows.
LANE: Final = OF_LIBRARY.index("lane")
OFF, NEW, CHANGED = "off", "new", "changed"
REFUSED, QUOTA, KEY_ENDS, FAILED = "refused", "quota", "key_ends", "failed"
FIFO, PRIORITY, ON_EXHAUSTED, RETENTION_FROM, PARTITIONS = (
    "fifo",
    "priority",
    "on_exhausted",
    "retention_from",
    "partitions",
)
IN_FLIGHT, PAUSED = "max_in_flight", "paused"
WHYS: Final = (
    *(why for why in OF_LIBRARY if why != "lane"),
    *(NEW, REFUSED, KEY_ENDS, FAILED, FIFO, PRIORITY, ON_EXHAUSTED, RETENTION_FROM, PARTITIONS, IN_FLIGHT, PAUSED),
)
# The verbs that the plane may serve, by their bits.
VERBS: Final = {
    MAY_SEND: Verb.SEND,
    MAY_RECEIVE: Verb.RECEIVE,
    MAY_ACK: Verb.ACK,
    MAY_EXTEND: Verb.EXTEND,
    MAY_RELEASE: Verb.RELEASE,
}
# Calls of more units and tags are not kept for a queue.
MOST_CALLS: Final = 512


def of_settings(settings: EngineSettings) -> str:
    """Returns why a worker with these settings has no plane, in words for /health; empty = it may
    have one.
    """
    if settings.plane == "off":
        return "LEASEWAY_PLANE=off"
    return "LEASEWAY_AUDIT=all: requests are written down one by one" if settings.audit == "all" else ""


def of_all(why: str) -> dict[Verb, str]:
    """Returns that the plane serves none of the verbs."""
    return dict.fromkeys(VERBS.values(), why)


def of_queue(queue: Queue) -> dict[Verb, str]:
    """Returns which verbs of a queue the plane can't serve by its scripts alone."""
    record = queue.record
    features = {
        FIFO: record.fifo,
        PRIORITY: record.priority,
        ON_EXHAUSTED: record.on_exhausted,
        RETENTION_FROM: queue.expires_from_send,
        PARTITIONS: record.partitions * len(queue.tags) > MOST_CALLS,
        IN_FLIGHT: record.max_in_flight > 0,
    }
    for why, has_it in features.items():
        if has_it:
            return of_all(why)
    return {}


def of_tag(queue: Queue, tag: int) -> dict[Verb, str]:
    """As `of_queue`, of requests that name a tag."""
    return of_queue(queue) or ({Verb.RECEIVE: PAUSED} if tag in queue.paused else {})


def ends_ms(key: KeyRecord, proof: int) -> int:
    """Returns when a key ends by which somebody has proved who they are (epoch ms); 0 = never."""
    previous_ms = key.previous_until_ms if proof == hash(key.previous_secret) else 0
    return min((end for end in (key.expires_at_ms, previous_ms) if end), default=0)
