"""EMQ's pipeline in batches beside that of Amazon SQS, on one service: pairs of runs of the same
load generator, one right after the other, in turns which is first.

    python -m benchmarks.emq [--pairs N] [--messages N] [--batch N] [--each N]

Starts its own `leaseway up` with one worker in a temporary folder; talks to 127.0.0.1 only; ends by
itself. A run sends messages of 1 KiB, receives and deletes them, all at once. What counts is the
median of the pairs' ratios (`rates` in messages a second): other programs disturb both runs of a
pair alike, if they go on for as long. `cpu` is the same of the CPU that the worker spent for a
message, which they disturb less; `other` is what the rest of the machine spent meanwhile (s).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.bench.fetch import load_generator
from tests.services import Up

APIS = ("sqs", "emq")


def one_run(binary: Path, up: Up, api: str, messages: int, options: argparse.Namespace) -> dict[str, Any]:
    """What the generator reports of a run. Raises CalledProcessError when messages were lost or
    calls failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        each = str(options.each)
        subprocess.run(
            [str(binary), "-endpoint", up.endpoint, "-api", api, "-mode", "pipeline", "-batch", str(options.batch), "-producers", each,
             "-consumers", each, "-body", "1024", "-messages", str(messages), "-warmup", "0", "-timeout", "120s", "-queue", f"bench-{api}",
             "-pids", f"worker={up.run['facades'][0]['pid']}", "-json", str(out)],
            check=True, capture_output=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(out.read_text())["pipeline"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--messages", type=int, default=20_000, help="of a run")
    parser.add_argument("--batch", type=int, default=10, help="messages of a request, 2 to 10")
    parser.add_argument("--each", type=int, default=8, help="connections of senders, and as many of receivers")
    options = parser.parse_args()
    binary = load_generator()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder) / "data")
        try:
            up.wait_ready(180)
            for api in APIS:
                one_run(binary, up, api, options.messages // 2, options)
            ratios, costs = [], []
            for pair in range(options.pairs):
                order = APIS if pair % 2 else APIS[::-1]
                runs = {api: one_run(binary, up, api, options.messages, options) for api in order}
                rates = {api: runs[api]["msgs_per_s"] for api in APIS}
                ratios.append(rates["emq"] / rates["sqs"])
                costs.append(runs["emq"]["server_cpu_s_per_1000"] / runs["sqs"]["server_cpu_s_per_1000"])
                other = [runs[api]["other_cpu_s"] for api in APIS]
                print(json.dumps({"rates": rates, "ratio": round(ratios[-1], 3), "cpu": round(costs[-1], 3), "other": other}), flush=True)
        finally:
            up.close()
    found = {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios), "cpu": statistics.median(costs)}
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
