"""A process whose clock is set goes on as if the system's had been: what waits for a while waits
for no longer, and no shorter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.set_clock import NoCompilerError, SetClock, built

# Of librdkafka, which waits until times of the clock that is set.
POLLS = """
import time
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
consumer.subscribe(["t"])
while True:
    print(time.time() - time.monotonic(), flush=True)
    input()
    began = time.monotonic()
    consumer.poll(0.3)
    print(time.monotonic() - began, flush=True)
"""


def test_what_waits_for_a_while_does_so_when_its_clock_was_set(tmp_path: Path) -> None:
    try:
        clock = SetClock(built(tmp_path), tmp_path / "clock")
    except NoCompilerError as error:
        pytest.skip(str(error))
    command, environment = (sys.executable, "-c", POLLS), {**os.environ, **clock.environment}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        shown = float(process.stdout.readline())
        for ahead_s in (300, -300, 61, 0):
            clock.step(ahead_s)
            process.stdin.write("\n")
            process.stdin.flush()
            # A process that waits for the 300 s more is ended by the test's own limit.
            assert 0.29 < float(process.stdout.readline()) < 60
            assert abs(float(process.stdout.readline()) - shown - ahead_s) < 30
        process.kill()
