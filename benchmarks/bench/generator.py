"""Runs the load generator for one cell against one server, and keeps what it reports.

A run takes about SECONDS whatever the server's speed: the number of messages follows the rate seen
last. Neighbours: `plan`, `servers`; `results` reads `Sample`. It must not know how a table looks.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bench.plan import Cell
from benchmarks.bench.servers import Peer, Server

DISTURBED = 5
MOST_MESSAGES = 200_000
# Warm is a server that two runs in a row have not made faster by a twentieth.
WARM_RUN_S = 5.0
MOST_WARM_RUNS = 10
GAIN = 1.05


@dataclass(frozen=True)
class Sample:
    """One run: `phase` and `report` as the generator wrote them; `fault` "" = counts."""

    peer: str
    cell: Cell
    phase: dict[str, Any]
    report: dict[str, Any]
    fault: str

    @property
    def rate(self) -> float:
        """Messages a second."""
        return float(self.phase["msgs_per_s"])

    @property
    def cpu_by_process(self) -> dict[str, float]:
        """CPU seconds of the service's processes for 1,000 messages."""
        messages: int = self.phase["messages"]
        return {name: spent * 1000 / max(1, messages) for name, spent in self.phase["server_cpu_s_by_process"].items()}


@dataclass
class Generator:
    """`seconds` a run; `max_other` = the share of the machine that other programs may take before a
    run is repeated, 0 = any.
    """

    binary: Path
    seconds: float
    max_other: float
    samples: list[Sample] = field(default_factory=list)
    _rates: dict[tuple[str, Cell], float] = field(default_factory=dict)

    def warm(self, peer: Peer, server: Server) -> int:
        """Load that is not counted, singly and in tens, until it gets no faster: a cold JVM costs
        several times more. Returns the runs.
        """
        runs = 0
        for batch in (1, 10):
            cell = Cell("pipeline", batch, 8)
            best, without_gain = 0.0, 0
            for _ in range(MOST_WARM_RUNS):
                runs += 1
                sample = self._once(peer, server, cell, self._messages(peer, cell, WARM_RUN_S))
                rate = 0.0 if sample.fault else sample.rate
                if rate:
                    self._rates[peer.name, cell] = rate
                without_gain = without_gain + 1 if rate <= best * GAIN else 0
                best = max(best, rate)
                if without_gain == 2:
                    break
        return runs

    def run(self, peer: Peer, server: Server, cell: Cell) -> Sample:
        """One counted run; made once more when other programs disturbed it."""
        messages = self._messages(peer, cell, self.seconds)
        sample = self._once(peer, server, cell, messages)
        if sample.fault == "disturbed":
            sample = self._once(peer, server, cell, messages)
        if not sample.fault and not cell.rate:
            self._rates[peer.name, cell] = sample.rate
        self.samples.append(sample)
        return sample

    def _messages(self, peer: Peer, cell: Cell, seconds: float) -> int:
        guess = float(peer.guess[cell.batch > 1])
        near = Cell("pipeline", min(cell.batch, 10), 8)
        rate = cell.rate or self._rates.get((peer.name, cell)) or self._rates.get((peer.name, near), guess)
        if cell.body > 16_384:
            rate = min(rate, 1500)
        return max(10 * cell.each, min(MOST_MESSAGES, int(rate * seconds)))

    def _once(self, peer: Peer, server: Server, cell: Cell, messages: int) -> Sample:
        server.trouble()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "report.json"
            command = [str(self.binary), "-endpoint", server.endpoint, "-api", cell.api, "-mode", cell.mode, "-batch", str(cell.batch)]
            command += ["-producers", str(cell.each), "-consumers", str(cell.each), "-body", str(cell.body)]
            command += ["-messages", str(messages), "-warmup", str(messages // 10), "-json", str(out), "-timeout", "120s"]
            command += ["-queue", f"bench-{cell.api}", "-pids", ",".join(f"{name}={pid}" for name, pid in server.pids)]
            if server.key:
                command += ["-sigv4", "-key", server.key[0], "-secret", server.key[1]]
            if cell.rate:
                command += ["-rate", str(cell.rate)]
            if self.max_other:
                command += ["-max-other", str(self.max_other)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
            report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        phase = report.get(cell.mode) or {}
        return Sample(peer.name, cell, phase, report, _fault(done.returncode, done.stderr, report, server.trouble()))


def _fault(status: int, said: str, report: dict[str, Any], trouble: str) -> str:
    if status == DISTURBED:
        return "disturbed"
    if not report:
        return f"no report: {said.strip()[-200:]}"
    if lost := report["check"]["lost"]:
        return f"{lost} messages lost"
    if status != 0:
        return f"exit {status}: {report['call_errors']} errors {(report.get('error_texts') or [''])[0][:120]}"
    return f"its log: {trouble}" if trouble else ""
