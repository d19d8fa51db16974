"""One run: a real stack, the crew, the weather, the drain, the judgement. Exit status 1 = a promise
was broken.

`--keep` keeps the book and the logs; they are kept anyway when something was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.judge.checkers import check
from tests.judge.history import read
from tests.judge.report import printed, report
from tests.judge.story import Story
from tests.outside import load as busy
from tests.outside import scripts, stage, weather
from tests.outside.actors import Actor
from tests.outside.book import Book
from tests.outside.crew import Crew, hire
from tests.services import Up

READY_WITHIN_S = 180.0
# The service is back so long after a fault, on an idle machine and on a full one.
BACK_S, BACK_LOADED_S = 20.0, 40.0
FIRST = ("seed", "script", "workers", "load", "nice", "load_average", "struck")


@dataclass(frozen=True)
class Order:
    """What was asked for."""

    seed: int = 1
    seconds: float = 180
    workers: int = 2
    load: int = 0
    nice: int = 0
    script: str = ""


def run(order: Order, folder: Path) -> dict[str, Any]:
    """The report; the book is `folder/book.jsonl`, the data of the stack `folder/data`."""
    book = Book(folder / "book.jsonl")
    began = time.monotonic()
    with busy.load(order.load, order.seconds + 900, order.nice) if order.load else contextlib.nullcontext():
        up = Up(folder / "data", "--workers", str(order.workers))
        try:
            up.wait_ready(READY_WITHIN_S)
            book.note("run", **asdict(order), load_average=busy.average())
            told = _story(up, book, order)
        finally:
            up.close()
            book.close()
            (folder / "up.log").write_text(up.text)
    story = Story(read(book.path))
    verdicts = check(story, BACK_LOADED_S if story.losses.loaded else BACK_S)
    told |= asdict(order) | {
        "took": round(time.monotonic() - began),
        "load_average": [*told["load_average"], busy.average()],
    }
    return told | report(story, verdicts)


def _story(up: Up, book: Book, order: Order) -> dict[str, Any]:
    stage.make(book, up.port)
    stage.fill_rest(book, up.port)
    crew = hire(book, up.port, up.run["kafka"]["bootstrap"], order.seed)
    hands = weather.Hands(up, book, lambda: max(probe.back_since for probe in crew.probes), crew.bell, crew.hush)
    averages = [busy.average()]
    everybody = [*crew.senders, *crew.takers, *crew.probes, *([crew.reader] if crew.reader else [])]
    try:
        for actor in everybody:
            actor.start()
        hands.wait_back(book.now())
        blow = scripts.SCRIPTS.get(order.script)
        struck = blow(hands) if blow else weather.blow(hands, order.seed, order.seconds)
        averages.append(busy.average())
    finally:
        hands.release_all()
    with contextlib.suppress(AssertionError):
        hands.wait_back(book.now())
    _end(up, book, crew)
    return {"struck": struck, "load_average": averages, "pids_at_the_end": up.run}


def _end(up: Up, book: Book, crew: Crew) -> None:
    _stop([*crew.senders, *crew.probes])
    time.sleep(3)
    _stop(crew.takers)
    redrives = [op for op in read(book.path).ops if op.line.verb == "redrive" and op.ok]
    tasks = [(op.line.queue, op.line.answer["id"]) for op in redrives]
    stage.finish_tasks(book, up.port, tasks)
    stage.wait_rest(book, up.port, 75)
    stage.drain(book, up.port)
    if crew.reader:
        _stop([crew.reader])


def _stop(actors: list[Any]) -> None:
    asked: list[Actor] = list(actors)
    for actor in asked:
        actor.ask_to_stop()
    for actor in asked:
        actor.join(90)


def main() -> int:
    """Run one order and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.outside.run", description=__doc__)
    for name, default in asdict(Order()).items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--report", type=Path, help="where the JSON report goes")
    parser.add_argument("--keep", type=Path, help="a folder for book, logs and data")
    given = vars(parser.parse_args())
    report_to, keep = given.pop("report"), given.pop("keep")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the stack on the way out
    folder = keep or Path(tempfile.mkdtemp(prefix="outside-"))
    folder.mkdir(parents=True, exist_ok=True)
    told = run(Order(**given), folder)
    if report_to:
        report_to.parent.mkdir(parents=True, exist_ok=True)
        report_to.write_text(json.dumps(told, indent=1) + "\n")
    say: Callable[[str], None] = print
    say(printed(told, FIRST))
    if told["held"] and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"book and logs: {folder}")
    return 0 if told["held"] else 1


if __name__ == "__main__":
    sys.exit(main())
