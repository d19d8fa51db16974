"""The stage: one Kafka, two real Redis servers (a primary and its replica), two workers, and before
each worker a proxy that decides which of the two it reaches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from facade.config import Settings
from facade.programs.stack import redis_server, workers
from facade.programs.stack.data.leftovers import MARK, end_leftovers
from facade.programs.stack.processes.child import Child
from facade.programs.stack.processes.ports import free_port
from tests.faults.proxy import Proxy
from tests.services import loop_in_thread, running_services

READY_S = 30.0


class Server:
    """A Redis server of its own; `pid` is gone after `kill`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "logs").mkdir()
        self.port = free_port()
        environment = {**os.environ, MARK: str(folder.parent)}
        program = redis_server.program(folder, folder / "redis.sock", environment, self.port)
        self._process = subprocess.Popen(
            program.command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.client = redis.Redis(port=self.port, socket_timeout=10)
        end = time.monotonic() + READY_S
        while not self._answers():
            assert time.monotonic() < end, "Redis does not answer"
            time.sleep(0.02)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            return bool(self.client.ping())
        return False

    def follow(self, other: Server) -> None:
        """Becomes a replica; returns when it has what the other has."""
        self._replicate("127.0.0.1", other.port)
        end = time.monotonic() + READY_S
        while self.client.info("replication").get("master_link_status") != "up":
            assert time.monotonic() < end, "the replica did not come up"
            time.sleep(0.02)

    def _replicate(self, *of: str | int) -> None:
        self.client.execute_command("REPLICAOF", *of)  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        """Gets nothing of its primary any more, and does not know that it may lead."""
        self._replicate("127.0.0.1", 1)

    def lead(self) -> None:
        """Promoted, with what it has."""
        self._replicate("NO", "ONE")

    def hold(self, held: bool) -> None:
        """Stands still, or goes on."""
        os.kill(self._process.pid, signal.SIGSTOP if held else signal.SIGCONT)

    def kill(self) -> None:
        if self._process.poll() is None:
            self.hold(False)
            self._process.kill()
            self._process.wait(20)
        self.client.close()


class Stage:
    """Two workers at `ports`; `switch(worker, server)` has one reach another Redis."""

    def __init__(self, path: Path, bootstrap: str, prefix: str, run: Any, a: Server, b: Server) -> None:
        self.path, self._run = path, run
        self.a, self.b = a, b
        self.proxies = [Proxy(free_port(), a.port) for _ in range(2)]
        self.ports = [free_port(), free_port()]
        self.children: list[Child] = []
        environment = {**os.environ, MARK: str(path)}
        for number, (port, proxy) in enumerate(zip(self.ports, self.proxies, strict=True)):
            run(proxy.start())
            folder = path / f"worker-{number}"
            folder.mkdir()
            settings = dataclasses.replace(
                Settings(),
                kafka_bootstrap=bootstrap,
                topic_prefix=prefix,
                redis_url=f"redis://127.0.0.1:{proxy.port}/0",
                port=port,
                secret="two-redis",
            )
            (program,) = workers.programs(settings, 1, folder, folder, environment)
            self.children.append(Child(program, lambda: None, lambda text: None))

    def start(self) -> None:
        for child in self.children:
            self._run(child.start())

    def stop(self) -> None:
        for child in self.children:
            self._run(child.stop())
        for proxy in self.proxies:
            self._run(proxy.stop())

    def switch(self, worker: int, server: Server) -> None:
        self._run(self.proxies[worker].switch(server.port))

    def hold_worker(self, worker: int, held: bool) -> None:
        os.kill(self.children[worker].pid, signal.SIGSTOP if held else signal.SIGCONT)

    def log(self, word: str) -> list[str]:
        """The lines of both workers that have a word."""
        texts = [file.read_text(errors="replace") for file in sorted(self.path.glob("worker-*/*.log"))]
        return [line for text in texts for line in text.splitlines() if word in line]


@contextlib.contextmanager
def on_stage(path: Path, bootstrap: str = "", *, replica: bool) -> Iterator[Stage]:
    """Starts everything, and ends it. With `bootstrap` it shares a Kafka that runs."""
    with contextlib.ExitStack() as ends:
        run = ends.enter_context(loop_in_thread())
        prefix = f"two{secrets.token_hex(4)}" if bootstrap else "lw"
        kafka = bootstrap or ends.enter_context(running_services(path / "kafka")).bootstrap
        servers = [Server(path / "a"), Server(path / "b")]
        try:
            if replica:
                servers[1].follow(servers[0])
            stage = Stage(path, kafka, prefix, run, *servers)
            try:
                stage.start()
                yield stage
            finally:
                stage.stop()
        finally:
            for server in servers:
                server.kill()
            end_leftovers(path, lambda text: None)
