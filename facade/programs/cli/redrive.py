"""`leaseway redrive`: Spark chooses dead letters by SQL and writes their addresses to files,
redrive tasks of the service move them.

A dead letter that was moved already, or settled otherwise since Spark looked, is passed over by the
task, so running it twice, or again after a failure, moves nothing twice.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facade.programs.cli import spark_jobs
from facade.programs.connect.client import Client, path_to
from facade.programs.connect.failures import UNREACHABLE, Failure
from facade.programs.connect.profiles import Connection, checked_endpoint
from facade.programs.stack.processes.errors import StackError
from schemas.vocabulary import LOG_TIME_MARGIN_MS
from spark.arguments import OUTCOMES
from spark.progress import tell

TASK_IDS = 10_000  # What one task may be given (engine/move/tasks/selection.py).
POLL_S = 0.25
PATIENCE_S = 60.0  # A service that does not answer is asked again for so long.

Say = Callable[[str], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `redrive`."""
    from spark.arguments import choice_arguments

    parser.add_argument(
        "--dry-run", action="store_true", help="say how many dead letters would be moved, and move none"
    )
    parser.add_argument(
        "--rate",
        type=int,
        default=0,
        metavar="N",
        help="at most N dead letters a second (default 0: as fast as it goes)",
    )
    parser.add_argument(
        "--endpoint", metavar="URL", help="of the service (default: of --data, else http://127.0.0.1:9400)"
    )
    parser.add_argument("--key", metavar="ID:SECRET", help="access key, when the service asks for one")
    choice_arguments(parser)


@dataclass
class Outcome:
    """What became of the dead letters that were chosen of one queue, as the tasks have counted
    them.
    """

    queue: str
    chosen: int = 0
    moved: int = 0
    failed: int = 0

    @property
    def others(self) -> int:
        """Dead letters that were settled when a task came to them."""
        return max(0, self.chosen - self.moved - self.failed)

    def corrected(self, moved: int) -> Outcome:
        """With what the journal says was moved: a task whose worker died has not counted its last
        moves.
        """
        return Outcome(self.queue, self.chosen, min(max(self.moved, moved), self.chosen - self.failed), self.failed)


def run(given: argparse.Namespace, say: Say) -> int:
    """0 all that was chosen is moved or was settled by others; 1 some could not be moved; 2
    refused. Raises StackError.
    """
    with contextlib.closing(Service(given.endpoint or _endpoint(given.data), given.key)) as service:
        return _run(service, given, say)


def _run(service: Service, given: argparse.Namespace, say: Say) -> int:
    since_ms = int(time.time() * 1000) - LOG_TIME_MARGIN_MS
    with tempfile.TemporaryDirectory(prefix="leaseway-redrive-") as folder:
        given = argparse.Namespace(**{**vars(given), "since_ms": since_ms, "out": Path(folder, "chosen")})
        status = spark_jobs.run("choose", given)
        if status:
            return status
        queues = sorted(path for path in given.out.glob("queue=*") if path.is_dir())
        if not queues:
            say("no dead letter at rest is chosen")
        if given.dry_run:
            for path in queues:
                say(f"{_queue_of(path)}: {sum(1 for _ in _addresses(path))} dead letters chosen, none moved: a dry run")
            return 0
        done = [_redrive(service, path, given, say) for path in queues]
        if any(outcome.others for outcome in done):
            done = _looked_up(done, given)
    for one in done:
        say(
            f"{one.queue}: {one.chosen} dead letters chosen, {one.moved} moved, {one.failed} failed, "
            f"{one.others} settled by others"
        )
    return 1 if any(outcome.failed for outcome in done) else 0


def _looked_up(done: list[Outcome], given: argparse.Namespace) -> list[Outcome]:
    """The outcomes as the journal tells them; as the tasks do when it can't be read."""
    if spark_jobs.run("outcomes", given):
        return done
    found = json.loads((given.out / OUTCOMES).read_text())
    return [outcome.corrected(found.get(outcome.queue, {}).get("moved", 0)) for outcome in done]


def _redrive(service: Service, folder: Path, given: argparse.Namespace, say: Say) -> Outcome:
    """Moves what was chosen of one queue, a task at a time, so that the rate holds."""
    done, addresses = Outcome(_queue_of(folder)), _addresses(folder)
    while ids := list(itertools.islice(addresses, TASK_IDS)):
        tell("redrive", f"{done.queue}: moving {len(ids):,} dead letters, {done.chosen:,} before")
        task = service.redrive(done.queue, ids, given.rate)
        done.chosen, done.moved, done.failed = (
            done.chosen + len(ids),
            done.moved + task["moved"],
            done.failed + task["failed"],
        )
        if task["status"] != "completed":
            say(f"{done.queue}: task {task['id']} is {task['status']} {task['failure']}".rstrip())
            done.failed += len(ids) - task["moved"] - task["failed"]
            break
    return done


def _queue_of(folder: Path) -> str:
    return folder.name.partition("=")[2]


def _addresses(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.txt")):
        with path.open(encoding="ascii") as lines:
            yield from map(str.strip, lines)


def _endpoint(data: Path | None) -> str:
    if data is None:
        return "http://127.0.0.1:9400"
    try:
        return str(json.loads((data / "run.json").read_text())["endpoint"])
    except (OSError, ValueError, KeyError):
        raise StackError(f"no `leaseway up` runs in {data} (it has no run.json)") from None


class Service:
    """The native API, as far as redrive tasks go."""

    def __init__(self, endpoint: str, key: str | None) -> None:
        key_id, _, secret = (key or "").partition(":")
        try:
            self._client = Client(Connection(endpoint=checked_endpoint(endpoint), key_id=key_id, key_secret=secret))
        except Failure as failure:
            raise StackError(str(failure)) from None

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def redrive(self, queue: str, ids: list[str], rate: int) -> dict[str, Any]:
        """Runs one task to its end; an interrupt cancels it. Raises StackError."""
        task = self._call("POST", path_to("queues", queue, "redrive"), {"ids": ids, "rate": rate})
        path = path_to("tasks", task["id"])
        try:
            while task["status"] == "running":
                time.sleep(POLL_S)
                task = self._patient(path)
        except BaseException:
            with contextlib.suppress(StackError):
                self._call("DELETE", path)
            raise
        return task

    def _patient(self, path: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._call("GET", path)
            except Unavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(1)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._client.call(method, path, body)
        except Failure as failure:
            kind = Unavailable if failure.code == UNREACHABLE else StackError
            raise kind(f"{method} {path}: {failure}") from None
        return found


class Unavailable(StackError):
    """The service does not answer, or not now."""
