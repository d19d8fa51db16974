"""`make bench`: Leaseway beside its peers and the raw substrate; writes benchmarks/results.md and
results.svg.

    .venv/bin/python -m benchmarks.bench [--rounds 3] [--peers leaseway-1,elasticmq]
                                         [--modes pipeline,latency] [--seconds 4]

Starts every peer once, warms it up, then goes through the cells in rounds, the peers in turn within
each cell. Talks to 127.0.0.1 only and ends by itself. What can't be had here (no Go, a registry
that does not answer) is said, and the rest is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.bench import substrate
from benchmarks.bench.chart import svg
from benchmarks.bench.fetch import CACHE, Absent, load_generator
from benchmarks.bench.generator import Generator
from benchmarks.bench.outcome import Outcome
from benchmarks.bench.plan import MODES, cells
from benchmarks.bench.results import page
from benchmarks.bench.servers import PEERS, Peer, Server
from facade.stack.processes.errors import StackError
from schemas.client_properties import for_librdkafka, parse

HERE = Path(__file__).parent.parent


def _words(known: tuple[str, ...]) -> type:
    def read(text: str) -> tuple[str, ...]:
        words = tuple(text.split(","))
        if unknown := set(words) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
        return words

    return read  # type: ignore[return-value]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default 3)")
    parser.add_argument("--peers", type=_words(tuple(PEERS)), default=tuple(PEERS), help=f"of {','.join(PEERS)}")
    parser.add_argument(
        "--modes", type=_words((*MODES, "substrate")), default=(*MODES, "substrate"), help=f"of {','.join(MODES)},substrate"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="about how long each run is loaded (default 4)")
    parser.add_argument("--max-other", type=float, default=0.0, help="repeat a run when other programs took this share of the machine")
    parser.add_argument("--goaws", help="path of a goaws binary (else GOAWS, else PATH)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of results.md and results.svg (default benchmarks/)")
    return parser.parse_args()


def _started(stack: contextlib.ExitStack, names: tuple[str, ...], folder: Path, notes: list[str]) -> list[tuple[Peer, Server]]:
    running = []
    for name in names:
        own = folder / name
        own.mkdir()
        try:
            running.append((PEERS[name], stack.enter_context(PEERS[name].start(own))))
            print(f"{name}: {running[-1][1].endpoint}", flush=True)
        except (Absent, StackError, AssertionError, OSError) as error:
            notes.append(f"{name} is absent. {error}")
            print(notes[-1], flush=True)
    return running


def _measure(options: argparse.Namespace, generator: Generator, running: list[tuple[Peer, Server]]) -> list[dict[str, float]]:
    for peer, server in running:
        print(f"warming {peer.name}", flush=True)
        print(f"warm after {generator.warm(peer, server)} runs", flush=True)
    below: list[dict[str, float]] = []
    for turn in range(options.rounds):
        for cell in cells(options.modes):
            for peer, server in running:
                if cell.api == "native" and not peer.native:
                    continue
                sample = generator.run(peer, server, cell)
                said = sample.fault or f"{sample.rate:,.0f} msg/s, {sample.phase['server_cpu_s_per_1000']:.3f} CPU s/1000"
                print(f"round {turn + 1}: {cell.name}: {peer.name}: {said}", flush=True)
        if "substrate" in options.modes:
            below += _below(running)
    return below


def _below(running: list[tuple[Peer, Server]]) -> list[dict[str, float]]:
    """The substrate of the first Leaseway that runs, idle meanwhile."""
    for _, server in running:
        if server.data is not None:
            run = json.loads((server.data / "run.json").read_text())
            properties = parse(Path(run["kafka"]["config"]).read_text().splitlines())
            options = {"bootstrap.servers": run["kafka"]["service"], **for_librdkafka(properties)}
            return [{**substrate.kafka(options), **substrate.redis(run["redis"]["url"])}]
    return []


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[2]
    cores = f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB"
    return f"{cores}, Python {platform.python_version()}; load average {load:.1f} at the end."


def main() -> int:
    options = _options()
    if options.goaws:
        os.environ["GOAWS"] = options.goaws
    try:
        binary = load_generator()
    except Absent as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 1
    notes: list[str] = []
    generator = Generator(binary, options.seconds, options.max_other)
    with tempfile.TemporaryDirectory(prefix="leaseway-bench-") as folder, contextlib.ExitStack() as stack:
        running = _started(stack, options.peers, Path(folder), notes)
        below = _measure(options, generator, running)
    outcome = Outcome(_machine(), options.rounds, generator.samples, below, notes)
    (CACHE / "samples.json").write_text(json.dumps([{**asdict(sample), "cell": asdict(sample.cell)} for sample in generator.samples]))
    (options.out / "results.md").write_text(page(outcome))
    (options.out / "results.svg").write_text(svg(outcome))
    print(f"written: {options.out / 'results.md'}, {options.out / 'results.svg'}; every sample in {CACHE / 'samples.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
