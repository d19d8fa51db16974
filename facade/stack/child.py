"""One child process: started, waited for, started again when it dies, stopped.

Neighbours: `broker`, `redis_server` and `workers` describe a `Program`; `supervisor` owns the children. It must not know
which program it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from facade.stack.errors import StackError

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
STEADY_AFTER_S = 30.0
PROBE_EVERY_S = 0.05
LARGEST_OUTPUT_BYTES = 10 * 1024 * 1024

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Program:
    """What to run and how to tell that it works.

    `output` is the file for its stdout and stderr (None: ours). `ready` is asked with the pid every 50 ms for at most
    `start_s` seconds; `stop_s` is how long it may take to end after SIGTERM.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    output: Path | None
    ready: Callable[[int], Awaitable[bool]]
    start_s: float
    stop_s: float


class Backoff:
    """How long to wait before the next start: 0.2 s, doubled up to 5 s, 0.2 s again after 30 s alive."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    def pause_s(self, alive_s: float) -> float:
        """The pause after a life of `alive_s` seconds."""
        if alive_s >= STEADY_AFTER_S:
            self._next_s = FIRST_PAUSE_S
        pause = self._next_s
        self._next_s = min(LONGEST_PAUSE_S, pause * 2)
        return pause


class Child:
    """A running program. Call from one task: start, then stop; `changed` is called after every new process."""

    def __init__(self, program: Program, changed: Callable[[], None], say: Callable[[str], None]) -> None:
        self.program = program
        self._changed = changed
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Pid of the latest process; 0 before the first."""
        return self._process.pid if self._process else 0

    async def start(self) -> None:
        """Start it and return when it is ready; from then on it is started again whenever it ends.

        Raises StackError when it ends or is not ready in time; then nothing is left running.
        """
        process = await self._spawn()
        if not await self._wait_ready(process):
            status = process.returncode
            await self.stop()
            happened = f"is not ready after {self.program.start_s:.0f} s" if status is None else f"ended at once with status {status}"
            raise StackError(f"{self.program.name} {happened}; {self._last_words()}")
        self._watcher = asyncio.create_task(self._watch(process), name=f"watch {self.program.name}")

    async def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL when that takes longer than the program's `stop_s`. Idempotent."""
        if self._watcher:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
            self._watcher = None
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._send(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self.program.stop_s)
        except TimeoutError:
            self._say(f"{self.program.name} did not end in {self.program.stop_s:.0f} s: killed")
            self.kill()
            await process.wait()

    def kill(self) -> None:
        """SIGKILL, now."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        backoff = Backoff()
        born = time.monotonic()
        while True:
            status = await process.wait()
            pause = backoff.pause_s(time.monotonic() - born)
            self._say(f"{self.program.name} (pid {process.pid}) {_ending(status)}; starting it again in {pause:.1f} s")
            await asyncio.sleep(pause)
            process, born = await self._spawn(), time.monotonic()
            if await self._wait_ready(process):
                self._say(f"{self.program.name} is back (pid {process.pid})")
            elif process.returncode is None:
                # Alive but deaf: waiting longer is safer than killing a broker in recovery.
                self._say(f"{self.program.name} (pid {process.pid}) is not ready after {self.program.start_s:.0f} s; still waiting")

    async def _spawn(self) -> asyncio.subprocess.Process:
        parent = os.getpid()
        with _output_of(self.program.output) as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.program.command,
                env=self.program.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C goes to the whole group of the terminal; the children must end in our order, not at once.
                start_new_session=True,
                preexec_fn=lambda: _die_with(parent),
            )
        self._changed()
        return self._process

    async def _wait_ready(self, process: asyncio.subprocess.Process) -> bool:
        end = time.monotonic() + self.program.start_s
        while time.monotonic() < end and process.returncode is None:
            if await self.program.ready(process.pid):
                return True
            await asyncio.sleep(PROBE_EVERY_S)
        return False

    def _last_words(self) -> str:
        if self.program.output is None:
            return "see its output above"
        with contextlib.suppress(OSError):
            lines = self.program.output.read_text(errors="replace").strip().splitlines()
            if lines:
                return f"its last words: {lines[-1][:200]!r}; all of them are in {self.program.output.parent}"
        return f"its output is in {self.program.output.parent}"


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


@contextlib.contextmanager
def _output_of(file: Path | None) -> Iterator[IO[bytes] | None]:
    if file is None:
        yield None
        return
    # One generation is enough: the broker's real log rotates by itself, this is what it says when it can't log.
    too_large = file.exists() and file.stat().st_size > LARGEST_OUTPUT_BYTES
    with file.open("wb" if too_large else "ab") as output:
        yield output


def _die_with(parent: int) -> None:
    """Runs in the child before the program: kill -9 of the supervisor must not leave orphans."""
    if _prctl is None:
        return
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # The parent may have died before the call above took hold.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
