"""Whether a program that is being started gets on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from facade.programs.stack.processes import progress
from facade.programs.stack.processes.progress import Progress, cpu_s


class Machine:
    now = 100.0
    used: float | None = 5.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr("facade.programs.stack.processes.progress.time.monotonic", lambda: machine.now)
    monkeypatch.setattr(progress, "cpu_s", lambda pid: machine.used)
    return machine


def test_a_program_that_does_nothing_for_its_time_is_stalled(machine: Machine, tmp_path: Path) -> None:
    watched = Progress(1, [tmp_path / "not made yet"], 60)
    machine.now += 59
    assert not watched.is_stalled()
    machine.now += 2
    assert watched.is_stalled()


def test_a_program_that_writes_gets_on(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "log"
    watched = Progress(1, [log], 60)
    for _ in range(10):
        machine.now += 50
        with log.open("a") as file:
            file.write("x")
        assert not watched.is_stalled()


def test_a_program_that_computes_gets_on_and_one_that_hardly_does_not(machine: Machine) -> None:
    watched = Progress(1, [], 60)
    for _ in range(10):
        machine.now += 50
        machine.used = (machine.used or 0) + 1.5
        assert not watched.is_stalled()
    for _ in range(2):
        machine.now += 50
        machine.used = (machine.used or 0) + 0.01
    assert watched.is_stalled()


def test_where_the_system_says_nothing_no_program_is_stalled(machine: Machine) -> None:
    machine.used = None
    watched = Progress(1, [], 60)
    machine.now += 1_000
    assert not watched.is_stalled()


def test_the_time_of_a_process_is_read() -> None:
    before = cpu_s(os.getpid())
    if before is None:
        pytest.skip("the system does not tell of processors")
    assert before > 0
    assert cpu_s(2**22 + 7) is None, "there is no such process"
