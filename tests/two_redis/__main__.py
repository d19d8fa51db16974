"""Runs one case; ends with 1 if a promise broke.

python -m tests.two_redis --case split --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.plane_share import by_plane
from tests.two_redis.book import Client, Crowd
from tests.two_redis.cases import ALONE, CASES
from tests.two_redis.judge import Verdict, judge
from tests.two_redis.stage import Stage, on_stage

QUEUES = {"durable": {"durable_acks": True}, "plain": {}, "fifo": {"fifo": True}}
DRAIN_S = 60.0


def run(case: str, seed: int, before_s: float, split_s: float, path: Path, bootstrap: str = "") -> Verdict:
    """One run in an empty folder, with a Kafka of its own or the one at `bootstrap`."""
    rng = random.Random(f"{case}/{seed}")
    with (
        on_stage(path, bootstrap, replica=case not in ALONE) as stage,
        contextlib.closing(Client(stage.ports[0])) as client,
    ):
        for name, settings in QUEUES.items():
            status, answer = client.ask("POST", "/v1/queues", {"name": name, "partitions": 2, **settings})
            assert status in (200, 201), answer
        crowd, verdict = Crowd(stage.ports, list(QUEUES), seed), Verdict()
        crowd.start()
        time.sleep(before_s + rng.uniform(0, 1))
        load = os.getloadavg()[0]
        lives = CASES[case](stage, crowd, rng, split_s, verdict)
        time.sleep(6)
        crowd.calm()
        _drain(stage, crowd, verdict)
        crowd.end()
        for check in crowd.checks:
            check()
        load = max(load, os.getloadavg()[0])
        found = judge(crowd.book, lives, load)
        verdict.broken += found.broken
        verdict.figures.update(found.figures, **crowd.book.refused)
        verdict.figures["load"] = round(load, 1)
        verdict.figures["by_plane"] = sum(by_plane(f"127.0.0.1:{port}") for port in stage.ports)
        verdict.figures["named"] = len(stage.log("action=distrust"))
        failed = stage.log("outcome=failed") + stage.log("Traceback")
        verdict.expect(not failed, f"workers failed: {failed[:3]}")
    return verdict


def _drain(stage: Stage, crowd: Crowd, verdict: Verdict) -> None:
    """Until both workers say that nothing is left."""
    left: list[object] = []
    end = time.monotonic() + DRAIN_S
    while time.monotonic() < end:
        left = []
        for port in stage.ports:
            for name in QUEUES:
                with contextlib.closing(Client(port)) as client:
                    status, answer = client.ask("GET", f"/v1/queues/{name}")
                tags = answer["tags"] if status == 200 else [{"status": status}]
                left += [
                    (name, port, tag) for tag in tags if status != 200 or tag["ready"] or tag["leased"] or tag["stored"]
                ]
        if not left:
            return
        time.sleep(0.5)
    verdict.expect(False, f"after {DRAIN_S:.0f} s of rest: {left[:2]}")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.two_redis", description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--before", type=float, default=4.0, help="seconds of traffic before the fault")
    parser.add_argument(
        "--split", type=float, default=8.0, help="seconds for which the workers reach different servers"
    )
    parser.add_argument("--folder", type=Path, help="an empty folder, which is kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="two-redis-") as folder:
        verdict = run(given.case, given.seed, given.before, given.split, given.folder or Path(folder))
    print(json.dumps({"case": given.case, "seed": given.seed, **verdict.figures}))
    for text in verdict.broken:
        print("BROKEN", text)
    return 1 if verdict.broken else 0


if __name__ == "__main__":
    sys.exit(main())
