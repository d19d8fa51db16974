"""The supervisor outlives every file of its own that the system refuses: run.json, logs, ready
files, its own output.

A disk that is really full: tests/acceptance/test_full_disk.py.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from facade.config import Settings
from facade.programs.stack import workers
from facade.programs.stack.data.leftovers import leftovers
from facade.programs.stack.processes.child import Child, Program
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import free_port
from tests.conftest import StartUp
from tests.stack.test_up import TINY, wait_until

SLEEP = "import time; time.sleep(60)"
FULL = OSError(errno.ENOSPC, "No space left on device")


async def always(pid: int) -> bool:
    return True


def child_of(
    said: list[str],
    output: Path | None = None,
    changed: Callable[[], None] = lambda: None,
    ready: Callable[[int], Awaitable[bool]] = always,
    command: tuple[str, ...] = (sys.executable, "-c", SLEEP),
) -> Child:
    program = Program("part", command, dict(os.environ), output, ready, start_s=10, stop_s=10)
    return Child(program, changed, said.append)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.01)


async def killed_and_back(child: Child, said: list[str]) -> None:
    old, heard = child.pid, len(said)
    os.kill(old, signal.SIGKILL)
    await until(lambda: any("part is back" in line for line in said[heard:]))
    assert child.pid != old


async def test_a_note_that_can_not_be_made_ends_no_watch() -> None:
    said: list[str] = []

    def changed() -> None:
        raise FULL

    child = child_of(said, changed=changed)
    await child.start()
    for _ in range(3):
        await killed_and_back(child, said)
    await child.stop()
    assert said[-2] == f"part (pid {child.pid}) is started, and that can't be noted: {FULL}"


async def test_a_log_that_can_not_be_opened_ends_no_watch(tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "logs"
    folder.mkdir()
    child = child_of(said, output=folder / "part.log")
    await child.start()
    (folder / "part.log").unlink()
    folder.rmdir()
    folder.touch()  # no folder any more: refused to root too

    await killed_and_back(child, said)

    await child.stop()
    assert any(line.startswith("part is started without its log: ") for line in said)


async def test_a_probe_that_fails_is_no_answer_yet(tmp_path: Path) -> None:
    said: list[str] = []
    asked = 0

    async def ready(pid: int) -> bool:
        nonlocal asked
        asked += 1
        if asked % 3:
            raise OSError(errno.EIO, "Input/output error")
        return True

    child = child_of(said, ready=ready)
    await child.start()
    await killed_and_back(child, said)
    await child.stop()


async def test_a_look_that_the_system_refuses_ends_no_watch() -> None:
    said: list[str] = []
    refused = 0

    def hindrance() -> str | None:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise OSError(errno.EIO, "Input/output error")
        return None

    program = Program(
        "part",
        (sys.executable, "-c", SLEEP),
        dict(os.environ),
        None,
        always,
        start_s=10,
        stop_s=10,
        hindrance=hindrance,
    )
    child = Child(program, lambda: None, said.append)
    await child.start()
    await killed_and_back(child, said)
    await child.stop()
    assert refused == 3
    assert any("Input/output error" in line and "starting it again when that is over" in line for line in said), said


async def test_a_program_that_can_not_be_started_now_is_started_later(tmp_path: Path) -> None:
    said: list[str] = []
    program = tmp_path / "program"
    program.symlink_to(sys.executable)
    child = child_of(said, command=(str(program), "-c", SLEEP))
    await child.start()
    program.unlink()
    os.kill(child.pid, signal.SIGKILL)
    await until(lambda: sum("part can't be started: " in line for line in said) == 2)
    program.symlink_to(sys.executable)

    await until(lambda: "part is back" in said[-1])

    await child.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def test_a_program_that_can_not_be_started_at_all_is_one_line() -> None:
    child = child_of([], command=("/nonexistent/program",))

    with pytest.raises(StackError, match=r"part can't be started: .*No such file or directory: '/nonexistent/program'"):
        await child.start()
    await child.stop()


async def test_a_worker_whose_ready_file_is_refused_serves_and_tells_later(tmp_path: Path) -> None:
    said: list[str] = []
    settings = Settings(port=free_port())
    (program,) = workers.programs(settings, 1, tmp_path, tmp_path, {**os.environ, **TINY})
    refused = tmp_path / "facade-0.ready"
    refused.mkdir()
    child = Child(program, lambda: None, said.append)
    starting = asyncio.create_task(child.start())
    try:
        async with asyncio.timeout(30):
            while await workers.http_status(settings.host, settings.port, "/ready") != 200:
                await asyncio.sleep(0.05)
        assert not starting.done()
        refused.rmdir()
        await asyncio.wait_for(starting, 10)
        assert refused.read_text() == str(child.pid)
    finally:
        starting.cancel()
        await child.stop()


def test_run_json_that_can_not_be_written_is_written_when_it_can(leaseway_up: StartUp, tmp_path: Path) -> None:
    up = leaseway_up(data=tmp_path, environment=TINY)
    up.wait_ready()
    old = up.run
    (tmp_path / "run.json.new").mkdir()  # refused to root too
    for part in ("redis", "kafka", "redis"):
        known = len(up.text)
        (pid,) = (
            pid
            for pid in leftovers(tmp_path)
            if Path(f"/proc/{pid}/cmdline").read_bytes().find(f"{part}.".encode()) > 0
        )
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda known=known: " is back" in up.text[known:], 30, f"{part} is back")  # type: ignore[misc]
    up.wait_line("run.json can't be written and has older pids: ")
    assert up.run == old
    (tmp_path / "run.json.new").rmdir()

    up.wait_line("run.json is written again")

    run = up.run
    assert {run["kafka"]["pid"], run["redis"]["pid"], run["facades"][0]["pid"]} == set(leftovers(tmp_path))
    assert up.text.count("run.json can't be written") == 1
    (tmp_path / "run.json").unlink()
    (tmp_path / "run.json").mkdir()  # and a stop that can't remove it is one all the same
    assert up.stop() == 0
    assert "Traceback" not in up.text


def test_up_in_a_folder_with_a_refused_file_is_one_line(leaseway_up: StartUp, tmp_path: Path) -> None:
    first = leaseway_up(data=tmp_path, environment={**TINY, "LW_APP": "tests.stack.no_such_app:create_app"})
    assert first.wait_end() == 2
    (tmp_path / "redis.conf").unlink()
    (tmp_path / "redis.conf").mkdir()

    up = leaseway_up(data=tmp_path, environment=TINY)

    assert up.wait_end() == 2
    assert up.text == f"leaseway up: data folder {tmp_path} can't be used: Is a directory: {tmp_path}/redis.conf\n"


SAYS = """
import resource
from facade.programs.cli.local import say
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
say("first")
resource.setrlimit(resource.RLIMIT_FSIZE, (len("leaseway: first "), limits[1]))
say("lost")
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
say("last")
"""


def test_a_line_that_can_not_be_said_is_lost_alone(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("wb") as output:
        done = subprocess.run([sys.executable, "-c", SAYS], stdout=output, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line for line in said.read_text().splitlines() if "lost" not in line] == [
        "leaseway: first",
        "leaseway: last",
    ]
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run([sys.executable, "-c", SAYS], stdout=output, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
