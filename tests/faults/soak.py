"""Random faults on a running service while traffic goes on, by seed; then: was anything lost, forgotten, delivered to two at once?

    python -m tests.faults.soak --seconds 180 --seed 1

The beginning of the harness of issue 4: faults are kill -9 and SIGSTOP of each part and an emptied Redis.
Exit status 1 = a promise was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import redis

from tests.acceptance.traffic import Client, Traffic
from tests.services import Up

LEASE_S = 6
PAUSE_S = 4.0
# So long a stopped Kafka or a lost owner may keep the journal behind.
HELD_UP_S = 8.0


def pid_of(up: Up, part: str, rest: random.Random) -> int:
    run = up.run
    return int(rest.choice(run["facades"])["pid"] if part == "facade" else run[part]["pid"])


def kill(part: str) -> Callable[[Up, random.Random], None]:
    def fault(up: Up, rest: random.Random) -> None:
        os.kill(pid_of(up, part, rest), signal.SIGKILL)

    return fault


def stop(part: str, seconds: float) -> Callable[[Up, random.Random], None]:
    def fault(up: Up, rest: random.Random) -> None:
        pid = pid_of(up, part, rest)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)

    return fault


def wipe(up: Up, rest: random.Random) -> None:
    with contextlib.closing(redis.Redis.from_url(up.run["redis"]["url"])) as client:
        client.flushall()


FAULTS: dict[str, Callable[[Up, random.Random], None]] = {
    "kill facade": kill("facade"),
    "kill redis": kill("redis"),
    "kill kafka": kill("kafka"),
    "stop facade 2 s": stop("facade", 2),
    "stop redis 2 s": stop("redis", 2),
    "stop kafka 2 s": stop("kafka", 2),
    "wipe redis": wipe,
}


def hurt(up: Up, rest: random.Random, seconds: float) -> tuple[Counter[str], list[tuple[str, float]]]:
    """Faults in random order until the time is over; how many of each, and when each began."""
    done: Counter[str] = Counter()
    moments: list[tuple[str, float]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(rest.uniform(1, PAUSE_S))
        name = rest.choice(list(FAULTS))
        moments.append((name, time.monotonic()))
        try:
            FAULTS[name](up, rest)
            done[name] += 1
        except (OSError, ValueError, KeyError, redis.RedisError) as error:
            print(f"{name}: not done, the part is away ({error!r})")
    return done, moments


class Blame(NamedTuple):
    """Wipes while the journal was current, which may cost acks of their last second; and faults that hold the journal up before a wipe."""

    wipes: list[float]
    excuses: list[float]


def alone(moments: list[tuple[str, float]]) -> Blame:
    """A wipe soon after a fault of Kafka or of the owner loses what could not be drained meanwhile: promised to nobody."""
    wipes: list[float] = []
    excuses: list[float] = []
    for name, at in moments:
        if name == "wipe redis":
            held_up = any(other != name and 0 < at - before < HELD_UP_S for other, before in moments)
            (excuses if held_up else wipes).append(at)
    return Blame(wipes, excuses)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rest = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder), "--workers", "2")
        try:
            up.wait_ready()
            with contextlib.closing(Client(up.endpoint)) as client:
                assert client.call("POST", "/v1/queues", {"name": "soak"})[0] == 201
            traffic = Traffic(up.endpoint, "soak", lease_s=LEASE_S)
            traffic.start(senders=2, receivers=3)
            done, moments = hurt(up, rest, options.seconds)
            time.sleep(10)
            healed = time.monotonic()
            traffic.stop(quiet_s=LEASE_S + 4, within_s=120)
            with contextlib.closing(Client(up.endpoint)) as client:
                tag = client.call("GET", "/v1/queues/soak")[1]["tags"][0]
        finally:
            up.close()
    guilty = alone(moments)
    forgotten = [row for row in traffic.again_after_ack if all(not row[1] - 0.5 < m < row[2] for m in guilty.excuses)]
    forgotten = [row for row in forgotten if not any(row[1] - 0.5 < wipe < row[1] + 1.0 for wipe in guilty.wipes)]
    report = {
        "seed": options.seed,
        "faults": dict(done),
        "sends_answered": len(traffic.acked_sends),
        "lost": len(traffic.lost()),
        "delivered_again_after_an_ack": len(traffic.again_after_ack),
        "acks_forgotten": len(forgotten),
        "left_at_rest": {key: tag[key] for key in ("ready", "delayed", "leased", "stored")},
        "back_after_the_last_fault_s": round(traffic.back_after(moments[-1][1]), 1) if moments else None,
        "statuses": {str(status): count for status, count in traffic.statuses.items()},
        "healthy_at_the_end": any(moment > healed - 5 for moment in traffic.receive_times),
    }
    print(json.dumps(report, indent=2))
    if forgotten:
        start = moments[0][1]
        print("faults:", ", ".join(f"{name} at {at - start:.1f}" for name, at in moments))
        for body, acked_at, again_at in forgotten[:: max(1, len(forgotten) // 8)]:
            print(f"forgotten: {body} acked at {acked_at - start:.2f}, again at {again_at - start:.2f}, counts {traffic.counts[body]}")
    broken = report["lost"] or report["acks_forgotten"] or any(report["left_at_rest"].values()) or not report["healthy_at_the_end"]
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
