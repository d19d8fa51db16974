"""How throughput grows with workers while there are cores for them: each worker is held to a share
of a core, so that two cores are enough.

    .venv/bin/python -m benchmarks.workers [--share 0.2] [--most 3] [--rounds 3]

Starts one `leaseway up` for each number of workers, and loads them in turn. Talks to 127.0.0.1
only; ends by itself. Needs Linux, cgroup v1 (`/sys/fs/cgroup/cpu`) and root.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench.fetch import load_generator
from benchmarks.bench.generator import Generator
from benchmarks.bench.plan import Cell
from benchmarks.bench.servers import Peer, Server, leaseway

GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 10_000
CELLS = (Cell("pipeline", 1, 32), Cell("pipeline", 10, 32))


@contextlib.contextmanager
def held(server: Server, share: float) -> Iterator[None]:
    """Each worker may use `share` of a core, in periods of 10 ms, until the end. Raises OSError
    where it can't be.
    """
    groups: list[Path] = []
    try:
        for name, pid in server.pids:
            if name == "worker":
                group = GROUPS / f"leaseway-{pid}"
                group.mkdir()
                groups.append(group)
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(round(PERIOD_US * share)))
                (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for group in groups:
            for left in (group / "cgroup.procs").read_text().split():
                (GROUPS / "cgroup.procs").write_text(left)
            group.rmdir()


def measure(most: int, share: float, rounds: int, seconds: float) -> dict[tuple[str, int], list[float]]:
    """Messages a second: (cell, workers) -> one for each round. Raises RuntimeError when a run has
    a fault.
    """
    generator = Generator(load_generator(), seconds, 0)
    rates: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="leaseway-workers-") as folder, contextlib.ExitStack() as stack:
        running: list[tuple[int, Peer, Server]] = []
        for count in range(1, most + 1):
            peer = Peer(f"leaseway-{count}", leaseway(count), (400 * count, 1500 * count))
            own = Path(folder) / peer.name
            own.mkdir()
            server = stack.enter_context(peer.start(own))
            stack.enter_context(held(server, share))
            generator.warm(peer, server)
            running.append((count, peer, server))
        for turn in range(rounds):
            for cell in CELLS:
                for count, peer, server in running[:: 1 if turn % 2 == 0 else -1]:
                    sample = generator.run(peer, server, cell)
                    if sample.fault:
                        raise RuntimeError(f"{cell.name} with {count} workers: {sample.fault}")
                    rates.setdefault((cell.name, count), []).append(sample.rate)
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.2, help="of a core, for each worker (default 0.2)")
    parser.add_argument("--most", type=int, default=3, help="workers (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default 3)")
    parser.add_argument("--seconds", type=float, default=6.0, help="about how long each run is (default 6)")
    options = parser.parse_args()
    if not GROUPS.is_dir():
        print(f"benchmarks.workers: {GROUPS} is not there", file=sys.stderr)
        return 1
    rates = measure(options.most, options.share, options.rounds, options.seconds)
    for (cell, count), seen in rates.items():
        ratio = statistics.median(mine / one for mine, one in zip(seen, rates[cell, 1], strict=True))
        print(f"{cell}: {count} workers, {options.share:g} of a core each: {statistics.median(seen):,.0f} msg/s, {ratio:.2f}x of one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
