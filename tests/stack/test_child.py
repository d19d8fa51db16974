"""One child: back-off, restart, stop; with programs of one line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from facade.programs.stack.processes import child as child_module
from facade.programs.stack.processes.child import Backoff, Child, Program
from facade.programs.stack.processes.errors import StackError

SLEEP = "import time; time.sleep(60)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('{}', 'w').close(); time.sleep(60)"


class Recorder:
    """What a child said, and how many times it told of a new process."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.changes = 0

    def changed(self) -> None:
        self.changes += 1


def make(code: str, recorder: Recorder, tmp_path: Path, ready_file: Path | None = None, stop_s: float = 10) -> Child:
    async def ready(pid: int) -> bool:
        return ready_file is None or ready_file.exists()

    command = (sys.executable, "-c", code)
    program = Program("part", command, dict(os.environ), tmp_path / "part.log", ready, start_s=10, stop_s=stop_s)
    return Child(program, recorder.changed, recorder.lines.append)


def test_the_pause_doubles_to_five_seconds_and_is_short_again_after_a_steady_life() -> None:
    backoff = Backoff()

    assert [backoff.pause_s(0) for _ in range(7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [backoff.pause_s(29.9), backoff.pause_s(30), backoff.pause_s(0)] == [5.0, 0.2, 0.4]


async def test_a_child_that_dies_is_started_again_and_says_so(tmp_path: Path) -> None:
    recorder = Recorder()
    child = make(SLEEP, recorder, tmp_path)
    await child.start()
    first = child.pid

    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(10):
        while len(recorder.lines) < 2:
            await asyncio.sleep(0.01)

    assert recorder.lines == [
        f"part (pid {first}) was ended by SIGKILL; starting it again in 0.2 s",
        f"part is back (pid {child.pid})",
    ]
    assert recorder.changes == 2
    await child.stop()


async def test_the_output_of_a_child_that_runs_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "LARGEST_OUTPUT_BYTES", 20_000)
    monkeypatch.setattr(child_module, "BOUND_EVERY_S", 0.02)
    code = (
        "import itertools, time\nfor n in itertools.count():\n    print(f'line {n} ' + 'x' * 990, "
        "flush=True); time.sleep(0.001)"
    )
    child = make(code, Recorder(), tmp_path)
    await child.start()
    now, aside = tmp_path / "part.log", tmp_path / "part.log.1"
    sizes: list[int] = []
    async with asyncio.timeout(20):
        # So many times more than it may be, all in all.
        while not now.exists() or not aside.exists() or b"line 400 " not in now.read_bytes() + aside.read_bytes():
            await asyncio.sleep(0.005)
            sizes.append(now.stat().st_size)
    await child.stop()
    text = now.read_bytes() or aside.read_bytes()  # it may have been set aside just now
    assert max(sizes) < 200_000 and text.lstrip(b"\0x \n").startswith(b"line ")
    assert b"\0" not in text, "it goes on at the end of the file, not where it was before"


async def test_a_child_that_ends_before_it_is_ready_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    child = make(
        "print('first'); print('no disk'); raise SystemExit(7)", Recorder(), tmp_path, ready_file=tmp_path / "never"
    )

    with pytest.raises(StackError, match=r"part ended at once with status 7; its last words: 'no disk'"):
        await child.start()


async def test_a_child_that_ignores_sigterm_is_killed_after_its_time(tmp_path: Path) -> None:
    recorder, listening = Recorder(), tmp_path / "listening"
    child = make(DEAF.format(listening), recorder, tmp_path, ready_file=listening, stop_s=0.2)
    await child.start()
    pid = child.pid

    await child.stop()

    assert recorder.lines == ["part did not end in 0 s: killed"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_stop_is_idempotent_and_allowed_before_start_and_in_a_pause(tmp_path: Path) -> None:
    recorder = Recorder()
    child = make(SLEEP, recorder, tmp_path)
    await child.stop()
    await child.start()
    os.kill(child.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        while not recorder.lines:
            await asyncio.sleep(0.01)

    await child.stop()
    await child.stop()

    assert recorder.changes == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


STALL_S = 3.0
# Ready when it has used a second of CPU, however long that takes: other processes have it, too.
BUSY = "import time\nwhile time.process_time() < 1.0: pass\nopen({!r}, 'w').close()\ntime.sleep(60)"
# As above by what it writes, and nearly without the CPU.
WRITING = (
    "import time\nfor n in range(20): print(n, flush=True); time.sleep(0.3)\nopen({!r}, 'w').close()\ntime.sleep(60)"
)


@pytest.mark.parametrize("code", [BUSY, WRITING], ids=["by its CPU", "by its output"])
async def test_a_start_is_waited_for_while_it_gets_on(code: str, tmp_path: Path) -> None:
    """Kafka was killed after 60 s on a machine that gave it a thirtieth of a processor."""
    ready_file = tmp_path / "ready"
    child = make(code.format(str(ready_file)), Recorder(), tmp_path, ready_file)
    child.program = replace(child.program, start_s=600.0, stall_s=STALL_S if code is BUSY else 2.0)
    await child.start()
    assert ready_file.exists()
    await child.stop()


async def test_a_start_that_does_nothing_any_more_ends_before_its_bound(tmp_path: Path) -> None:
    child = make(SLEEP, Recorder(), tmp_path, tmp_path / "never")
    child.program = replace(child.program, start_s=600.0, stall_s=STALL_S)
    with pytest.raises(StackError, match="part is not ready after"):
        async with asyncio.timeout(120):
            await child.start()
    assert child._process is not None and child._process.returncode is not None


async def test_a_start_that_gets_on_ends_at_its_bound(tmp_path: Path) -> None:
    child = make("while True: pass", Recorder(), tmp_path, tmp_path / "never")
    child.program = replace(child.program, start_s=2.0, stall_s=600.0)
    with pytest.raises(StackError, match="part is not ready after"):
        await child.start()
