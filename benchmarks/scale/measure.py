"""Goes through the steps of one dimension on a service of its own, and reads what each round
cost.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from redis import RedisError

from benchmarks.scale import load
from benchmarks.scale.dimensions import Dimension, Stand
from benchmarks.scale.fill import Unreachable, make_queues
from benchmarks.scale.meter import Meter
from benchmarks.scale.readings import CPU_ALL, RATE, Reading, Row, median
from benchmarks.scale.wire import Broken
from tests.services import Up

START_S = 120.0
FULL, SMALL = "full", "small"


@dataclass(frozen=True)
class Rounds:
    """How long is measured, in seconds: `first` warms a service that was just started (its JVM most
    of all), `warm` each step.
    """

    count: int
    seconds: float
    first: float
    warm: float


# A round is as long as the longest interval at which a worker does what messages do not ask for
# (engine/journal/snapshots.py: 10 s).
ROUNDS = {FULL: Rounds(3, 10.0, 15.0, 3.0), SMALL: Rounds(1, 2.0, 2.0, 1.0)}


def measured(dimension: Dimension, size: str) -> list[Row]:
    """The rows of a dimension, and a line on the screen for each; a step that can't be reached is
    the last and says why.
    """
    rounds, rows = ROUNDS[size], list[Row]()
    with tempfile.TemporaryDirectory(prefix="leaseway-scale-") as folder:
        up = Up(Path(folder) / "data", "--workers", "1")
        try:
            up.wait_ready(START_S)
            with contextlib.closing(Meter(up)) as meter:
                _warm(up, rounds.first)
                stand = Stand(up)
                for step in dimension.full if size == FULL else dimension.small:
                    found = _step(up, meter, dimension, stand, step, rounds)
                    rows += found
                    if any(not row.rounds for row in found):
                        break
        finally:
            up.close()
    return rows


def _warm(up: Up, seconds: float) -> None:
    make_queues(up.endpoint, ["warm"])
    load.run(up.port, load.Load(("warm",)), seconds)


def _step(up: Up, meter: Meter, dimension: Dimension, stand: Stand, step: int, rounds: Rounds) -> list[Row]:
    rows: list[Row] = []
    try:
        loads = dimension.prepare(stand, step)
        meter.settle()
        for one in loads:
            series = f"{dimension.name}, {one.name}" if one.name else dimension.name
            rows.append(_loaded(up, meter, one, series, step, rounds))
            _say(rows[-1])
    except (Unreachable, Broken, OSError, RedisError) as error:
        rows.append(Row(dimension.name, step, [], f"not measured: {error}"))
        _say(rows[-1])
    return rows


def _loaded(up: Up, meter: Meter, one: load.Load, series: str, step: int, rounds: Rounds) -> Row:
    load.run(up.port, one, rounds.warm, everywhere=True)
    readings, texts = [], list[str]()
    for _ in range(rounds.count):
        before = meter.look()
        tally = load.run(up.port, one, rounds.seconds)
        after = meter.look()
        texts += tally.texts
        cpu = {name: after.cpu[name] - before.cpu[name] for name in after.cpu}
        commands = after.commands - before.commands
        readings.append(Reading(tally.acked, after.at - before.at, cpu, commands, meter.redis_bytes(), tally.refused))
    refused = sum(reading.refused for reading in readings)
    return Row(series, step, readings, f"{refused} answers were no 200: {texts[0]}" if refused else "")


def _say(row: Row) -> None:
    rate, cpu = median(row, RATE), median(row, CPU_ALL)
    figures = f"{rate:,.0f} msg/s, {cpu:.3f} CPU ms a message" if rate is not None and cpu is not None else ""
    print(f"{row.series} {row.step:,}: {'; '.join(part for part in (figures, row.note) if part)}", flush=True)
