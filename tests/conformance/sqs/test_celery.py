"""Celery over its SQS transport (kombu): 1,000 tasks, a tenth of them tried three times, a seventh
not before a time.
"""

from __future__ import annotations

import collections
import subprocess
import sys
import time
from pathlib import Path

from tests.clients import NotFetched, environment, fetched
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conftest import absent
from tests.services import Up

HERE = Path(__file__).parent
TASKS = 1000
RUNS = TASKS + 2 * (TASKS // 10)
SECONDS = 150


def test_a_thousand_tasks_are_done_each_as_often_as_it_asked_for(up: Up | Running, tmp_path: Path, name: str) -> None:
    try:
        folder = fetched(HERE / "celery.lock")
    except NotFetched as error:
        absent(str(error))
    log = tmp_path / "runs"
    log.touch()
    variables = {
        **environment(folder),
        "CELERY_BROKER": up.endpoint.replace("http://", "sqs://shop:secret@"),
        "CELERY_PREFIX": f"{name}-",
        "CELERY_LOG": str(log),
    }
    with shared(up, "Celery"):
        runs = _ran(variables, log, tmp_path / "worker")

    expected = {(number, tried) for number in range(TASKS) for tried in range(3 if number % 10 == 0 else 1)}
    counted = collections.Counter((number, tried) for number, tried, _ in runs)
    assert counted == dict.fromkeys(expected, 1), (tmp_path / "worker").read_text()[-3000:]
    assert max(early for _, _, early in runs) <= 0


def _ran(variables: dict[str, str], log: Path, output: Path) -> list[tuple[int, int, float]]:
    """Sends the tasks, and has a worker do them. Returns what it noted of each run."""
    sends = [sys.executable, "tasks.py", str(TASKS)]
    subprocess.run(sends, env=variables, cwd=HERE / "clients", check=True, timeout=SECONDS)
    works = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-P", "threads", "-c", "8", "-l", "WARNING"]
    with (
        output.open("wb") as stream,
        subprocess.Popen(works, env=variables, cwd=HERE / "clients", stdout=stream, stderr=stream) as worker,
    ):
        try:
            end = time.monotonic() + SECONDS
            while len(log.read_text().splitlines()) < RUNS and time.monotonic() < end and worker.poll() is None:
                time.sleep(0.2)
            time.sleep(1)  # a task done twice would come about now
        finally:
            worker.terminate()
    return [
        (int(number), int(tried), float(early))
        for number, tried, early in (line.split() for line in log.read_text().splitlines())
    ]
