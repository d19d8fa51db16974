"""Small moves that tests repeat: send texts, receive them, drain a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from engine.engine import Engine
from engine.shapes import Delivery, Principal, SendEntry, Sent, TaskInfo
from schemas.vocabulary import TaskStatus

BY = Principal("tester", admin=True)


def wait_less_for_movers(monkeypatch: pytest.MonkeyPatch, lease_ms: int) -> None:
    """A lost mover is waited for `lease_ms`, not 30 s."""
    for module in (
        "window.window",
        "move.copies",
        "move.dead_letters",
        "receive.poll",
        "handles.leases",
        "move.tasks.redrive_step",
    ):
        monkeypatch.setattr(f"engine.{module}.MOVER_LEASE_MS", lease_ms)


async def send(engine: Engine, queue: str, *texts: str, **options: int) -> list[Sent]:
    """Sends texts one by one."""
    sent = []
    for text in texts:
        sent += await engine.messages.send(BY, queue, [SendEntry(text.encode(), **options)])  # type: ignore[arg-type]
    return sent


async def receive(
    engine: Engine, queue: str, max: int = 10, wait_ms: int = 0, lease_ms: int | None = None, tag: str | None = None
) -> list[Delivery]:
    return await engine.messages.receive(BY, queue, tag, max, wait_ms, lease_ms)


async def ack(engine: Engine, queue: str, deliveries: list[Delivery]) -> None:
    if deliveries:
        results = await engine.messages.ack(BY, queue, [d.handle for d in deliveries])
        assert {r.status for r in results} == {"ok"}


async def drain(
    engine: Engine, queue: str, tag: str | None = None, *, expect: int | None = None, patience_ms: int | None = None
) -> list[str]:
    """Receives and acks until nothing comes for `patience_ms` (1,500; 100 once as many have come as
    were expected: they may take 20 s); the bodies in order.
    """
    bodies: list[str] = []
    loop = asyncio.get_running_loop()
    end = loop.time() + 20
    while True:
        is_short = expect is not None and len(bodies) < expect and loop.time() < end
        wait_ms = 1_000 if is_short else (100 if expect is not None else 1_500) if patience_ms is None else patience_ms
        got = await receive(engine, queue, max=100, wait_ms=wait_ms, tag=tag)
        bodies += [d.message.body.decode() for d in got]
        await ack(engine, queue, got)
        if not got and not is_short:
            return bodies


async def eventually(check: Callable[[], Awaitable[bool]], within_s: float = 10.0) -> None:
    """Waits until `check` holds. Fails when it does not within the time."""
    end = asyncio.get_running_loop().time() + within_s
    while not await check():
        assert asyncio.get_running_loop().time() < end, f"did not hold within {within_s} s"
        await asyncio.sleep(0.02)


async def ended(engine: Engine, task: TaskInfo, within_s: float = 60) -> TaskInfo:
    """A redrive task when it is over."""

    async def over() -> bool:
        return (await engine.tasks.get_task(BY, task.id)).status != TaskStatus.RUNNING

    await eventually(over, within_s)
    return await engine.tasks.get_task(BY, task.id)


async def all_wait(engine: Engine, number: int = 1, within_s: float = 10.0) -> None:
    """Returns when `number` receives wait at this worker, no more and no less, and have seen that
    there is nothing: only news wakes them.
    """
    lines = engine.parts.units.wait_lists

    async def nothing_to_look_at() -> bool:
        now = asyncio.get_running_loop().time()
        waited_for = [line for line in lines if line.waiters]
        # A line is woken once when Redis begins to tell this worker of its queue.
        looked = all(all(line.wakes) and not line.pumping and line.next_look() > now for line in waited_for)
        return looked and lines.waiting == sum(len(line.waiters) for line in waited_for) == number

    await eventually(nothing_to_look_at, within_s)


async def knows(engine: Engine, *, alone: bool) -> None:
    """Returns when the worker has seen that it is, or is not, the only one."""

    async def seen() -> bool:
        return engine.parts.units.window.bodies.is_only_worker is alone

    await eventually(seen, within_s=5)
