"""What is in queues, as Prometheus series: the same from every worker, for one counts and all show
it.

Written by hand: the library needs 20 us for a line, and 2,000 queues have 14,000 lines.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from engine.errors import EngineError
from engine.rules.limits import MAX_QUEUE_NAME
from facade.http.operation import Answer, Call, Example, Operation
from facade.http.problem import ProblemError

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import QueueCounts

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATES = ("ready", "delayed", "leased", "parked", "stored")
# Queues with the oldest messages that GET /metrics names.
WORST = 50
PAGE = 1000
# Who scrapes has the other metrics after so long, whatever Redis does.
WITHIN_S = 2.0
MESSAGES = "leaseway_queue_messages"
AGE = "leaseway_queue_oldest_message_age_seconds"
FAMILIES = {
    MESSAGES: "Messages of a queue that are not settled, by state, added up over its tags.",
    AGE: "Age of the oldest message of a queue that is not settled, delayed and leased ones too; 0 without one.",
}
TOTAL = "leaseway_messages"
_TOTAL_ABOUT = "Messages of all queues that are not settled, by state, added up over tags."


class QueueMetricsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which queues, and which series of them."""

    prefix: Annotated[str, Meta(max_length=MAX_QUEUE_NAME, description="Only queues whose names begin so.")] = ""
    family: Annotated[str, Meta(description="Only this metric.", extra_json_schema={"enum": list(FAMILIES)})] | UnsetType = UNSET


def lines(rows: Iterable[QueueCounts], families: Iterable[str], now_ms: int) -> Iterator[str]:
    """The series of queues that were counted; `now_ms` is Kafka's time."""
    counted = [row for row in rows if row.as_of_ms]
    for family in families:
        yield from _head(family, FAMILIES[family])
        if family == AGE:
            for row in counted:
                age_s = max(0, now_ms - row.oldest_at_ms) / 1000 if row.oldest_at_ms else 0
                yield f'{family}{{queue="{row.name}"}} {age_s}\n'
        else:
            for row in counted:
                for state in STATES:
                    yield f'{family}{{queue="{row.name}",state="{state}"}} {getattr(row, state)}\n'


def totals(row: QueueCounts) -> Iterator[str]:
    """The series of all queues together."""
    yield from _head(TOTAL, _TOTAL_ABOUT)
    for state in STATES:
        yield f'{TOTAL}{{state="{state}"}} {getattr(row, state)}\n'


def _head(family: str, about: str) -> tuple[str, str]:
    return f"# HELP {family} {about}\n", f"# TYPE {family} gauge\n"


async def worst(engine: Engine, call: Call) -> bytes:
    """What is in all queues, and in those with the oldest messages; nothing while Redis is away or
    has not answered for WITHIN_S, and no names for who may list none.
    """
    text = ""
    with contextlib.suppress(EngineError, TimeoutError):
        async with asyncio.timeout(WITHIN_S):
            text = "".join(totals(await engine.queues.count_all()))
            rows, _ = await engine.queues.list_counts(call.by, sort="oldest", limit=WORST)
            text += "".join(lines(rows, FAMILIES, engine.queues.kafka_ms()))
    return text.encode()


async def _run(engine: Engine, call: Call) -> Answer:
    asked: QueueMetricsQuery = call.query
    family = asked.family
    if family is not UNSET and family not in FAMILIES:
        raise ProblemError(
            "invalid_value", f"family must be one of {', '.join(FAMILIES)}, given {family[:200]!r}", field="family", given=family
        )
    rows: list[QueueCounts] = []
    cursor: str | None = ""
    while cursor is not None:
        some, cursor = await engine.queues.list_counts(call.by, asked.prefix, limit=PAGE, cursor=cursor)
        rows += some
    families = FAMILIES if family is UNSET else (family,)
    return Answer("".join(lines(rows, families, engine.queues.kafka_ms())).encode(), media_type=MEDIA_TYPE)


OPERATION = Operation(
    name="queue_metrics",
    method="GET",
    path="/metrics/queues",
    group="Operation",
    summary="What is in each queue that who asks may look at, in Prometheus' text format",
    run=_run,
    query=QueueMetricsQuery,
    replies={200: str},
    example=Example(reply=f'{MESSAGES}{{queue="orders",state="ready"}} 42\n'),
    media_type="text/plain",
)
