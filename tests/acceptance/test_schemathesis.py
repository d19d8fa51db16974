"""Schemathesis over the OpenAPI document of a running Leaseway: whatever it sends, no answer is a
5xx.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx

from tests.acceptance.schemathesis_hooks import QUEUES
from tests.conftest import StartUp

# So many requests are generated for each operation by chance, beside those of the examples and of
# the values at the edges. They are the same ones in each run, however fast the machine is.
EXAMPLES = 10
# What must lie behind the look-up of a queue and was answered: else the run says little.
REACHED = ("send", "receive", "get_queue", "create_queue", "create_tag", "query", "peek")
LONGEST_S = 390  # 42 s on two cores with a load average of 10
HOOKS = "tests.acceptance.schemathesis_hooks"
ROOT = Path(__file__).parents[2]


def test_no_generated_request_gets_a_server_error(leaseway_up: StartUp, tmp_path: Path) -> None:
    up = leaseway_up()
    up.wait_ready()
    with httpx.Client(base_url=up.endpoint) as client:
        for name in QUEUES:
            assert client.post("/v1/queues", json={"name": name}).status_code == 201
        sent = client.post(f"/v1/queues/{QUEUES[0]}/messages", json={"messages": [{"body": "to be found"}]}).json()
        _run(up.endpoint, sent["messages"][0]["id"], tmp_path)
        assert client.get("/live").status_code == 200
        metrics = client.get("/metrics").text
    missed = {verb for verb in REACHED if f'leaseway_requests_total{{status="200",verb="{verb}"}}' not in metrics}
    assert not missed, [line for line in metrics.splitlines() if "requests_total" in line]


def _run(endpoint: str, message: str, folder: Path) -> None:
    found = subprocess.run(
        [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "--no-color"),
            *("run", f"{endpoint}/openapi.json", "--checks", "not_a_server_error", "--continue-on-failure"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES), "--generation-deterministic"),
            *("--mode", "all", "--request-timeout", "60", "--exclude-path", "/metrics"),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "FUZZ_MESSAGE": message, "PYTHONPATH": str(ROOT)},
        timeout=LONGEST_S,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-8000:] + found.stderr[-2000:]
