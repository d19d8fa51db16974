"""`leaseway serve` with a real worker and without its Kafka or Redis, and `leaseway jars` with an
Ivy that fails on order.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import struct
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.jars import SETS, check, fetch, pinned_sums
from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.programs import jars_folder
from tests.services import Services


@pytest.fixture
def there(stack: Services) -> dict[str, str]:
    """Variables of a `leaseway serve` whose Kafka and Redis are there."""
    services = {"LEASEWAY_KAFKA_BOOTSTRAP": stack.bootstrap, "LEASEWAY_REDIS_URL": stack.redis_url}
    return {**os.environ, **services, "LW_APP": "tests.stack.tiny_app:create_app"}


def test_serve_runs_workers_on_one_port_and_stops_on_sigterm(there: dict[str, str]) -> None:
    port = free_port()
    environment = {**there, "LEASEWAY_PORT": str(port)}
    command = [sys.executable, "-m", "facade", "serve", "--workers", "2"]

    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == f"leaseway: serving at http://127.0.0.1:{port} with 2 worker(s)\n"
            # The kernel chooses a worker by the client's port: in 60 connections, both are met.
            pids = set()
            for _ in range(60):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                    pids.add(answer.read().split()[0])
            assert len(pids) == 2
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.stdout.read().splitlines()[-1] == "leaseway: stopped"
    assert process.returncode == 0


def test_a_thread_gets_the_lock_of_a_busy_worker(there: dict[str, str]) -> None:
    port = free_port()
    command = [sys.executable, "-m", "facade", "serve", "--port", str(port)]
    environment = {**there, "LW_APP": "tests.stack.busy_app:create_app"}

    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
                late_ms = float(answer.read())
        finally:
            process.send_signal(signal.SIGTERM)
    # With Python's own switch interval 120 to 1,100 ms, else 0.3 to 0.5.
    assert late_ms < 30


def test_serve_stops_though_nobody_reads_its_lines(there: dict[str, str]) -> None:
    command = [sys.executable, "-m", "facade", "serve", "--port", str(free_port())]

    with subprocess.Popen(command, env=there, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdout.readline()
            process.stdout.close()
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        finally:
            process.kill()
        assert "Error" not in process.stderr.read()
    assert process.returncode == 0


def serve_output(environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and all lines of a `leaseway serve` that ends by itself."""
    command = [sys.executable, "-m", "facade", "serve", "--port", str(free_port())]
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("missing", ["KAFKA_BOOTSTRAP", "REDIS_URL"])
def test_serve_without_kafka_or_redis_says_so_in_one_line(stack: Services, missing: str) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    given = {"KAFKA_BOOTSTRAP": stack.bootstrap, "REDIS_URL": stack.redis_url}
    given[missing] = nobody if missing == "KAFKA_BOOTSTRAP" else f"redis://:a-secret@{nobody}/0"
    name, shown = ("Kafka", nobody) if missing == "KAFKA_BOOTSTRAP" else ("Redis", f"redis://{nobody}/0")

    status, said = serve_output({f"LEASEWAY_{setting}": value for setting, value in given.items()})

    assert status == 2
    assert said == (
        f"leaseway serve: {name} can't be reached at {shown} (Connection refused): set LEASEWAY_{missing} to "
        "where it is "
        "(LEASEWAY_START_WAIT_S makes `serve` wait for it)\n"
    )


def test_serve_without_both_names_both_after_its_wait() -> None:
    nobody = {
        "LEASEWAY_KAFKA_BOOTSTRAP": f"localhost:{free_port()}",
        "LEASEWAY_REDIS_URL": "unix:///no/such/socket?db=0",
    }

    status, said = serve_output({**nobody, "LEASEWAY_START_WAIT_S": "1"})

    first, last = said.splitlines()
    assert status == 2
    assert first.endswith("; waiting for up to 1 s")
    assert last.endswith("(after 1 s)")
    for part in (
        "set LEASEWAY_KAFKA_BOOTSTRAP",
        "at unix:///no/such/socket?db=0 (No such file or directory): set LEASEWAY_REDIS_URL",
    ):
        assert part in first and part in last


def test_serve_waits_for_what_comes_within_its_wait(there: dict[str, str], stack: Services) -> None:
    port, late = free_port(), free_port()
    bootstrap = f"127.0.0.1:{late}"
    environment = {
        **there,
        "LEASEWAY_START_WAIT_S": "60",
        "LEASEWAY_KAFKA_BOOTSTRAP": bootstrap,
        "LEASEWAY_PORT": str(port),
    }
    command = [sys.executable, "-m", "facade", "serve"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert f"Kafka can't be reached at {bootstrap} (Connection refused)" in process.stdout.readline()
            with forwarded(late, int(stack.bootstrap.rpartition(":")[2])):
                assert process.stdout.readline() == f"leaseway: serving at http://127.0.0.1:{port} with 1 worker(s)\n"
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def test_serve_ends_while_it_waits() -> None:
    environment = {**os.environ, "LEASEWAY_START_WAIT_S": "600", "LEASEWAY_KAFKA_BOOTSTRAP": f"127.0.0.1:{free_port()}"}
    command = [sys.executable, "-m", "facade", "serve", "--port", str(free_port())]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        assert "waiting for up to 600 s" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read().splitlines() == ["leaseway: stopping (again to kill)", "leaseway: stopped"]
    assert process.returncode == 0


def test_a_worker_that_loses_kafka_before_it_serves_says_why_without_a_traceback(stack: Services) -> None:
    with silent_kafka(int(stack.bootstrap.rpartition(":")[2])) as port:
        status, said = serve_output(
            {"LEASEWAY_KAFKA_BOOTSTRAP": f"127.0.0.1:{port}", "LEASEWAY_REDIS_URL": stack.redis_url}
        )

    assert status == 2
    assert "Traceback" not in said
    assert "the facade can't start: " in said
    assert "facade worker 0 ended at once with status 3" in said.splitlines()[-1]


@contextlib.contextmanager
def forwarded(port: int, target: int) -> Iterator[None]:
    """What connects to `port` of 127.0.0.1 reaches `target`."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    with served(port, forward):
        yield


@contextlib.contextmanager
def silent_kafka(target: int) -> Iterator[int]:
    """A port where the broker at `target` answers the first request of a connection, its versions,
    and no other.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", target)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            for source, sink in ((reader, there[1]), (there[0], writer)):
                size = await source.readexactly(4)
                sink.write(size + await source.readexactly(struct.unpack(">i", size)[0]))
            await reader.read()
        there[1].close()
        writer.close()

    with served(port := free_port(), answer):
        yield port


@contextlib.contextmanager
def served(
    port: int, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> Iterator[None]:
    """A TCP server in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(answer, "127.0.0.1", port), loop).result(10)

    async def end() -> None:
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def fake_java(folder: Path, fails: int) -> Path:
    """A java that fails `fails` times when asked to run a jar; each run leaves a line in runs."""
    (folder / "bin").mkdir()
    file = folder / "bin" / "java"
    version = "echo 'openjdk version \"17.0.1\"' >&2; exit 0"
    count = f'echo run >> "{folder}/runs"; [ $(wc -l < "{folder}/runs") -gt {fails} ]'
    file.write_text(f'#!/bin/sh\n[ "$1" = -version ] && {{ {version}; }}\n{count}\n')
    file.chmod(0o755)
    return folder / "runs"


@pytest.mark.parametrize("fails", [0, 1])
def test_jars_are_fetched_once_even_when_the_first_try_fails(
    fails: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = fake_java(tmp_path, fails)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("LW_JARS", str(tmp_path / "cache" / "jars"))

    fetch(lambda text: None, sums={})
    fetch(lambda text: None, sums={})

    assert len(runs.read_text().splitlines()) == fails + 1


def test_jars_that_can_not_be_fetched_are_an_error_that_names_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = fake_java(tmp_path, fails=9)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("LW_JARS", str(tmp_path / "cache" / "jars"))

    with pytest.raises(StackError, match=f"could not be fetched; Ivy's words are in {tmp_path}/cache/ivy.log"):
        fetch(lambda text: None)

    assert len(runs.read_text().splitlines()) == 2


def test_a_jar_that_is_not_what_it_was_is_refused_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Ivy has said: here it says that all is well."""
    fake_java(tmp_path, fails=0)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("LW_JARS", str(tmp_path / "cache" / "jars"))
    broker = tmp_path / "cache" / "jars" / "broker"
    broker.mkdir(parents=True)
    good, bad = broker / "good.jar", broker / "bad.jar"
    good.write_bytes(b"good")
    bad.write_bytes(b"another")
    sums = {f"broker/{jar.name}": hashlib.sha256(text).hexdigest() for jar, text in ((good, b"good"), (bad, b"bad"))}

    with pytest.raises(StackError, match=r"broker/bad\.jar is not what it was"):
        fetch(lambda text: None, sums=sums)
    assert (good.exists(), bad.exists()) == (True, False)
    with pytest.raises(StackError, match=r"these jars were not fetched: broker/bad\.jar"):
        fetch(lambda text: None, sums=sums)
    bad.write_bytes(b"bad")
    (broker / "more.jar").write_bytes(b"more")
    with pytest.raises(StackError, match=r"broker/more\.jar is not what it was: .* expected no such jar"):
        fetch(lambda text: None, sums=sums)
    fetch(lambda text: None, sums=sums)


def test_the_jars_of_this_machine_are_those_that_are_pinned() -> None:
    sums = pinned_sums()
    assert {place.partition("/")[0] for place in sums} == set(SETS)
    for name in SETS:
        if (jars_folder() / name).is_dir():
            check(jars_folder(), name, sums)
