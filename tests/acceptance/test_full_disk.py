"""A disk that is really full, three times: a file system of its own under the data folder of the
real `leaseway up`.

A limit on the size of files (`test_kafka_bad_days.py`) hurts Kafka; here the supervisor's own files
can't be written either.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from facade.programs.stack.data.folder import LEAST_START_BYTES
from facade.programs.stack.data.leftovers import leftovers
from tests.acceptance.test_bad_days import make_queue, wait_for
from tests.acceptance.test_kafka_bad_days import kafka_pid, send, take_all
from tests.acceptance.traffic import Client
from tests.conftest import StartUp, absent
from tests.services import Up

SIZE_MIB = 768
BACK_S = 20.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a small file system. Only root may mount one: elsewhere the tests of a
    refused file stand for it.
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip(
            "only root may mount a small file system; tests/stack/test_refused_files.py holds the supervisor "
            "to the same"
        )
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        absent(f"no small file system can be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(file: Path) -> None:
    """Takes all the room that is left, to the last byte."""
    with file.open("wb", buffering=0) as output:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    output.write(b"x" * size)


def is_true(up: Up) -> bool:
    """run.json names the processes that run, all and no others."""
    run = up.run
    pids = {run["kafka"]["pid"], run["redis"]["pid"], *(facade["pid"] for facade in run["facades"])}
    return pids == set(leftovers(up.data.resolve()))


@pytest.fixture
def up(leaseway_up: StartUp, disk: Path) -> Up:
    started = leaseway_up(data=disk, environment={"LEASEWAY_SEND_TIMEOUT_MS": "2000"})
    started.wait_ready(120)
    return started


def test_the_stack_is_back_by_itself_three_times_after_a_full_disk(up: Up, client: Client) -> None:
    make_queue(up, "full")
    answered: list[str] = []
    ballast = up.data / "ballast"
    # On a machine so full that the first start took over ten seconds, twice that.
    bound = max(BACK_S, 2 * up.ready_s)
    for life in range(3):
        old, known = kafka_pid(up), len(up.text)
        fill(ballast)
        end = time.monotonic() + 60
        while f"is full (0 MiB are free, {LEAST_START_BYTES >> 20} MiB are the least)" not in up.text[known:]:
            assert time.monotonic() < end, up.text
            bodies = [f"{life}-{len(answered)}-{n}-" + "x" * 10_000 for n in range(5)]
            status = send(client, "full", *bodies)[0]
            assert status in (200, 503)
            if status == 200:
                answered += bodies
            time.sleep(0.1)
        os.kill(up.run["redis"]["pid"], signal.SIGKILL)
        up.wait_line(f"Redis (pid {up.run['redis']['pid']}) was ended by SIGKILL; the disk of ")
        ballast.unlink()
        room = time.monotonic()
        took = wait_for(lambda: send(client, "full", "after")[0] == 200, within_s=120) - room
        print(f"full disk {life + 1}: sends work {took:.1f} s after there is room (bound {bound:.0f} s)")
        assert took < bound
        wait_for(lambda: is_true(up), within_s=10)
        assert kafka_pid(up) != old
    got = take_all(client, "full")
    assert set(answered) <= set(got)
    assert up.stop() == 0
    assert "Traceback" not in up.text, up.text
    assert leftovers(up.data.resolve()) == []
