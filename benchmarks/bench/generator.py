"""Runs a generator for one cell against one side, and makes a `Run` of what it reports and what
/proc says of the time between its two words, "begin" and "end".
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from benchmarks.bench.plan import PIPELINES, WARM_UP_S, WARM_UPS, Cell
from benchmarks.bench.processes import Mark, loop_ms, mark, peak_mib
from benchmarks.bench.protocol import Run
from benchmarks.bench.sides import Server

LIMIT_S = 90.0
GENERATOR, BENCH, IDLE = "generator", "bench", "idle sides"
WORKER = "worker"


class Generator:
    """Loads the running sides, one at a time. What the idle ones use meanwhile is nobody's fault:
    it is not foreign.
    """

    def __init__(self, seconds: float, servers: Sequence[Server]) -> None:
        self._seconds, self._servers = seconds, servers

    def warm(self, server: Server, times: int = WARM_UPS) -> None:
        """Runs the four pipelines so many times, and prints the last rates."""
        runs: list[Run] = []
        for turn in range(times):
            runs = [self._once(server, cell, turn, WARM_UP_S) for cell in PIPELINES]
        said = ", ".join(f"{run.cell} {run.rate:,.0f}{run.fault and ' (' + run.fault + ')'}" for run in runs)
        print(f"warm: {server.name}: {said}", flush=True)

    def run(self, server: Server, cell: Cell, turn: int) -> list[Run]:
        """Runs a cell; once more when that run was void. Returns both: none is hidden."""
        runs = [self._once(server, cell, turn, self._seconds)]
        if runs[0].verdict.startswith("void"):
            runs.append(self._once(server, cell, turn, self._seconds))
        return runs

    def _once(self, server: Server, cell: Cell, turn: int, seconds: float) -> Run:
        server.trouble()
        before, ways = loop_ms(), server.ways()
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "report.json"
            command = [*server.generator, *_options(server, cell, seconds), "-json", str(out)]
            used, status, said = self._timed(server, command)
            report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        loops = (before, loop_ms())
        if not report or used is None:
            return Run(
                server.name, cell.name, turn, loops=loops, fault=f"no report (status {status}): {said.strip()[-200:]}"
            )
        found = _run(server, cell, turn, report, used, loops, server.trouble())
        return replace(found, by_plane=server.ways().share_since(ways))

    def _timed(self, server: Server, command: Sequence[str]) -> tuple[Mark | None, int, str]:
        """Returns what was used between its two words, the status, and its last words."""
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdin and process.stdout
        idle = [pid for other in self._servers if other is not server for _, pid in other.pids]
        roots: dict[str, list[int]] = {GENERATOR: [process.pid], BENCH: [os.getpid()], IDLE: idle}
        for name, pid in server.pids:
            roots.setdefault(name, []).append(pid)
        end = threading.Timer(LIMIT_S, process.kill)
        end.start()
        try:
            marks: list[Mark] = []
            said: list[str] = []
            for line in process.stdout:
                if line.strip() in ("begin", "end"):
                    marks.append(mark(roots))
                    _answer(process.stdin)
                else:
                    said.append(line)
            status = process.wait()
        finally:
            end.cancel()
        return (marks[1].since(marks[0]) if len(marks) == 2 else None), status, "".join(said)


def _answer(stdin: IO[str]) -> None:
    stdin.write("\n")
    stdin.flush()


def _options(server: Server, cell: Cell, seconds: float) -> list[str]:
    options = [
        "-held",
        "-endpoint",
        server.endpoint,
        "-api",
        server.api or cell.api,
        "-queue",
        f"bench-{cell.kind}",
        "-batch",
        str(cell.batch),
    ]
    options += [
        "-producers",
        str(cell.each),
        "-consumers",
        str(cell.each),
        "-body",
        str(cell.body),
        "-seconds",
        f"{seconds:g}",
    ]
    for name, value, usual in (
        ("rate", cell.rate, 0),
        ("queues", cell.queues, 1),
        ("tags", cell.tags, 1),
        ("fifo", cell.groups, 0),
    ):
        if value != usual:
            options += [f"-{name}", str(value)]
    if server.key:
        options += ["-key", server.key[0], "-secret", server.key[1]]
    return options


def _run(
    server: Server, cell: Cell, turn: int, report: dict[str, Any], used: Mark, loops: tuple[float, float], trouble: str
) -> Run:
    book, messages = report["book"], max(1, report["messages"])
    fault = f"its log: {trouble}" if trouble else ""
    if report["call_errors"] or report["timed_out"]:
        fault = f"{report['call_errors']} errors {(report.get('error_texts') or ['cut off'])[0][:160]}"
    wrong = {name: book[name] for name in ("out_of_order", "corrupt") if book[name]}
    return Run(
        server.name,
        cell.name,
        turn,
        rate=report["msgs_per_s"],
        foreign=used.foreign(),
        loops=loops,
        lost=book["lost"],
        doubled=book["duplicated_after_delete"] + book["duplicated_before_delete"],
        fault=", ".join(f"{count} {name}" for name, count in wrong.items()) or fault,
        cpu_us={name: used.by_name[name] * 1e6 / messages for name in dict(server.pids)},
        threads_us={name: spent * 1e6 / messages for name, spent in used.by_thread.get(WORKER, {}).items()},
        generator_us=used.by_name[GENERATOR] * 1e6 / messages,
        times={name: report["end_to_end"][f"{name}_ms"] for name in ("p50", "p99", "p99_9", "max")}
        if report.get("end_to_end")
        else {},
        peak_mib=peak_mib({name: [pid] for name, pid in server.pids}),
    )
