"""Health of a worker: /live (the process answers), /ready (its parts work) and /health (does
anything need attention).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from facade.http.operation import Answer, Call, Example, Operation

if TYPE_CHECKING:
    from engine.engine import Engine

log = logging.getLogger("leaseway.facade")
READY_WITHIN_S = 3.0  # a part that hangs is not ready, and the one who asks must not hang with it


class Live(Struct, frozen=True):
    """The process answers."""

    status: Annotated[str, Meta(description="ok.")]


class Ready(Struct, frozen=True):
    """Whether the worker can serve; `parts` says `ok` or what is wrong of each part."""

    status: Annotated[str, Meta(description="ok or unavailable.")]
    parts: Annotated[dict[str, str], Meta(description="Of each part: ok, or what is wrong.")]


class Health(Struct, frozen=True):
    """`ok` or `alarm`; `alarms` counts the queues, or clocks, by kind of alarm. /metrics names
    them.
    """

    status: Annotated[str, Meta(description="ok or alarm.")]
    alarms: Annotated[dict[str, int], Meta(description="How many queues (or clocks) need attention, by kind of alarm.")]
    native: Annotated[
        str, Meta(description="Whether the native library serves HTTP at this worker: on, or off and why.")
    ]
    plane: Annotated[
        str, Meta(description="Whether a thread of it serves hot requests of plain queues: on, or off and why.")
    ]


async def live(engine: Engine, call: Call) -> Answer:
    """200 as long as the process can answer."""
    return Answer(Live("ok"))


async def _ready(engine: Engine, intake: Callable[[], str]) -> Answer:
    try:
        parts = await asyncio.wait_for(engine.ready(), READY_WITHIN_S)
    except TimeoutError:
        parts = {"engine": f"no answer within {READY_WITHIN_S:g} s"}
    except Exception:
        log.exception("readiness could not be told")
        parts = {"engine": "readiness could not be told; the log has the reason"}
    parts = {**parts, "requests": intake()}
    if all(state == "ok" for state in parts.values()):
        return Answer(Ready("ok", parts))
    return Answer(Ready("unavailable", parts), 503, (("retry-after", "1"),))


def _health(native: str) -> Callable[[Engine, Call], Coroutine[Any, Any, Answer]]:
    async def health(engine: Engine, call: Call) -> Answer:
        """200 in any case: a queue in need of attention is no reason to take the worker out of
        service.
        """
        kinds: dict[str, int] = {}
        for alarm in engine.alerts.alarms():
            kinds[alarm.kind] = kinds.get(alarm.kind, 0) + 1
        return Answer(Health("alarm" if kinds else "ok", kinds, native, engine.plane.state))

    return health


def operations(native: str, intake: Callable[[], str]) -> tuple[Operation, ...]:
    """GET /health, /live and /ready. `native` is what /health says of the library. `intake` says
    `ok`, or why small requests are refused now.
    """

    async def ready(engine: Engine, call: Call) -> Answer:
        """200 if every part is `ok`, else 503."""
        return await _ready(engine, intake)

    return (
        Operation(
            name="health",
            method="GET",
            path="/health",
            group="Operation",
            summary="Whether a queue needs attention: messages near the end of retention, or lost",
            run=_health(native),
            replies={200: Health},
            example=Example(reply={"status": "alarm", "alarms": {"retention_near": 1}, "native": "on", "plane": "on"}),
            anonymous=True,
        ),
        Operation(
            name="live",
            method="GET",
            path="/live",
            group="Operation",
            summary="Whether the process answers",
            run=live,
            replies={200: Live},
            example=Example(reply={"status": "ok"}),
            anonymous=True,
        ),
        Operation(
            name="ready",
            method="GET",
            path="/ready",
            group="Operation",
            summary="Whether the worker and its parts can serve",
            run=ready,
            replies={200: Ready, 503: Ready},
            example=Example(reply={"status": "ok", "parts": {"kafka": "ok", "redis": "ok", "requests": "ok"}}),
            anonymous=True,
        ),
    )
