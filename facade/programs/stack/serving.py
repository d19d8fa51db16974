"""`leaseway serve`: facade workers against a Kafka and a Redis that are there already."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from facade.config import Settings
from facade.programs.stack import workers
from facade.programs.stack.processes.group import Group, start_together
from facade.programs.stack.processes.ports import reserved
from facade.programs.stack.reach import wait_for_services
from facade.programs.stack.safety import refuse_unsafe
from facade.programs.stack.welcome import endpoint_of, ports_of, rocketmq_of


def serve(settings: Settings, worker_count: int, say: Callable[[str], None]) -> None:
    """Run `worker_count` workers until SIGINT or SIGTERM; their output is ours.

    Raises StackError for unsafe settings, a taken port, a Kafka or Redis that can't be reached, or
    a worker that doesn't start.
    """
    refuse_unsafe(settings)
    with reserved(settings.host, ports_of(settings)), tempfile.TemporaryDirectory(prefix="leaseway-") as run_folder:
        asyncio.run(_run(settings, worker_count, Path(run_folder), say))


async def _run(settings: Settings, worker_count: int, run_folder: Path, say: Callable[[str], None]) -> None:
    group = Group(say, lambda: None)
    group.listen_to_signals()

    async def start() -> None:
        left_s = await wait_for_services(settings, say)
        started = dataclasses.replace(settings, start_wait_s=left_s)
        await start_together(group.add(workers.programs(started, worker_count, run_folder, None, dict(os.environ))))
        rocketmq = f", RocketMQ clients at {rocketmq_of(settings)}," if settings.rocketmq_port else ""
        say(f"serving at {endpoint_of(settings)}{rocketmq} with {worker_count} worker(s)")

    await group.run_until_asked(start)
    say("stopped")
