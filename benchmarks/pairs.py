"""How fast this checkout is beside another one, or beside itself with other settings, in
interleaved pairs on one machine:

    .venv/bin/python -m benchmarks.pairs --beside FOLDER [--rounds 5] [--cells 1x8,1x32,10x8,10x32]
    .venv/bin/python -m benchmarks.pairs --set LEASEWAY_KEPT_BYTES=0
    .venv/bin/python -m benchmarks.pairs --set LEASEWAY_AUTH=required
    .venv/bin/python -m benchmarks.pairs --tls

Both are started once and warmed; in each round every cell is run on both, one after the other, and
who begins changes from round to round. The other checkout runs with the packages of this one. Talks
to 127.0.0.1 only; ends by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bench.fetch import load_generator
from benchmarks.bench.generator import Generator, Sample
from benchmarks.bench.plan import Cell
from benchmarks.bench.servers import Peer, leaseway
from tests.certificates import Certificates

# What a service is made of; the supervisor does nothing while messages flow.
PARTS = ("worker", "redis", "kafka")


@dataclass
class Pairs:
    """Of one cell: messages a second, and CPU seconds of the service, and of each of its processes,
    for 1,000 messages; a pair for each round that had no fault, (here, beside).
    """

    rates: list[tuple[float, float]] = field(default_factory=list)
    costs: list[tuple[float, float]] = field(default_factory=list)
    parts: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        """How many times as fast this checkout was, round by round."""
        return [here / beside for here, beside in self.rates]

    def told(self, name: str) -> str:
        """One line of the result."""
        if not self.rates:
            return f"{name}: no round without a fault"
        ratio, cost = statistics.median(self.ratios), _median_ratio(self.costs)
        here, beside = (statistics.median(side) for side in zip(*self.rates, strict=True))
        spread = f"{min(self.ratios):.3f} to {max(self.ratios):.3f} in {len(self.rates)} rounds"
        parts = ", ".join(f"{part} {_median_ratio(pairs):.3f}x" for part, pairs in self.parts.items())
        return f"{name}: {here:,.0f} beside {beside:,.0f} msg/s, {ratio:.3f}x ({spread}); CPU of a message {cost:.3f}x: {parts}"

    def add(self, here: Sample, beside: Sample) -> None:
        """A round."""
        self.rates.append((here.rate, beside.rate))
        ours, theirs = here.cpu_by_process, beside.cpu_by_process
        self.costs.append((sum(ours.values()), sum(theirs.values())))
        for part in PARTS:
            self.parts.setdefault(part, []).append((ours[part], theirs[part]))


def _median_ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(here / beside for here, beside in pairs)


def cells(text: str, body: int, api: str) -> list[Cell]:
    """`10x8` is batches of ten with 8 senders and 8 receivers. Raises ValueError."""
    sizes = [part.partition("x") for part in text.split(",")]
    return [Cell("pipeline", int(batch), int(each), body, api) for batch, _, each in sizes]


def setting(text: str) -> tuple[str, str]:
    """NAME=VALUE. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(text)
    return name, value


def measure(here: Peer, beside: Peer, some: list[Cell], rounds: int, seconds: float) -> dict[str, Pairs]:
    """Runs all; a round in which either side had a fault is printed and does not count."""
    generator = Generator(load_generator(), seconds, 0)
    found = {cell.name: Pairs() for cell in some}
    with tempfile.TemporaryDirectory(prefix="leaseway-pairs-") as folder, contextlib.ExitStack() as stack:
        running = []
        for peer in (here, beside):
            own = Path(folder) / peer.name
            own.mkdir()
            running.append((peer, stack.enter_context(peer.start(own))))
            generator.warm(*running[-1])
        for turn in range(rounds):
            for cell in some:
                order = running[:: 1 if turn % 2 == 0 else -1]
                samples = {peer.name: generator.run(peer, server, cell) for peer, server in order}
                ours, theirs = samples[here.name], samples[beside.name]
                if ours.fault or theirs.fault:
                    print(f"round {turn + 1}: {cell.name}: here: {ours.fault or 'good'}; beside: {theirs.fault or 'good'}", flush=True)
                    continue
                found[cell.name].add(ours, theirs)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pairs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="another checkout (default: this one)")
    parser.add_argument("--set", type=setting, action="append", default=[], help="NAME=VALUE in the environment of the other side only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", default="1x8,1x32,10x8,10x32", help="BATCHxCONNECTIONS of each side")
    parser.add_argument("--body", type=int, default=1024, help="bytes of a body (default 1024)")
    parser.add_argument("--api", choices=("sqs", "native"), default="sqs")
    parser.add_argument("--seconds", type=float, default=4.0, help="about how long each run is (default 4)")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tls", action="store_true", help="the other side speaks HTTPS")
    options = parser.parse_args()
    if options.beside is None and not options.set and not options.tls:
        parser.error("nothing to compare with: give --beside, --set or --tls")
    with tempfile.TemporaryDirectory(prefix="leaseway-certificate-") as folder:
        if options.tls:
            certificate = str(Certificates(Path(folder)).server)
            options.set += [("LEASEWAY_TLS_CERT", certificate), ("LEASEWAY_TLS_KEY", certificate)]
        return _compare(options)


def _compare(options: argparse.Namespace) -> int:
    here = Peer("here", leaseway(options.workers), (1000, 5000), native=True)
    other = leaseway(options.workers, options.beside and options.beside.resolve(), dict(options.set))
    beside = Peer("beside", other, (1000, 5000), native=True)
    found = measure(here, beside, cells(options.cells, options.body, options.api), options.rounds, options.seconds)
    print(f"load average {os.getloadavg()[2]:.1f} over the last 15 minutes")
    for name, pairs in found.items():
        print(pairs.told(name))
    return 0 if all(pairs.rates for pairs in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
