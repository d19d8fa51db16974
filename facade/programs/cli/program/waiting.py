"""Waiting for a task, with a bar where somebody watches."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from facade.programs.cli.program.session import Session
from facade.programs.connect.client import path_to
from facade.programs.connect.failures import FAILED, Failure, is_passing

POLL_S: Final = 0.25
SLOWEST_S: Final = 2.0
PATIENCE_S: Final = 60.0  # a service that is away is asked again for so long
ANSWER_S: Final = 30.0  # at most, for one answer
Task = dict[str, Any]


def ended(session: Session, task: Task) -> Task:
    """The task when it has ended. `--timeout` bounds the command; the task goes on then, as it does
    when somebody interrupts. Raises Failure.
    """
    goes_on = f"task {task['id']} goes on; `leaseway task cancel {task['id']}` ends it"
    end = session.end
    pause = POLL_S
    try:
        with _bar() as draw:
            while task["status"] == "running":
                if end is not None and time.monotonic() + pause > end:
                    raise Failure(
                        f"task {task['id']} has not ended within {session.timeout_s:g} s (--timeout): "
                        f"{_so_far(task)}; {goes_on}"
                    )
                time.sleep(pause)
                pause = min(SLOWEST_S, pause * 1.2)
                task = _asked(session, task["id"], math.inf if end is None else end)
                draw(task)
    except KeyboardInterrupt:
        session.say(goes_on)
        raise
    finally:
        session.client.until(None)
    return task


def judge(task: Task) -> None:
    """Raises Failure for a task that has not done all that it should."""
    if task["status"] == "completed" and not task["failed"]:
        return
    why = f": {task['failure']}" if task["failure"] else ""
    raise Failure(f"task {task['id']} is {task['status']}{why}; {_so_far(task)}", FAILED)


def _so_far(task: Task) -> str:
    return f"moved {task['moved']}, failed {task['failed']} of {task['total']} found"


def _asked(session: Session, id: str, most: float) -> Task:
    end = min(time.monotonic() + PATIENCE_S, most)
    while True:
        session.client.until(min(time.monotonic() + ANSWER_S, most))
        try:
            found: Task = session.client.get(path_to("tasks", id))
        except Failure as failure:
            if not is_passing(failure) or time.monotonic() > end:
                raise Failure(f"task {id} was started, and may go on: {failure}", failure.code) from None
            time.sleep(1)
        else:
            return found


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Task], None]]:
    if not sys.stderr.isatty():
        yield lambda task: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("moving"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("moving", total=None)
        yield lambda task: progress.update(bar, completed=task["moved"] + task["failed"], total=task["total"] or None)
