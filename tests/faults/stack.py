"""The service under test: real Kafka, real Redis, facade workers, a proxy before each service;
parts can be killed, held, replaced.

Made of the parts of `leaseway up`; only the addresses differ: workers see the proxies.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import redis

from facade.config import Settings
from facade.programs.stack import broker, redis_server, workers
from facade.programs.stack.data.folder import DataFolder
from facade.programs.stack.data.leftovers import MARK, end_leftovers
from facade.programs.stack.processes.child import Child, Program
from facade.programs.stack.processes.ports import free_port
from tests.faults.proxy import Proxy
from tests.faults.set_clock import SetClock, built
from tests.services import ANYBODY

T = TypeVar("T")
BACK_S = 90.0


class Stack:
    """A running stack. Methods may be called from any thread but that of its loop; one at a
    time.
    """

    def __init__(self, path: Path, worker_count: int, *, clocks: bool = False) -> None:
        self._folder = DataFolder.open(path)
        self.path = self._folder.path
        self._environment = {**os.environ, MARK: str(self.path)}
        self.said: list[str] = []
        # Where this is, the next worker that has closed a queue for a change stands still.
        self.closing = self.path / "closing"
        # By the program that has it, when their clocks can be set.
        self.clocks: dict[str, SetClock] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stack")
        self._thread.start()
        identity = self._folder.identity
        taken = [identity.kafka_port, identity.controller_port, identity.service_port]
        ports = [free_port(*taken)]
        ports.append(free_port(*taken, *ports))
        self.port = free_port(*taken, *ports)
        self.redis_port = free_port(*taken, *ports, self.port)
        self.redis_proxy, self.kafka_proxy = self.run(self._proxies(ports))
        self.kafka = self._child(self._kafka(ports[1]))
        program = redis_server.program(
            self.path, self.path / "redis" / "redis.sock", self._environment, self.redis_port
        )
        self.redis = self._child(self._clocked(program, clocks))
        settings = Settings.read(
            kafka_bootstrap=f"127.0.0.1:{ports[1]}",
            redis_url=f"redis://127.0.0.1:{ports[0]}/0",
            port=self.port,
            secret=self._folder.secret("secret"),
            failpoints=f"change.closed=stop@{self.closing}",
        )
        logs = self.logs = self._folder.logs
        programs = workers.programs(settings, worker_count, logs, logs, self._environment)
        self.facades = [self._child(self._clocked(program, clocks)) for program in programs]

    async def _proxies(self, ports: list[int]) -> tuple[Proxy, Proxy]:
        identity = self._folder.identity
        proxies = Proxy(ports[0], self.redis_port), Proxy(ports[1], identity.kafka_port)
        await asyncio.gather(*(proxy.start() for proxy in proxies))
        return proxies

    def _kafka(self, port: int) -> Program:
        """The broker of `leaseway up`, but clients are sent to the proxy."""
        program = broker.program(self._folder, self._environment, more_super_users=(ANYBODY,))
        service = f"SERVICE://127.0.0.1:{self._folder.identity.service_port}"
        override = ("--override", f"advertised.listeners={service},LOCAL://127.0.0.1:{port}")
        return dataclasses.replace(program, command=(*program.command, *override))

    def _clocked(self, program: Program, clocks: bool) -> Program:
        """The program with a wall clock of its own, if it is to have one. Raises
        NoCompilerError.
        """
        if not clocks:
            return program
        clock = self.clocks[program.name] = SetClock(built(self.path), self.path / f"{len(self.clocks)}.clock")
        return dataclasses.replace(program, environment={**program.environment, **clock.environment})

    def alarms(self, clock: str) -> int:
        """How many workers have written that a clock is wrong, and not since that this is over."""
        logs = b"".join(file.read_bytes() for file in self.logs.glob("facade-*.log"))
        began, over = (
            logs.count(f"action={word} kind=clock_skew clock={clock} ".encode()) for word in ("alarm", "alarm_over")
        )
        return began - over

    def _child(self, program: Program) -> Child:
        return Child(program, lambda: None, self._say)

    def _say(self, text: str) -> None:
        self.said.append(text)
        with (self.path / "logs" / "stack.log").open("a") as file:
            file.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the stack's loop and waits for it."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(180)

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def parts(self) -> dict[str, Child]:
        """Every part by name."""
        return {
            "kafka": self.kafka,
            "redis": self.redis,
            **{f"facade-{n}": child for n, child in enumerate(self.facades)},
        }

    @property
    def crashes(self) -> list[str]:
        """Parts that ended by a fault of their own: no fault of ours sends these signals."""
        return [text for text in self.said if "SIGABRT" in text or "SIGSEGV" in text or "SIGBUS" in text]

    def start(self) -> None:
        """Starts everything; returns when it serves. Raises StackError."""

        async def services() -> None:
            await asyncio.gather(self.kafka.start(), self.redis.start())
            await asyncio.gather(*(child.start() for child in self.facades))

        self.run(services())
        self.wait_back()

    def wait_back(self) -> None:
        """Returns when every part runs and answers by itself (not when the service does). Raises
        TimeoutError after 90 s.
        """
        end = time.monotonic() + BACK_S
        for name, child in self.parts.items():
            while not (child.pid and self._alive(child.pid) and self.run(self._ready(child))):
                if time.monotonic() > end:
                    raise TimeoutError(f"{name} is not back after {BACK_S:.0f} s, see {self.path}")
                time.sleep(0.05)

    @staticmethod
    async def _ready(child: Child) -> bool:
        return await child.program.ready(child.pid)

    @staticmethod
    def _alive(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    @contextlib.contextmanager
    def direct(self) -> Iterator[redis.Redis]:
        """A client of the real redis-server, past the proxy."""
        with contextlib.closing(redis.Redis(port=self.redis_port, socket_timeout=30)) as client:
            yield client

    @property
    def append_only_file(self) -> Path:
        """Redis 6.2 has one file; 7 has a folder, of which the last increment is meant."""
        plain = self.path / "redis" / "appendonly.aof"
        increments = sorted(self.path.glob("redis/appendonlydir/*.incr.aof"), key=lambda f: f.stat().st_mtime)
        return increments[-1] if increments else plain

    def kill_and_hold(self, child: Child) -> None:
        """kill -9, and it is not started again before `child.start()`."""

        async def both() -> None:
            child.kill()
            await child.stop()

        self.run(both())

    def second_redis(self) -> tuple[Child, int]:
        """A fresh redis-server, running, and its port."""
        folder = self.path / "other"
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        for old in folder.glob("redis/**/*.aof"):
            old.unlink()
        port = free_port(self.redis_port, self.port)
        child = self._child(redis_server.program(folder, folder / "redis.sock", self._environment, port))
        self.run(child.start())
        return child, port

    def stop(self) -> None:
        """Ends everything; nothing is left running."""

        async def everything() -> None:
            await asyncio.gather(*(child.stop() for child in self.facades))
            await asyncio.gather(self.kafka.stop(), self.redis.stop())
            await asyncio.gather(self.redis_proxy.stop(), self.kafka_proxy.stop())

        try:
            self.run(everything())
        finally:
            end_leftovers(self.path, lambda text: None)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._folder.close()
