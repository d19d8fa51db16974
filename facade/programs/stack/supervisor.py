"""`leaseway up`: Kafka and Redis side by side, then the facade workers, until asked to stop."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.settings import PREFIX
from facade.config import Settings
from facade.programs.stack import broker, redis_server, workers
from facade.programs.stack.console import program as console
from facade.programs.stack.data.broken import set_aside
from facade.programs.stack.data.credentials import Credentials, client_file, write_client_file
from facade.programs.stack.data.folder import DataFolder, Identity
from facade.programs.stack.data.leftovers import MARK, end_leftovers
from facade.programs.stack.processes.child import Child, Program, run_once
from facade.programs.stack.processes.environment import bare, without
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.group import Group, start_together
from facade.programs.stack.processes.ports import free_port, is_free, reserved
from facade.programs.stack.processes.programs import broker_class_path, find_java, find_redis_server, known_holes
from facade.programs.stack.safety import refuse_unsafe
from facade.programs.stack.welcome import connectable, endpoint_of, ports_of, rocketmq_of, welcome

# How long each part may take to start, unless LEASEWAY_START_WAIT_S says another bound: a machine
# may have far more to do than it can.
START_S = 600
WRITE_AGAIN_S = 1.0
STARTS = 3
KAFKA_PORTS = "kafka_port", "controller_port", "service_port"


@dataclass(frozen=True, slots=True)
class Order:
    """What `leaseway up` was asked for; `given` are the settings of the command line, None = not
    given.

    `aside` are the folders of data to start without.
    `console_port` 0 = one beside that of the service, None = no console.
    """

    data: Path
    workers: int
    given: dict[str, Any]
    aside: tuple[str, ...] = ()
    console_port: int | None = None


def up(order: Order, say: Callable[[str], None]) -> None:
    """Run the stack until SIGINT or SIGTERM. Raises StackError when it can't start; then nothing is
    left running.
    """
    settings = Settings.read(**order.given)
    settings = dataclasses.replace(settings, start_wait_s=settings.start_wait_s or START_S)
    find_java(), broker_class_path()  # before anything is made
    if warning := known_holes(find_redis_server()):
        say(warning)
    os.umask(0o077)
    folder = DataFolder.open(order.data)
    try:
        end_leftovers(folder.path, say)
        set_aside(folder.path, order.aside, say)
        settings = _with_secrets(settings, folder)
        refuse_unsafe(settings)
        write_client_file(folder.path, Credentials.of(folder))
        with reserved(settings.host, ports_of(settings)), _socket(folder.path) as socket:
            console_port = console.port_of(settings, order.console_port, say)
            if console_port and not settings.console_url:
                settings = dataclasses.replace(settings, console_url=console.url_of(console_port))
            _run(folder, settings, socket, order.workers, say, console_port)
    except OSError as error:
        if error.filename is None:
            raise
        raise StackError(f"data folder {folder.path} can't be used: {error.strerror}: {error.filename}") from None
    finally:
        folder.close()


def _run(
    folder: DataFolder,
    settings: Settings,
    socket: Path,
    worker_count: int,
    say: Callable[[str], None],
    console_port: int,
) -> None:
    """Runs the stack until it is asked to stop; once more with other ports when somebody took one
    of Kafka's before Kafka, which needs seconds, had it.
    """
    for starts_left in range(STARTS - 1, -1, -1):
        _check_remembered_ports(folder, say)
        settings = dataclasses.replace(
            settings,
            kafka_bootstrap=f"127.0.0.1:{folder.identity.service_port}",
            kafka_config=str(client_file(folder.path)),
            redis_url=redis_server.url_of(socket),
        )
        try:
            asyncio.run(Stack(folder, settings, socket, worker_count, say, console_port).run())
        except StackError:
            if not starts_left or not _taken_ports(folder):
                raise
        else:
            return


class Stack:
    """The running stack of one folder. `run` may be called once. `console_port` 0 = no console."""

    def __init__(
        self,
        folder: DataFolder,
        settings: Settings,
        socket: Path,
        worker_count: int,
        say: Callable[[str], None],
        console_port: int = 0,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._socket = socket
        self._worker_count = worker_count
        self._say = say
        self._console_port = console_port
        self._console: Child | None = None
        self._environment = {**os.environ, MARK: str(folder.path)}
        self._services: list[Child] = []
        self._facades: list[Child] = []
        self._later: asyncio.TimerHandle | None = None  # while run.json can't be written

    async def run(self) -> None:
        """Start everything, wait for a signal, stop everything."""
        group = Group(self._say, self._write_run)
        group.listen_to_signals()
        await group.run_until_asked(lambda: self._start(group))
        self._say("stopped")

    async def _start(self, group: Group) -> None:
        began = time.monotonic()
        environment = bare(self._environment)
        bound_s = self._settings.start_wait_s
        redis = redis_server.program(self._folder.path, self._socket, environment, start_s=bound_s)
        # Formatting takes a second or two the first time; Redis need not wait for it.
        kafka = await asyncio.to_thread(broker.program, self._folder, environment, start_s=bound_s)
        # Two steps, because they end one after the other: the broker may still be read while Redis
        # is there.
        (redis_child,) = group.add([redis])
        (kafka_child,) = group.add([kafka])
        self._services = [kafka_child, redis_child]
        self._say(f"starting Kafka ({self._settings.kafka_bootstrap}) and Redis ({self._socket})")
        await start_together(self._services)
        preparing = asyncio.create_task(self._prepare())
        try:
            self._facades = group.add(self._worker_programs())
            await start_together(self._facades)
            await preparing
        finally:
            preparing.cancel()
        await self._wait_ready()
        self._say(f"ready after {time.monotonic() - began:.1f} s")
        await self._start_console(group)
        self._say(
            welcome(self._settings, self._folder.path, console.url_of(self._console_port) if self._console else "")
        )

    async def _start_console(self, group: Group) -> None:
        """Messages need no console, so the stack goes on without one that does not start."""
        if not self._console_port:
            return
        self._folder.secret(console.KEY)
        (child,) = group.add(
            [
                console.program(
                    self._settings, self._console_port, self._folder.path, self._folder.logs, self._environment
                )
            ]
        )
        try:
            await child.start()
        except StackError as error:
            self._say(f"no console: {error}")
        else:
            self._console = child
            self._write_run()

    async def _prepare(self) -> None:
        """Has Kafka told what others may do, once for each folder and prefix. Raises StackError."""
        prefix = self._settings.topic_prefix
        if self._folder.prepared == prefix:
            return
        bound_s = self._settings.start_wait_s + workers.START_S
        words = ("-m", "facade", "prepare", "--settings-on-stdin")
        await run_once(
            (sys.executable, *words), without(self._environment, PREFIX), workers.written(self._settings), bound_s
        )
        self._folder.note_prepared(prefix)

    def _worker_programs(self) -> list[Program]:
        logs = self._folder.logs
        return workers.programs(self._settings, self._worker_count, logs, logs, self._environment)

    async def _wait_ready(self) -> None:
        end = time.monotonic() + self._settings.start_wait_s
        status = 0
        while time.monotonic() < end:
            at = connectable(self._settings.host), self._settings.port
            status = await workers.http_status(*at, "/ready", tls=bool(self._settings.tls_cert))
            if status == 200:
                return
            await asyncio.sleep(0.1)
        waited = f"the facade is not ready after {self._settings.start_wait_s} s"
        raise StackError(f"{waited}: GET /ready answers {status or 'nothing'}; see {self._folder.logs}")

    def _write_run(self) -> None:
        """Says in run.json what runs now; when it can't be written (a full disk), again every
        second until it is.
        """
        if not all(child.pid for child in self._services):
            return
        kafka, redis = self._services
        running = {
            "endpoint": endpoint_of(self._settings),
            **({"rocketmq": rocketmq_of(self._settings)} if self._settings.rocketmq_port else {}),
            "kafka": {
                "pid": kafka.pid,
                "bootstrap": f"127.0.0.1:{self._folder.identity.kafka_port}",
                "service": self._settings.kafka_bootstrap,
                "config": self._settings.kafka_config,
            },
            "redis": {"pid": redis.pid, "url": self._settings.redis_url},
            "facades": [{"pid": child.pid} for child in self._facades if child.pid],
            **(
                {"console": {"pid": self._console.pid, "url": console.url_of(self._console_port)}}
                if self._console
                else {}
            ),
        }
        try:
            self._folder.write_run(running)
        except OSError as error:
            if self._later is None:
                self._say(
                    f"run.json can't be written and has older pids: {error}; trying again every {WRITE_AGAIN_S:.0f} s"
                )
            else:
                self._later.cancel()
            self._later = asyncio.get_running_loop().call_later(WRITE_AGAIN_S, self._write_run)
        else:
            if self._later is not None:
                self._later.cancel()
                self._say("run.json is written again")
            self._later = None


@contextlib.contextmanager
def _socket(folder: Path) -> Iterator[Path]:
    """Where Redis listens: in the data folder, or in a folder of its own when that path is too long
    for a socket.
    """
    if (path := redis_server.socket_path(folder)) is not None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="leaseway-") as made:
        yield Path(made) / "redis.sock"


def _with_secrets(settings: Settings, folder: DataFolder) -> Settings:
    """Fill in what nobody set: the MAC key, and the administrator's secret when keys are
    required.
    """
    defaults = Settings()
    if settings.secret == defaults.secret:
        settings = dataclasses.replace(settings, secret=folder.secret("secret"))
    if settings.auth == "required" and not settings.admin_key_secret:
        settings = dataclasses.replace(settings, admin_key_secret=folder.secret("admin_secret"))
    return settings


def _taken_ports(folder: DataFolder) -> list[str]:
    """Which of Kafka's ports something has, by their names in the identity."""
    ports = dataclasses.asdict(folder.identity)
    return [name for name in KAFKA_PORTS if not is_free("127.0.0.1", ports[name])]


def _check_remembered_ports(folder: DataFolder, say: Callable[[str], None]) -> None:
    """Ports are kept from start to start; one that somebody took meanwhile is replaced."""
    ports = dataclasses.asdict(folder.identity)
    for name in _taken_ports(folder):
        port = ports[name]
        ports[name] = free_port(*(ports[one] for one in KAFKA_PORTS))
        say(f"{name.replace('_', ' ')} {port} was taken meanwhile; using {ports[name]}")
    folder.save(Identity(**ports))
