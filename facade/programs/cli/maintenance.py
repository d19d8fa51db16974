"""`leaseway verify` and `rebuild`: maintenance from the command line, and its findings as text or
JSON.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from engine.errors import EngineError, NotOurs
from engine.recovery.maintenance import Rebuilt
from engine.recovery.verify import Report
from engine.settings import EngineSettings
from engine.wiring.foundation import wire_maintenance
from facade.config import Settings
from facade.programs.stack.processes.errors import StackError
from state.errors import StateError

T = TypeVar("T")
C = TypeVar("C", bound="Attachable")

EXIT_SAME, EXIT_DIFFERENT, EXIT_NOT_COMPARED = 0, 1, 2
MOST_LINES = 100


def settings_of(data: Path | None) -> Settings:
    """Settings from LEASEWAY_*; with `data`, Kafka, Redis and the secret of the `leaseway up` that
    runs in that folder. Raises StackError, BadSetting.
    """
    given = Settings.read()
    if data is None:
        return given
    try:
        running = json.loads((data / "run.json").read_text())
        kafka, url = running["kafka"], running["redis"]["url"]
        there = {"kafka_bootstrap": kafka["service"], "kafka_config": kafka["config"], "redis_url": url}
    except (OSError, ValueError, KeyError):
        raise StackError(f"no `leaseway up` runs in {data} (it has no run.json)") from None
    # As `leaseway up`: a secret of the environment goes before that of the folder.
    if given.secret == Settings().secret:
        try:
            there["secret"] = (data / "secret").read_text().strip()
        except OSError as error:
            raise StackError(f"the secret of {data} can't be read: {error.strerror}") from None
    return dataclasses.replace(given, **there)


def verify(settings: EngineSettings, names: Sequence[str], *, as_json: bool) -> tuple[int, list[str]]:
    """Exit status and lines: 0 no difference, 1 differences, 2 something could not be compared.
    Raises StackError.
    """
    # That a worker's record came before another's is of no interest to who verifies.
    logging.getLogger("engine.catalog").setLevel(logging.ERROR)
    report = asyncio.run(between(wire_maintenance(settings), lambda maintenance: maintenance.verify(names)))
    status = EXIT_DIFFERENT if report.differences else EXIT_NOT_COMPARED if report.left_out else EXIT_SAME
    return status, [_json(report)] if as_json else _lines(report)


def rebuild(settings: EngineSettings, names: Sequence[str]) -> list[str]:
    """Rebuilds queues (none named: all) and says what was done. Raises StackError."""
    # A worker that rebuilds logs it; here the answer says the same.
    logging.getLogger("engine.recovery").setLevel(logging.ERROR)
    done: Rebuilt = asyncio.run(between(wire_maintenance(settings), lambda maintenance: maintenance.rebuild(names)))
    what = f"{done.settled} settled messages and {done.deliveries} open deliveries restored"
    return [
        (
            f"rebuilt {done.queues} queue(s), {done.units} partition(s), {done.messages} message(s) in Kafka, "
            f"in {done.seconds:.1f} s"
        ),
        f"from {done.entries} journal entries after the snapshots: {what}",
    ]


class Attachable(Protocol):
    """What a command of the engine is: it is started, and stopped whatever happened."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


async def between(command: C, work: Callable[[C], Awaitable[T]]) -> T:
    """Returns what `work` returns, done between the start and the stop of a command. Raises
    StackError for what the engine raises.
    """
    try:
        await command.start()
        return await work(command)
    except (EngineError, NotOurs, StateError) as error:
        raise StackError(str(error)) from error
    finally:
        await command.stop()


def _json(report: Report) -> str:
    return msgspec.json.encode(report).decode()


def _lines(report: Report) -> list[str]:
    lines = [
        f"queue {d.queue} tag {d.tag} partition {d.partition}{'' if d.offset is None else f' offset {d.offset}'}: "
        f"Redis says: {d.redis}; Kafka says: {d.kafka}"
        for d in report.differences[:MOST_LINES]
    ]
    if len(report.differences) > MOST_LINES:
        lines.append(f"... and {len(report.differences) - MOST_LINES} more (--json shows all)")
    lines += [f"not compared: {reason}" for reason in report.left_out]
    lines.append(
        f"compared {report.queues} queue(s), {report.units} partition(s), {report.tags} pair(s) of partition and tag: "
        f"{report.open} open, {report.settled_above_floor} settled after the oldest open message: "
        f"{len(report.differences) or 'no'} difference(s)"
    )
    return lines
