"""What the plane is told of the service when it starts: where Redis and Kafka are, scripts, bounds,
formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.journal.outbox import DRAIN_OFFSETS
from engine.meters.times import BOUNDS_MS
from engine.receive.waits.wait_list import LOOK_AGAIN_S, MAX_PER_CALL
from engine.rules.limits import MAX_RECEIVE_BYTES
from engine.rules.placement import RUN
from engine.send.sender import BATCH_RECORDS, WAITING_BYTES, WAITING_SENDS
from engine.settings import EngineSettings
from engine.window.window import AHEAD_S
from schemas.records.settings import MAX_IN_FLIGHT, MAX_LONG_POLLS, TABLE
from schemas.records.trace_context import OF_ONE_DIALECT
from schemas.registry import schema_id
from schemas.vocabulary import (
    BOUNDS_US,
    DEFAULT_PRIORITY,
    SOURCE_QUEUE_ATTRIBUTE,
    STATUS_OF,
    UNCALLED,
    EntryStatus,
    EventKind,
    StaleReason,
)
from state.redis.calls import SCRIPTS
from state.redis.connection import RECONNECT_S
from state.redis.scripts import read_scripts
from state.redis.wire import CONNECT_S, REPLY_S

# What is leased ahead of receives of a tag at most, of leases that are this long at least; and for
# how long nothing is after what nobody took.
MOST_AHEAD: Final = 100
LEAST_LEASE_MS: Final = 1_000
PAUSE_S: Final = 5.0
# Of what several sends append to Kafka at once: a broker takes a MiB, if its settings say nothing
# else, of which each record needs some bytes for itself.
BATCH_BYTES: Final = 1_000_000
# Of the connection to Redis: as Python's, and what may be under way.
CONNECT_MS: Final = round(CONNECT_S * 1000)
REPLY_MS: Final = round(REPLY_S * 1000)
BACK_OFF_MS: Final = tuple(round(pause * 1000) for pause in RECONNECT_S)
MOST_BYTES: Final = 64_000_000
MOST_REPLY_BYTES: Final = 256_000_000
# Messages with attributes of these names are told of by Python alone: dialects have words of their
# own for them.
RESERVED: Final = (SOURCE_QUEUE_ATTRIBUTE, *OF_ONE_DIALECT)
# What became of a handle: the word of a script, the status and the reason in answers. The first is
# that of success.
WORDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("OK", EntryStatus.OK.value, ""),
    *((reason.upper(), STATUS_OF[reason].value, reason.value) for reason in StaleReason if reason not in UNCALLED),
)


def service(
    settings: EngineSettings, redis: Any, kafka: Mapping[str, str], metrics_s: Sequence[float], line_every: int
) -> list[Any]:
    """Returns what `Library.start_plane` takes. `redis`: the options of the connection;
    `metrics_s`: the bounds of the metrics' times; `line_every`: of how many requests one has a line
    in the access log, 0 = none has.
    """
    scripts = [(read_scripts()[name].sha.encode(), read_scripts()[name].source.encode()) for name in SCRIPTS]
    limits = [
        MAX_PER_CALL, MAX_IN_FLIGHT, round(LOOK_AGAIN_S * 1000), round(AHEAD_S * 1000), MOST_AHEAD,
        round(PAUSE_S * 1000), LEAST_LEASE_MS, MAX_LONG_POLLS, settings.kept_bytes, MAX_RECEIVE_BYTES, BATCH_RECORDS,
        BATCH_BYTES, RUN, settings.send_timeout_ms, WAITING_SENDS, WAITING_BYTES, TABLE["retention_ms"].low,
        line_every,
    ]  # fmt: skip
    formats = [
        [_head("message"), DEFAULT_PRIORITY],
        [_head("journal"), [kind.value for kind in EventKind], DRAIN_OFFSETS],
    ]
    told = [settings.secret.encode(), formats, limits, list(BOUNDS_US), [round(s * 1_000_000) for s in metrics_s]]
    told += [
        list(BOUNDS_MS),
        [text.encode() for text in RESERVED],
        [[text.encode() for text in word] for word in WORDS],
    ]
    bounds = [CONNECT_MS, REPLY_MS, MOST_BYTES, MOST_REPLY_BYTES, list(BACK_OFF_MS)]
    return [[redis, scripts, bounds], list(kafka.items()), told]


def _head(kind: str) -> bytes:
    """What records of a schema begin with."""
    return b"\0" + schema_id(kind).to_bytes(4)
