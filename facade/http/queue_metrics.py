"""What is in queues, as Prometheus series: the same from every worker, for one counts and all show
it.

Written by hand: the library needs 20 us for a line, and 2,000 queues have 14,000 lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from engine.errors import EngineError
from engine.rules.limits import MAX_QUEUE_NAME
from facade.http.operation import Answer, Call, Example, Operation
from facade.http.problem import ProblemError
from schemas.records.settings import MAX_IN_FLIGHT
from schemas.vocabulary import ANONYMOUS

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.meters.shapes import ReceiveCounts
    from engine.shapes import QueueCounts
    from schemas.records import QueueRecord

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATES = ("ready", "delayed", "leased", "parked", "stored")
# Queues with the oldest messages that GET /metrics names.
WORST = 50
# Who scrapes has the other metrics after so long, whatever Redis does.
WITHIN_S = 2.0
MESSAGES = "leaseway_queue_messages"
AGE = "leaseway_queue_oldest_message_age_seconds"
PAUSED = "leaseway_queue_paused"
GROUPS = "leaseway_queue_groups_in_flight"
NOISY = "leaseway_queue_noisy_groups"
SET_BACK = "leaseway_queue_set_back_messages"
SENT = "leaseway_queue_sent_total"
_DONE_ABOUT = {
    "received": "Deliveries, by queue and tag; those that no answer carried are none.",
    "redelivered": "Of these, deliveries of messages that had been delivered before.",
    "acked": "Messages acknowledged, by queue and tag.",
    "released": "Deliveries that consumers gave back, by queue and tag.",
    "dead": "Messages moved to a dead-letter queue, by the queue and the tag where they died.",
}
# Fields of Done, by the metric that has them.
DONE = {f"leaseway_queue_{name}_total": name for name in _DONE_ABOUT}
FAMILIES = {
    MESSAGES: "Messages of a queue that are not settled, by state, added up over its tags.",
    AGE: (
        "Age of the oldest message of a queue that is not settled, leased ones and delays under five minutes too; "
        "0 = none."
    ),
    PAUSED: "1 while nobody receives from a queue, or under a tag of it, because it is paused; 0 = it is not.",
    GROUPS: "Groups of which a consumer has a message, added up over tags, of standard queues over partitions too.",
    NOISY: "Groups of a standard queue that have more than a tenth of what is in flight, added up over its tags.",
    SET_BACK: "Ready messages of such groups that are behind those of others, added up over tags.",
    SENT: "Records written to a queue since it was made.",
    **{family: _DONE_ABOUT[name] for family, name in DONE.items()},
}
# One number of a row, by the metric that has it.
_NUMBERS = {
    PAUSED: attrgetter("paused"),
    SENT: attrgetter("sent"),
    GROUPS: attrgetter("groups_in_flight"),
    NOISY: attrgetter("noisy"),
    SET_BACK: attrgetter("set_back"),
}
RETENTION = "leaseway_queue_retention_seconds"
IN_FLIGHT_LIMIT = "leaseway_queue_in_flight_limit"
# What a queue is set to, for shares of it.
BOUNDS = {
    RETENTION: "After so long a message that nobody acked is dropped.",
    IN_FLIGHT_LIMIT: "Messages that may be leased at once, under each tag.",
}
EMPTY = "leaseway_queue_empty_receives_total"
WAITING = "leaseway_queue_waiting_receives"
# What each worker counts for itself.
RECEIVES = {
    EMPTY: "Receives that were answered without a message, by queue and tag.",
    WAITING: "Receives that wait for a message, by queue and tag.",
}
SENT_BYTES = "leaseway_queue_sent_bytes_total"
_SENT_BYTES_ABOUT = "Bytes of messages (body and attributes) of sends to a queue that Kafka has taken."
KNOWN = (*FAMILIES, *BOUNDS, *RECEIVES, SENT_BYTES)
TOTAL = "leaseway_messages"
_TOTAL_ABOUT = "Messages of all queues that who asks may look at, not settled, by state, added up over tags."


class QueueMetricsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which queues, and which series of them."""

    prefix: Annotated[str, Meta(max_length=MAX_QUEUE_NAME, description="Only queues whose names begin so.")] = ""
    family: Annotated[str, Meta(description="Only this metric.", extra_json_schema={"enum": [*KNOWN]})] | UnsetType = (
        UNSET
    )


def lines(rows: Iterable[QueueCounts], families: Iterable[str], now_ms: int) -> Iterator[str]:
    """The series of queues that were counted; `now_ms` is Kafka's time."""
    counted = [row for row in rows if row.as_of_ms]
    for family in families:
        yield from _head(family, FAMILIES[family])
        if family in DONE:
            number = attrgetter(DONE[family])
            yield "".join(
                [
                    f'{family}{{queue="{row.name}",tag="{tag}"}} {number(done)}\n'
                    for row in counted
                    for tag, done in row.done.items()
                ]
            )
        elif family in _NUMBERS:
            number = _NUMBERS[family]
            yield "".join([f'{family}{{queue="{row.name}"}} {number(row):d}\n' for row in counted])
        elif family == AGE:
            yield "".join([f'{family}{{queue="{row.name}"}} {_age_s(row, now_ms)}\n' for row in counted])
        else:
            for state in STATES:
                number = attrgetter(state)
                yield "".join([f'{family}{{queue="{row.name}",state="{state}"}} {number(row)}\n' for row in counted])


def bounds(
    names: Iterable[str], families: Iterable[str], record_of: Callable[[str], QueueRecord | None]
) -> Iterator[str]:
    """The series of what queues are set to; one that is gone by now has none."""
    records = [(name, record) for name in names if (record := record_of(name)) is not None]
    for family in families:
        yield from _head(family, BOUNDS[family])
        for name, record in records:
            value = record.retention_ms / 1000 if family == RETENTION else record.max_in_flight or MAX_IN_FLIGHT
            yield f'{family}{{queue="{name}"}} {value}\n'


def _age_s(row: QueueCounts, now_ms: int) -> float:
    return max(0, now_ms - row.oldest_at_ms) / 1000 if row.oldest_at_ms else 0


def receives(rows: Iterable[ReceiveCounts], families: Iterable[str], worker: str) -> Iterator[str]:
    """The series of receives of a worker; empty = it is alone behind its port."""
    rows, label = [*rows], f',worker="{worker}"' if worker else ""
    for family in families:
        yield from _head(family, RECEIVES[family])
        for row in rows:
            yield (
                f'{family}{{queue="{row.queue}",tag="{row.tag}"{label}}} '
                f"{row.empty if family == EMPTY else row.waiting}\n"
            )


def sent_bytes(sizes: Iterable[tuple[str, int]], worker: str) -> Iterator[str]:
    """The series of bytes of a worker, by queue; empty = it is alone behind its port."""
    label = f',worker="{worker}"' if worker else ""
    yield from _head(SENT_BYTES, _SENT_BYTES_ABOUT)
    for queue, size in sizes:
        yield f'{SENT_BYTES}{{queue="{queue}"{label}}} {size}\n'


def totals(rows: Sequence[QueueCounts]) -> Iterator[str]:
    """The series of these queues together."""
    yield from _head(TOTAL, _TOTAL_ABOUT)
    for state in STATES:
        yield f'{TOTAL}{{state="{state}"}} {sum(getattr(row, state) for row in rows)}\n'


def _head(family: str, about: str) -> tuple[str, str]:
    kind = "counter" if family.endswith("_total") else "gauge"
    return f"# HELP {family} {about}\n", f"# TYPE {family} {kind}\n"


def most_of_worker(engine: Engine, call: Call, worker: str) -> Iterator[str]:
    """Where most receives have found nothing, where most wait, and where most bytes were sent.
    Nothing for nobody in particular.
    """
    if not call.by.admin and call.by.id == ANONYMOUS:
        return
    with contextlib.suppress(EngineError):
        rows = engine.queues.count_receives(call.by)
        yield from receives(heapq.nlargest(WORST, rows, key=lambda row: row.empty), [EMPTY], worker)
        yield from receives(heapq.nlargest(WORST, rows, key=lambda row: row.waiting), [WAITING], worker)
        sizes = engine.queues.stored_bytes(call.by).items()
        yield from sent_bytes(heapq.nlargest(WORST, sizes, key=itemgetter(1)), worker)


async def worst(engine: Engine, call: Call) -> bytes:
    """What is in all queues that who asks may look at, and in those with the oldest messages.
    Nothing for nobody in particular; nor while Redis is away or has not answered for WITHIN_S.
    """
    if not call.by.admin and call.by.id == ANONYMOUS:
        return b""
    with contextlib.suppress(EngineError, TimeoutError):
        async with asyncio.timeout(WITHIN_S):
            rows = await engine.queues.count_each(call.by)
            oldest = heapq.nsmallest(WORST, rows, key=lambda row: (row.oldest_at_ms or 2**53, row.name))
            of_queues = lines(oldest, FAMILIES, engine.queues.kafka_ms())
            return "".join((*totals(rows), *of_queues, *_bounds(engine, call, oldest, BOUNDS))).encode()
    return b""


async def _run(worker: str, engine: Engine, call: Call) -> Answer:
    asked: QueueMetricsQuery = call.query
    family = asked.family
    if family is not UNSET and family not in KNOWN:
        raise ProblemError(
            "invalid_value",
            f"family must be one of {', '.join(KNOWN)}, given {family[:200]!r}",
            field="family",
            given=family,
        )
    rows = await engine.queues.count_each(call.by, asked.prefix)
    families = KNOWN if family is UNSET else [family]
    counted = lines(rows, [one for one in families if one in FAMILIES], engine.queues.kafka_ms())
    set_to = _bounds(engine, call, rows, [one for one in families if one in BOUNDS])
    of_worker = [one for one in families if one in RECEIVES]
    mine = receives(engine.queues.count_receives(call.by, asked.prefix), of_worker, worker) if of_worker else ()
    stored = (
        sent_bytes(engine.queues.stored_bytes(call.by, asked.prefix).items(), worker) if SENT_BYTES in families else ()
    )
    return Answer("".join((*counted, *set_to, *mine, *stored)).encode(), media_type=MEDIA_TYPE)


def _bounds(engine: Engine, call: Call, rows: Iterable[QueueCounts], families: Iterable[str]) -> Iterator[str]:
    return bounds((row.name for row in rows), families, lambda name: engine.queues.known(name, call.by))


def operation(worker: str) -> Operation:
    """GET /metrics/queues of a worker; empty = it is alone behind its port."""
    return Operation(
        name="queue_metrics",
        method="GET",
        path="/metrics/queues",
        group="Operation",
        summary="What is in each queue that who asks may look at, in Prometheus' text format",
        run=partial(_run, worker),
        query=QueueMetricsQuery,
        replies={200: str},
        example=Example(reply=f'{MESSAGES}{{queue="orders",state="ready"}} 42\n'),
        media_type="text/plain",
    )
