"""RocketMQ's own clients of Node and Go: they send, and read each field of what they receive."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.clients import NotFetched
from tests.conformance.rocketmq.conftest import Native
from tests.conftest import absent
from tests.golang import NoGo, built
from tests.node import node, with_packages

CLIENTS = Path(__file__).parent / "clients"
SECONDS = 150


def new_topics(native: Native, name: str) -> tuple[str, str]:
    native("POST", "/v1/queues", {"name": name, "partitions": 2, "max_message_bytes": 1_000_000})
    native(
        "POST",
        "/v1/queues",
        {"name": f"{name}_ordered", "fifo": True, "dedup_scope": "group", "max_message_bytes": 1_000_000},
    )
    return name, f"{name}_ordered"


def test_nodes_consumers_read_what_was_sent(native: Native, endpoints: str, name: str) -> None:
    try:
        folder, program = with_packages(CLIENTS / "rocketmq-node"), node()
    except NotFetched as error:
        absent(str(error))
    topic, ordered = new_topics(native, name)
    variables = {"ENDPOINTS": endpoints, "TOPIC": topic, "ORDERED": ordered}
    done = subprocess.run(
        [str(program), "client.mjs"], cwd=folder, env={**os.environ, **variables, "HOME": str(folder)},
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    now_ms = time.time() * 1000
    for kind in ("simple", "pushed"):
        got = sorted(found[kind], key=lambda one: one["size"])
        assert [one["size"] for one in got] == [1, 5, 1000, 300_000], kind
        assert sorted(one["id"] for one in got) == sorted(found["sent"])
        for one in got:
            born = one.pop("born")
            assert now_ms - 300_000 < born < now_ms + 1000
            assert {**one, "size": 0, "id": "", "host": ""} == {
                "size": 0,
                "corrupted": False,
                "tag": "tag",
                "keys": ["k1", "k2"],
                "group": "",
                "id": "",
                "colour": "red",
                "attempt": 1,
                "host": "",
            }
    (one,) = found["ordered"]
    assert (one["group"], one["corrupted"], one["attempt"]) == ("group", False, 1)


@pytest.mark.long
def test_gos_client_sends_receives_and_decides(native: Native, endpoints: str, name: str, tmp_path: Path) -> None:
    try:
        binary = built(CLIENTS / "rocketmq-go")
    except NoGo as error:
        pytest.skip(str(error))
    except NotFetched as error:
        absent(str(error))
    topic, ordered = new_topics(native, name)
    native("POST", "/v1/queues", {"name": f"{name}_half"})
    topics = {"ROCKETMQ_TOPIC": topic, "ROCKETMQ_ORDERED": ordered, "ROCKETMQ_TRANSACTIONS": f"{name}_half"}
    variables = {"ROCKETMQ_ENDPOINTS": endpoints, "HOME": str(tmp_path), **topics}
    done = subprocess.run(
        [str(binary), "-test.v", f"-test.timeout={SECONDS}s"], cwd=tmp_path, env={**os.environ, **variables},
        capture_output=True, text=True, timeout=SECONDS + 20, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.count("--- PASS") == 4, done.stdout[-3000:] + done.stderr[-1000:]
