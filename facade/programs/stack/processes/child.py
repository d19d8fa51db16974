"""One child process: started, waited for, started again when it dies, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.progress import Progress
from runtime.background import Background

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
STEADY_AFTER_S = 30.0
PROBE_EVERY_S = 0.05
HINDRANCE_EVERY_S = 0.2
LARGEST_OUTPUT_BYTES = 10 * 1024 * 1024
BOUND_EVERY_S = 30.0
MOST_WORDS_BYTES = 64 * 1024
# What a pipe takes that nobody reads yet.
MOST_INPUT_BYTES = 60_000

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Program:
    """What to run and how to tell that it works.

    `output` is the file for its stdout and stderr (None: ours), `input` what it reads from its
    stdin, at most MOST_INPUT_BYTES. `before` is called before each start. `ready` is asked with the
    pid every 50 ms for at most `start_s` seconds, and no longer when it makes no progress for
    `stall_s`, by its CPU, its output and `logs`; `stop_s` is how long it may take to end after
    SIGTERM. `hindrance` says why it would only die again if it were started now, if it would.
    `explained` makes of what it said before it ended what became of its data and what to do, if it
    knows.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    output: Path | None
    ready: Callable[[int], Awaitable[bool]]
    start_s: float
    stop_s: float
    hindrance: Callable[[], str | None] = lambda: None
    explained: Callable[[str], str | None] = lambda _words: None
    input: bytes = field(default=b"", repr=False)
    before: Callable[[], None] = lambda: None
    stall_s: float = math.inf
    logs: tuple[Path, ...] = ()


class Backoff:
    """How long to wait before the next start: 0.2 s, doubled up to 5 s, 0.2 s again after 30 s
    alive.
    """

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
    """A running program. Call from one task: start, then stop; `changed` is called after every new
    process.

    From its first start to its stop it is started again whenever it ends: no file that can't be
    written and nothing that the system refuses ends that, neither here nor in `changed`.
    """

    def __init__(self, program: Program, changed: Callable[[], None], say: Callable[[str], None]) -> None:
        self.program = program
        self._changed = changed
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._background = Background()
        self._watcher: asyncio.Task[None] | None = None
        self._said_before = 0  # bytes of its output that are of earlier lives

    @property
    def pid(self) -> int:
        """Pid of the latest process; 0 before the first."""
        return self._process.pid if self._process else 0

    async def start(self) -> None:
        """Start it and return when it is ready; from then on it is started again whenever it ends.

        Raises StackError when it ends or is not ready in time; then nothing is left running.
        """
        began = time.monotonic()
        try:
            process = await self._spawn()
        except OSError as error:
            raise StackError(f"{self.program.name} can't be started: {error}") from None
        if not await self._wait_ready(process):
            status = process.returncode
            await self.stop()
            if explained := self._explained(status):
                raise StackError(explained)
            waited = time.monotonic() - began
            happened = f"is not ready after {waited:.0f} s" if status is None else f"ended at once with status {status}"
            raise StackError(f"{self.program.name} {happened}; {self._last_words()}")
        self._watcher = self._background.start(self._watch(process), f"watch {self.program.name}")

    async def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL when that takes longer than the program's `stop_s`.
        Idempotent.
        """
        if self._watcher:
            self._watcher.cancel()
            # Whatever became of it, the process is to end now.
            await asyncio.gather(self._watcher, return_exceptions=True)
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
            status = await self._ended(process)
            died = f"{self.program.name} (pid {process.pid}) {_ending(status)}"
            if explained := self._explained(status):
                died = f"{died}; {explained}"
            process = await self._spawn_again(died, backoff, time.monotonic() - born)
            born = time.monotonic()
            if await self._wait_ready(process):
                self._say(f"{self.program.name} is back (pid {process.pid})")
            elif process.returncode is None:
                # Alive but deaf: waiting longer is safer than killing a broker in recovery.
                self._say(
                    f"{self.program.name} (pid {process.pid}) is not ready after {time.monotonic() - born:.0f} s; "
                    "still waiting"
                )

    async def _ended(self, process: asyncio.subprocess.Process) -> int:
        """Its exit status, once it has ended; its output is bounded meanwhile."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BOUND_EVERY_S):
                    return await process.wait()
            self._bound_output()

    def _bound_output(self) -> None:
        """Puts an output that is too large aside, as one older file, and lets the program go on
        with an empty one. What it says in that moment is lost.
        """
        file = self.program.output
        if file is None:
            return
        # Without room nothing is put aside, and it is asked again later.
        with contextlib.suppress(OSError):
            if file.stat().st_size > LARGEST_OUTPUT_BYTES:
                shutil.copyfile(file, file.with_name(f"{file.name}.1"))
                os.truncate(file, 0)  # the program has it open to append, so it goes on at the new end
                self._said_before = 0

    async def _spawn_again(self, why: str, backoff: Backoff, alive_s: float) -> asyncio.subprocess.Process:
        """A new process: tried until there is one, since what the system refuses now it may give
        later.
        """
        while True:
            if hindrance := self._hindrance():
                self._say(f"{why}; {hindrance}: starting it again when that is over")
                await self._hindrance_over()
            else:
                pause = backoff.pause_s(alive_s)
                self._say(f"{why}; starting it again in {pause:.1f} s")
                await asyncio.sleep(pause)
            try:
                return await self._spawn()
            except Exception as error:
                why, alive_s = f"{self.program.name} can't be started: {error}", 0.0

    async def _hindrance_over(self) -> None:
        while True:
            await asyncio.sleep(HINDRANCE_EVERY_S)
            if self._hindrance() is None:
                return

    def _hindrance(self) -> str | None:
        """What keeps the program from being started, as far as the system lets us look."""
        try:
            return self.program.hindrance()
        except OSError as error:
            return f"what it needs can't be looked at ({error})"

    async def _spawn(self) -> asyncio.subprocess.Process:
        parent = os.getpid()
        self.program.before()
        with self._open_output() or contextlib.nullcontext() as output, opened(self.program.input) as stdin:
            self._said_before = os.fstat(output.fileno()).st_size if output else 0
            self._process = await asyncio.create_subprocess_exec(
                *self.program.command,
                env=self.program.environment,
                stdin=stdin,
                stdout=output,
                stderr=output,
                # Ctrl-C goes to the whole group of the terminal; the children must end in our
                # order, not at once.
                start_new_session=True,
                preexec_fn=lambda: _die_with(parent),
            )
        try:
            self._changed()
        except Exception as error:
            self._say(f"{self.program.name} (pid {self._process.pid}) is started, and that can't be noted: {error}")
        return self._process

    def _open_output(self) -> IO[bytes] | None:
        """The file for its output: a part without a log is better than no part, so a file that
        can't be opened is done without.
        """
        file = self.program.output
        if file is None:
            return None
        try:
            self._bound_output()
            return file.open("ab")
        except OSError as error:
            self._say(f"{self.program.name} is started without its log: {error}")
            return Path(os.devnull).open("ab")

    async def _wait_ready(self, process: asyncio.subprocess.Process) -> bool:
        end = time.monotonic() + self.program.start_s
        output = (self.program.output,) if self.program.output else ()
        progress = Progress(process.pid, (*self.program.logs, *output), self.program.stall_s)
        while time.monotonic() < end and process.returncode is None and not progress.is_stalled():
            # A probe that fails has no answer yet.
            with contextlib.suppress(Exception):
                if await self.program.ready(process.pid):
                    return True
            await asyncio.sleep(PROBE_EVERY_S)
        return False

    def _explained(self, status: int | None) -> str | None:
        return self.program.explained(self._words()) if status else None

    def _last_words(self) -> str:
        if self.program.output is None:
            return "see its output above"
        if lines := self._words().strip().splitlines():
            return f"its last words: {lines[-1][:200]!r}; all of them are in {self.program.output.parent}"
        return f"its output is in {self.program.output.parent}"

    def _words(self) -> str:
        """The end of what it has said in this life."""
        if self.program.output is not None:
            with contextlib.suppress(OSError), self.program.output.open("rb") as said:
                said.seek(max(self._said_before, self.program.output.stat().st_size - MOST_WORDS_BYTES))
                return said.read().decode(errors="replace")
        return ""


async def run_once(command: tuple[str, ...], environment: Mapping[str, str], text: bytes, within_s: float) -> str:
    """Runs a program to its end, with text for its stdin, and returns what it has said. Raises
    StackError, with its last line, when it fails or takes longer.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within_s):
            said, complained = await process.communicate(text)
    except TimeoutError:
        raise StackError(f"{' '.join(command[1:4])} did not end within {within_s:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = complained.decode(errors="replace").strip().splitlines() or [
            f"it ended with status {process.returncode}"
        ]
        raise StackError(lines[-1][:500])
    return said.decode(errors="replace")


@contextlib.contextmanager
def opened(text: bytes) -> Iterator[int]:
    """A file descriptor for a child that reads `text` and its end; asyncio's word for none."""
    if not text:
        yield asyncio.subprocess.DEVNULL
        return
    if len(text) > MOST_INPUT_BYTES:
        raise StackError(f"the settings have {len(text)} bytes, {MOST_INPUT_BYTES} are the most")
    end, begin = os.pipe()
    try:
        os.write(begin, text)
    finally:
        os.close(begin)
    try:
        yield end
    finally:
        os.close(end)


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _die_with(parent: int) -> None:
    """Runs in the child before the program: kill -9 of the supervisor must not leave orphans."""
    if _prctl is None:
        return
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # The parent may have died before the call above took hold.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
