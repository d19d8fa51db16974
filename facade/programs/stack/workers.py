"""Facade workers as children: how to run one, is it there."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import ssl
import sys
from pathlib import Path

from engine.settings import PREFIX, variable_of
from facade.config import Settings
from facade.programs.stack.processes.child import Program
from facade.programs.stack.processes.environment import without

# What a worker may take beside its waits for Kafka and Redis, which it ends by itself: it says why.
START_S = 120.0
STOP_S = 10.0
# glibc gives threads heaps of their own and keeps what is freed there: in half an hour of rebuilds,
# those of the sixty threads of Kafka's clients grew to 110 MiB. And what it has freed once by the
# system it keeps the next time: a flood of large bodies took 30 MiB more. Who has set it otherwise
# keeps it.
MEMORY = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "262144"}


def programs(
    settings: Settings, count: int, run_folder: Path, logs: Path | None, environment: dict[str, str]
) -> list[Program]:
    """`count` workers that share one port.

    `run_folder` takes their ready files; `logs` (None: our own output) their output; `environment`
    is what they get besides their settings, which they read from stdin.
    """
    base = MEMORY | without(environment, PREFIX)
    start_s = START_S + settings.start_wait_s
    return [
        _program(number, run_folder, logs, base, written(_named(settings, number, count)), start_s)
        for number in range(count)
    ]


def _named(settings: Settings, number: int, count: int) -> Settings:
    """The settings of one of `count` workers: its metrics say which, unless it is alone."""
    if count == 1:
        return settings
    name = settings.worker_label
    return dataclasses.replace(settings, worker_label=f"{name}-{number}" if name else str(number))


def written(settings: Settings) -> bytes:
    """Settings for a process that is told `--settings-on-stdin`."""
    return json.dumps(
        {variable_of(field.name): str(getattr(settings, field.name)) for field in dataclasses.fields(settings)}
    ).encode()


def read_settings(text: bytes) -> Settings:
    """What was written. Raises BadSetting."""
    return Settings.read(json.loads(text))


async def http_status(host: str, port: int, path: str, *, tls: bool = False) -> int:
    """Status of a GET, 0 when nothing answers within 5 s. By TLS no certificate is asked for: it is
    another name's, and nothing is told.
    """
    context = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                words = (await reader.readline()).split()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return 0
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def _program(
    number: int, run_folder: Path, logs: Path | None, environment: dict[str, str], settings: bytes, start_s: float
) -> Program:
    ready_file = run_folder / f"facade-{number}.ready"

    async def ready(pid: int) -> bool:
        # Workers share a port, so an answer on it says nothing about this one.
        return ready_file.exists() and ready_file.read_text() == str(pid)

    return Program(
        name=f"facade worker {number}",
        command=(
            sys.executable,
            "-m",
            "facade",
            "worker",
            "--settings-on-stdin",
            "--ready-file",
            os.fspath(ready_file),
        ),
        environment=environment,
        output=logs / f"facade-{number}.log" if logs else None,
        ready=ready,
        start_s=start_s,
        stop_s=STOP_S,
        input=settings,
    )
