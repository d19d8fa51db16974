"""Hurts a running service by a seed while clients use it, and checks all promises on the history.

    python -m tests.faults.run --seed 1 --seconds 60 --fault mix

Prints a verdict per promise; exit status 1 = one was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.faults.faults import CLOCKS, DEFAULT, FAULTS
from tests.faults.memory import Watch
from tests.faults.nemesis import Nemesis
from tests.faults.plane_share import by_plane
from tests.faults.stack import Stack
from tests.faults.workload import Workload
from tests.judge.checkers import check
from tests.judge.history import Line, Recorder, read
from tests.judge.report import printed, report
from tests.judge.story import Story
from tests.judge.verdict import Verdict

WARM_UP_S = 3.0
PAUSE_S = (1.0, 4.0)
DRAIN_S = 150.0
LIVE_WITHIN_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """What to run. `fault`: a name, `all` (each once and again, shuffled), or `mix` (at random).
    `live_s`: bound of the recovery.

    `least`: so many faults are struck, also when that takes longer than `seconds` on a full
    machine. `workers`: 1 keeps bodies to itself.
    """

    seed: int = 1
    seconds: float = 60.0
    fault: str = "mix"
    history: Path | None = None
    pending: bool = False
    pause_s: tuple[float, float] = PAUSE_S
    live_s: float = LIVE_WITHIN_S
    keep: Path | None = None
    least: int = 2
    workers: int = 2


def faults_of(order: Order, rest: random.Random) -> Iterator[str]:
    """Names without end, by the seed. Raises KeyError for a name that is none."""
    names = list(FAULTS) if order.pending else list(DEFAULT)
    if order.fault not in ("mix", "all"):
        names = [name.strip() for name in order.fault.split(",")]
    for name in names:
        FAULTS[name]
    while True:
        rest.shuffle(names)
        yield from names if order.fault == "all" else [rest.choice(names)]


def run(order: Order) -> tuple[list[Verdict], dict[str, Any]]:
    """The verdicts and the report of one run; nothing is left running or lying about, but `history`
    and `keep`.
    """
    with contextlib.ExitStack() as ends:
        folder = order.keep or Path(ends.enter_context(tempfile.TemporaryDirectory()))
        history = order.history or folder / "history.jsonl"
        found = hurt(order, folder / "data", history)
        story = Story(read(history))
    verdicts = check(story, order.live_s)
    return verdicts, {**report(story, verdicts), **found, "seed": order.seed, "fault": order.fault}


def hurt(order: Order, data: Path, history: Path) -> dict[str, Any]:
    """Runs the service, its clients and the faults; what the history does not tell."""
    rest = random.Random(order.seed)
    recorder = Recorder(history)
    recorder.write(Line("note", time.monotonic_ns(), verb="run", args={"workers": order.workers}))
    clocks = any(name.strip() in CLOCKS for name in order.fault.split(","))
    stack = Stack(data, order.workers, clocks=clocks)
    try:
        stack.start()
        workload = Workload(recorder, stack.endpoint, rest, brief=clocks)
        workload.create()
        watch = Watch(lambda: {name: child.pid for name, child in stack.parts.items()})
        workload.start()
        time.sleep(WARM_UP_S)
        nemesis = Nemesis(stack, recorder, rest)
        end = time.monotonic() + order.seconds - WARM_UP_S
        for name in faults_of(order, rest):
            over = time.monotonic() >= end - order.pause_s[0]
            if over and len(nemesis.done) >= order.least:
                break
            time.sleep(rest.uniform(*order.pause_s))
            nemesis.strike(name, FAULTS[name])
        works = workload.wait_works(order.live_s)
        memory = watch.stop(min(300.0, order.seconds / 4))
        drained = workload.drain(DRAIN_S)
        workload.looks()
        if workload.errors:
            raise workload.errors[0]
        return {
            "struck": nemesis.done,
            "works": works,
            "drained": drained,
            "memory": memory,
            "crashes": stack.crashes,
            # Of several workers, the most that a few connections find.
            "by_plane": max(by_plane(stack.endpoint) for _ in range(10)),
        }
    finally:
        recorder.close()
        stack.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--fault", default="mix", help="mix (default), all, or names with commas: " + ", ".join(FAULTS))
    parser.add_argument(
        "--workers", type=int, default=2, help="facade workers; one alone keeps the bodies of what it sends"
    )
    parser.add_argument(
        "--soak", type=float, metavar="MINUTES", help="so long instead of --seconds, with a fault every 20-60 s"
    )
    parser.add_argument("--history", type=Path, help="keep the history in this file")
    parser.add_argument("--report", type=Path, help="write the report to this file")
    parser.add_argument("--keep", type=Path, help="keep data and logs in this new folder")
    parser.add_argument("--pending", action="store_true", help="with the faults that are not noticed yet")
    given = parser.parse_args()
    order = Order(
        given.seed, given.seconds, given.fault, given.history, given.pending, keep=given.keep, workers=given.workers
    )
    if given.keep:
        given.keep.mkdir(parents=True)
    if given.soak:
        order = dataclasses.replace(order, seconds=given.soak * 60, pause_s=(20.0, 60.0))
    _, told = run(order)
    print(printed(told, ("seed", "fault", "struck", "works", "drained", "by_plane")))
    if given.report:
        given.report.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=2))
    if given.soak:
        for part, row in told["memory"].items():
            print(
                f"{part}: {row['first_mb']:.0f} to {row['last_mb']:.0f} MiB, {row['mb_per_hour']:+.1f} MiB/h "
                f"over {row['seconds']:.0f} s"
            )
    for text in told["crashes"]:
        print(f"CRASH  {text}")
    return 0 if told["held"] and not told["crashes"] else 1


if __name__ == "__main__":
    sys.exit(main())
