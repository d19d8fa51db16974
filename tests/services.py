"""A real broker and redis-server for a whole test session, and the real `leaseway up`, as context
managers.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from facade.programs.stack import broker, redis_server
from facade.programs.stack.data.folder import DataFolder
from facade.programs.stack.data.leftovers import MARK, end_leftovers
from facade.programs.stack.processes.child import Child
from facade.programs.stack.processes.ports import free_port
from schemas.client_properties import for_librdkafka, parse

# Who comes to Kafka without a password.
ANYBODY = "ANONYMOUS"


@dataclasses.dataclass(frozen=True)
class Services:
    """A running Kafka and Redis without a facade, open to everybody of this machine. Pids change
    when a part is killed: it is started again.
    """

    folder: Path
    bootstrap: str
    redis_url: str
    kafka: Child
    redis: Child
    service_port: int  # of Kafka's listener that asks for a password

    @property
    def kafka_pid(self) -> int:
        return self.kafka.pid

    @property
    def redis_pid(self) -> int:
        return self.redis.pid


@contextlib.contextmanager
def running_services(path: Path) -> Iterator[Services]:
    """Kafka and Redis in `path`, started side by side on free ports; stopped at the end. Raises
    StackError.
    """
    folder = DataFolder.open(path)
    environment = {**os.environ, MARK: str(folder.path)}
    port = free_port()
    socket = redis_server.socket_path(folder.path)
    assert socket is not None
    programs = [
        broker.program(folder, environment, more_super_users=(ANYBODY,)),
        redis_server.program(folder.path, socket, environment, port),
    ]
    # A loop of its own: the fixture lives for the session, each test's loop for one test.
    with loop_in_thread() as run:
        kafka, redis = (Child(program, lambda: None, lambda text: None) for program in programs)

        async def start() -> None:
            await asyncio.gather(kafka.start(), redis.start())

        async def stop() -> None:
            await asyncio.gather(kafka.stop(), redis.stop())

        try:
            run(start())
            bootstrap, url = f"127.0.0.1:{folder.identity.kafka_port}", f"redis://127.0.0.1:{port}/0"
            yield Services(folder.path, bootstrap, url, kafka, redis, folder.identity.service_port)
        finally:
            run(stop())
            folder.close()


@contextlib.contextmanager
def loop_in_thread() -> Iterator[Any]:
    """An event loop in a thread of its own; what it gives runs a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="services")
    thread.start()

    def run(coroutine: Any) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, loop)
        return future.result(timeout=900)

    try:
        yield run
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Up:
    """A `leaseway up` process. `lines` are what it has printed so far."""

    def __init__(
        self,
        data: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        port: int | None = None,
        checkout: Path | None = None,
    ) -> None:
        """`checkout`: whose code runs, with the packages of this one; None = this one."""
        self.data = data
        self.port = port or free_port()
        # A console costs a process, so few have one; a checkout may be of before there was one.
        has_console = checkout is None or (checkout / "facade" / "programs" / "console").is_dir()
        console = ("--no-console",) if has_console and "--console-port" not in options else ()
        command = [
            sys.executable, "-m", "facade", "up", "--data", str(data), "--port", str(self.port), *console, *options
        ]  # fmt: skip
        variables = {**os.environ, **(environment or {})}
        if checkout is not None:
            variables["PYTHONPATH"] = str(checkout)
        self.process = subprocess.Popen(
            command, cwd=checkout, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self.ready_s = 0.0
        self._reader = threading.Thread(target=self._read, name="leaseway up")
        self._reader.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def run(self) -> dict[str, Any]:
        """What run.json says now."""
        found: dict[str, Any] = json.loads((self.data / "run.json").read_text())
        return found

    @property
    def workers(self) -> list[int]:
        """Pids of the workers, once all that run.json names serve; none while one is not back."""
        try:
            serving = {int(file.read_text()) for file in self.data.rglob("facade-*.ready")}
        except (OSError, ValueError):  # one is being written, or removed
            return []
        pids = [facade["pid"] for facade in self.run["facades"]]
        return pids if serving.issuperset(pids) else []

    @property
    def kafka_properties(self) -> dict[str, str]:
        """What Java clients of the folder's owner get in by, at `run["kafka"]["service"]`."""
        return parse(Path(self.run["kafka"]["config"]).read_text().splitlines())

    @property
    def kafka_client(self) -> dict[str, Any]:
        """The options of a client that may do everything."""
        return {"bootstrap.servers": self.run["kafka"]["service"], **for_librdkafka(self.kafka_properties)}

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def wait_ready(self, seconds: float = 600) -> float:
        """Wait until the stack says that it is ready; how many seconds that took (also in
        `ready_s`). Fails when the process ends first.

        GET /ready is 200 before: of one worker, while others may still be starting. One that is
        killed then ends the stack.
        """
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.process.poll() is not None:
                self._reader.join()
                raise AssertionError(f"leaseway up ended with {self.process.returncode}: {self.text}")
            if "ready after" in self.text and self.status("/ready") == 200:
                self.ready_s = time.monotonic() - began
                return self.ready_s
            time.sleep(0.05)
        raise AssertionError(f"not ready after {seconds} s: {self.text}{self._logs()}")

    def status(self, path: str) -> int:
        """Status of a GET, 0 when there is no answer."""
        try:
            with urllib.request.urlopen(self.endpoint + path, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            return 0

    def wait_line(self, part: str, seconds: float = 300) -> None:
        """Wait until a printed line contains `part`."""
        end = time.monotonic() + seconds
        while part not in self.text:
            if time.monotonic() > end:
                raise AssertionError(f"no line with {part!r} after {seconds} s: {self.text}")
            time.sleep(0.02)

    def wait_end(self, seconds: float = 300) -> int:
        """Wait for the process to end; its exit status."""
        status = self.process.wait(seconds)
        self._reader.join()
        return status

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait_end()

    def close(self) -> None:
        """End it and whatever it started; nothing is left running."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        end_leftovers(self.data.resolve(), lambda text: None)
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line)

    def _logs(self) -> str:
        texts = [
            f"\n--- {file.name}\n{file.read_text(errors='replace')[-2000:]}"
            for file in (self.data / "logs").glob("facade-*.log")
        ]
        return "".join(texts)
