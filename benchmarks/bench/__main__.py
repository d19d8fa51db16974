"""`make bench`: the one protocol by which rates and latencies are measured (benchmarks/README.md).

    python -m benchmarks.bench                    # beside ElasticMQ in memory, and TLS beside none
    python -m benchmarks.bench --sides leaseway,elasticmq-h2,kafka-share,rabbitmq --cells 1x8,10x32
    python -m benchmarks.bench --sides leaseway,beside,leaseway-2,beside-2 --beside FOLDER
    python -m benchmarks.bench --sides leaseway,beside --set LEASEWAY_KEPT_BYTES=0

`beside` is another checkout, or this one with other settings; it runs with the packages of this
one. Talks to 127.0.0.1 only and ends by itself. A peer that can't be had here is called absent, and
the others are measured.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.bench import plan
from benchmarks.bench.fetch import CACHE, Absent
from benchmarks.bench.generator import Generator
from benchmarks.bench.peers.elasticmq import elasticmq
from benchmarks.bench.peers.rabbitmq import rabbitmq
from benchmarks.bench.peers.share_groups import share_groups
from benchmarks.bench.protocol import Outcome, Run
from benchmarks.bench.results import page
from benchmarks.bench.sides import Server, Side, leaseway
from facade.programs.stack.processes.errors import StackError

USUAL = "leaseway,leaseway-tls,elasticmq"
PEERS: dict[str, Callable[[str], Side]] = {
    "elasticmq": elasticmq,
    "elasticmq-h2": lambda name: elasticmq(name, durable=True),
    "kafka-share": share_groups,
    "rabbitmq": rabbitmq,
}
# Leaseway: name -> workers, TLS; `beside` in place of `leaseway` is the other checkout.
OURS = {"leaseway": (1, False), "leaseway-2": (2, False), "leaseway-tls": (1, True)}


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = ", ".join([*OURS, *(name.replace("leaseway", "beside") for name in OURS), *PEERS])
    parser.add_argument("--sides", default=USUAL, help=f"of {known} (default {USUAL})")
    parser.add_argument(
        "--cells", default=",".join(plan.CELLS), help=f"of {', '.join(plan.CELLS)}, BATCHxCONNECTIONS (default all)"
    )
    parser.add_argument("--api", choices=("sqs", "native", "emq"), default="sqs", help="of Leaseway (default sqs)")
    parser.add_argument("--beside", type=Path, help="the checkout of the side `beside` (default this one)")
    parser.add_argument(
        "--set", type=_setting, action="append", default=[], help="NAME=VALUE in the environment of `beside` only"
    )
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each run sends (default 4)")
    parser.add_argument(
        "--warm-ups", type=int, default=plan.WARM_UPS, help=f"passes before (default {plan.WARM_UPS}; fewer: no result)"
    )
    parser.add_argument(
        "--json", type=Path, default=CACHE / "runs.json", help="file for every run (default .cache/bench/runs.json)"
    )
    parser.add_argument(
        "--out", type=Path, help="file for the page (default: printed only; `make bench` writes benchmarks/results.md)"
    )
    return parser.parse_args()


def _side(name: str, options: argparse.Namespace) -> Side:
    """Raises ValueError when there is no such side."""
    if name in PEERS:
        return PEERS[name](name)
    ours = name.replace("beside", "leaseway")
    if ours not in OURS:
        raise ValueError(f"{name!r} is no side")
    workers, tls = OURS[ours]
    if ours == name:
        return leaseway(name, workers=workers, tls=tls)
    return leaseway(
        name,
        workers=workers,
        tls=tls,
        checkout=options.beside and options.beside.resolve(),
        environment=dict(options.set),
    )


def _started(
    stack: contextlib.ExitStack, sides: Sequence[Side], folder: Path, notes: list[str]
) -> list[tuple[Side, Server]]:
    running = []
    for side in sides:
        own = folder / side.name
        own.mkdir()
        try:
            running.append((side, stack.enter_context(side.start(own))))
            print(f"{side.name}: {running[-1][1].endpoint}", flush=True)
        except (Absent, StackError, AssertionError, OSError) as error:
            notes.append(f"{side.name} is absent: {error}")
            print(notes[-1], flush=True)
    return running


def _measure(
    running: Sequence[tuple[Side, Server]], cells: Sequence[plan.Cell], options: argparse.Namespace
) -> list[Run]:
    generator = Generator(options.seconds, [server for _, server in running])
    for _, server in running:
        generator.warm(server, options.warm_ups)
    runs: list[Run] = []
    for turn in range(options.rounds):
        for cell in cells:
            # Who begins changes from round to round.
            for side, server in running[:: 1 if turn % 2 == 0 else -1]:
                if side.runs(cell):
                    found = generator.run(server, cell, turn)
                    runs += found
                    for run in found:
                        _say(run)
    return runs


def _say(run: Run) -> None:
    cpu = ", ".join(f"{name} {spent:.0f}" for name, spent in run.cpu_us.items() if name != "supervisor")
    said = (
        f"{run.rate:,.0f} msg/s, CPU us: {cpu}, generator {run.generator_us:.0f}; lost {run.lost}, doubled "
        f"{run.doubled}"
    )
    if run.cell.endswith("/s"):
        said += f"; ms: {', '.join(f'{name} {time:.1f}' for name, time in run.times.items())}"
    if run.by_plane is not None:
        said += f"; by the plane {run.by_plane:.1%}"
    said += f"; foreign {run.foreign:.1%}, loop {run.loop:.2f} ms"
    print(f"round {run.round + 1}: {run.cell}: {run.side}: {run.verdict and run.verdict + ': '}{said}", flush=True)


def _about(options: argparse.Namespace) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, Python {platform.python_version()}"
    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d, %H:%M UTC")
    return f"{day}: {machine}; {options.rounds} rounds of {options.seconds:g} s, {options.warm_ups} warm-ups."


def main() -> int:
    options = _options()
    try:
        sides = [_side(name, options) for name in options.sides.split(",")]
        cells = [plan.cell(name, options.api) for name in options.cells.split(",")]
    except ValueError as error:
        print(f"benchmarks.bench: {error}", file=sys.stderr)
        return 2
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="leaseway-bench-") as folder, contextlib.ExitStack() as stack:
        running = _started(stack, sides, Path(folder), notes)
        runs = _measure(running, cells, options)
    text = page(Outcome(runs), _about(options), notes)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([asdict(run) for run in runs]))
    if options.out:
        options.out.write_text(text)
    print(text)
    return 0 if runs and not any(run.lost for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
