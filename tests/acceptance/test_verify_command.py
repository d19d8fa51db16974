"""`leaseway rebuild` under traffic loses nothing, and `leaseway verify` says what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import redis

from tests.acceptance.traffic import Client, Traffic
from tests.conftest import StartUp


def leaseway(*arguments: str) -> tuple[int, str]:
    """Runs the command; (exit status, what it said)."""
    done = subprocess.run(
        [sys.executable, "-m", "facade", *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_rebuild_while_traffic_runs_loses_nothing(leaseway_up: StartUp) -> None:
    up = leaseway_up("--workers", "2")
    up.wait_ready()
    client, data = Client(up.endpoint), ("--data", str(up.data))
    assert client.call("POST", "/v1/queues", {"name": "q", "lease_seconds": 5})[0] == 201
    traffic = Traffic(up.endpoint, "q", lease_s=2)
    traffic.start()
    time.sleep(1)
    status, said = leaseway("rebuild", "--queue", "q", *data)
    assert status == 0 and "rebuilt 1 queue(s), 4 partition(s)" in said, said
    status, said = leaseway("verify", *data)
    assert status == 0 and "no difference(s)" in said, said
    traffic.stop(quiet_s=3)
    assert traffic.lost() == set() and len(traffic.acked_sends) > 100
    # Everything that was drained is kept, and seizing loses no entry: what was acked stays acked.
    assert traffic.again_after_ack == []
    url = up.run["redis"]["url"]
    with redis.Redis.from_url(url) as server:
        (key, *_) = server.keys("*:visible:0") or server.keys("*:meta")
        server.hincrby(key.decode().replace("visible:0", "meta"), "c:0", 1)
    status, said = leaseway("verify", "--json", *data)
    assert status == 1 and json.loads(said)["differences"][0]["queue"] == "q", said
    assert leaseway("verify", "--queue", "none", *data)[0] == 2
    client.close()
