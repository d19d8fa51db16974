"""`leaseway serve` with a real worker, and `leaseway jars` with an Ivy that fails on order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from facade.stack.errors import StackError
from facade.stack.jars import fetch
from facade.stack.ports import free_port


def test_serve_runs_workers_on_one_port_and_stops_on_sigterm() -> None:
    port = free_port()
    environment = {**os.environ, "LW_APP": "tests.stack.tiny_app:create_app", "LEASEWAY_PORT": str(port)}
    command = [sys.executable, "-m", "facade", "serve", "--workers", "2"]

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
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


def test_serve_stops_though_nobody_reads_its_lines() -> None:
    environment = {**os.environ, "LW_APP": "tests.stack.tiny_app:create_app"}
    command = [sys.executable, "-m", "facade", "serve", "--port", str(free_port())]

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
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
def test_jars_are_fetched_once_even_when_the_first_try_fails(fails: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = fake_java(tmp_path, fails)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("LW_JARS", str(tmp_path / "cache" / "jars"))

    fetch(lambda text: None)
    fetch(lambda text: None)

    assert len(runs.read_text().splitlines()) == fails + 1


def test_jars_that_can_not_be_fetched_are_an_error_that_names_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = fake_java(tmp_path, fails=9)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("LW_JARS", str(tmp_path / "cache" / "jars"))

    with pytest.raises(StackError, match=f"could not be fetched; Ivy's words are in {tmp_path}/cache/ivy.log"):
        fetch(lambda text: None)

    assert len(runs.read_text().splitlines()) == 2
